//! Server-side apply, and the ownership of fields.
//!
//! ```text
//! create, update, patch: (old, new)      -> differences -> the writer owns them, others do not -> managedFields
//! apply: (live, config, last applied)    -> merge -> remove fields without an owner -> conflicts? -> managedFields
//! ```
//!
//! Both run on the writer's object before admission, with defaults (update) or without (apply): no manager owns what the
//! server adds. The fields of managers in other API versions are not converted.

mod compare;
mod error;
mod field_set;
mod managers;
mod renewal;
mod typed;
mod unowned;
mod writer;

use serde_json::{Value, json};

use crate::schema::{Node, TypeInfo};
use compare::compare;
pub(crate) use error::{ApplyError, Conflict};
use field_set::FieldSet;
use managers::{Manager, Operation};
use typed::{field_set, merge, undeclared, without};
use unowned::{UNOWNED, UNOWNED_METADATA};
pub(crate) use writer::Writer;

/// The annotation with the last configuration of client-side apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager that may take over fields from client-side apply.
const KUBECTL: &str = "kubectl";

/// Removes the fields of a configuration that its resource cannot write: the status on the main resource of a kind with a
/// status subresource, everything but the status on `status`.
pub(crate) fn drop_unwritable(config: &mut Value, has_status: bool, subresource: &str) {
    let Value::Object(fields) = config else {
        return;
    };
    match subresource {
        "" if has_status => {
            fields.remove("status");
        }
        "status" => fields.retain(|name, _| {
            ["apiVersion", "kind", "metadata", "status"].contains(&name.as_str())
        }),
        _ => {}
    }
}

/// The result of applying `config`, with its `managedFields`. Without `live` the object is created. Defaults are not set;
/// [`drop_unwritable`] has to drop the writer's status before.
pub(crate) fn apply(
    live: Option<&Value>,
    config: &Value,
    writer: &Writer<'_>,
    force: bool,
    info: &TypeInfo,
) -> Result<Value, ApplyError> {
    let request = Request {
        live,
        config,
        writer,
        info,
    };
    let mut applied = match request.run(force) {
        Err(ApplyError::Conflicts(conflicts)) if writer.manager == KUBECTL => {
            let allowed = live
                .map(|live| from_client_side_apply(live, info.root()))
                .unwrap_or_default();
            let rest: Vec<Conflict> = conflicts
                .into_iter()
                .filter(|one| !allowed.contains(&one.field))
                .collect();
            if !rest.is_empty() {
                return Err(ApplyError::Conflicts(rest));
            }
            request.run(true)?
        }
        outcome => outcome?,
    };
    if writer.manager == KUBECTL
        && applied["metadata"]["annotations"]
            .get(LAST_APPLIED)
            .is_some()
    {
        applied["metadata"]["annotations"][LAST_APPLIED] = format!("{config}\n").into();
    }
    Ok(applied)
}

/// Checks whether `config` can be applied to an object of this type.
///
/// # Errors
/// If it has a field that the type does not have, or `managedFields`.
pub(crate) fn check(config: &Value, info: &TypeInfo) -> Result<(), ApplyError> {
    if config["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|entries| !entries.is_empty())
    {
        return Err(ApplyError::ManagedFieldsSet);
    }
    let Some(field) = undeclared(config, Some(info.root()), "") else {
        return Ok(());
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &config["metadata"];
    Err(ApplyError::Undeclared {
        object: format!(
            "{}/{}",
            text(&metadata["namespace"]),
            text(&metadata["name"])
        ),
        api_version: match text(&config["apiVersion"]) {
            core if !core.contains('/') => format!("/{core}"),
            version => version,
        },
        kind: text(&config["kind"]),
        field,
    })
}

struct Request<'a> {
    live: Option<&'a Value>,
    config: &'a Value,
    writer: &'a Writer<'a>,
    info: &'a TypeInfo,
}

impl Request<'_> {
    fn run(&self, force: bool) -> Result<Value, ApplyError> {
        let node = Some(self.info.root());
        let live = self.live.map_or_else(|| json!({}), without_managers);
        let mut managers = self.live.and_then(managers::parse).unwrap_or_default();
        let mut own = Manager::of(self.writer, Operation::Apply);
        if self.live.is_some() && managers.is_empty() {
            managers.push(self.before_first_apply(&live));
        }
        let place = managers.iter().position(|one| one.is_same(&own));
        let last = place.map(|place| managers.remove(place));
        own.fields = field_set(self.config, node).difference(&UNOWNED);
        let merged = merge(&live, self.config, node);
        let new = match &last {
            Some(last) => self.prune(&merged, &last.fields, &own.fields, &managers),
            None => merged,
        };
        let comparison = compare(&live, &new, node);
        let changed = comparison.changed();
        if !force {
            refuse_conflicts(&managers, &changed)?;
        }
        for manager in &mut managers {
            manager.fields.remove(&changed);
            manager.fields.remove(&comparison.removed);
        }
        if self.live.is_some() && new == live {
            // Nothing changes, and so does not the time.
            own.time = last.and_then(|last| last.time);
        }
        managers.push(own);
        let mut new = new;
        managers::write(&mut new, managers);
        Ok(new)
    }

    /// The manager of all fields of an object without managers.
    fn before_first_apply(&self, live: &Value) -> Manager {
        let writer = Writer {
            manager: "before-first-apply",
            subresource: "",
            ..*self.writer
        };
        let mut manager = Manager::of(&writer, Operation::Update);
        manager.fields = field_set(live, Some(self.info.root())).difference(&UNOWNED);
        manager
    }

    /// Removes the fields that this manager applied last time, no longer applies, and no other manager owns.
    fn prune(&self, merged: &Value, last: &FieldSet, own: &FieldSet, others: &[Manager]) -> Value {
        let node = Some(self.info.root());
        let named = |set: &FieldSet| set.with_named_fields(node);
        let gone = |remove: &FieldSet| without(merged, remove, node).unwrap_or_else(|| json!({}));
        let has = named(&field_set(merged, node));
        let last = named(last);
        let owned = others
            .iter()
            .fold(own.clone(), |all, manager| all.union(&manager.fields));
        // Owned fields below a removed one restore their parents.
        let first = gone(&last);
        let second = gone(
            &has.clone()
                .difference(&named(&field_set(&first, node)).union(&named(&owned))),
        );
        // Fields that were removed along with them, but never applied by this manager, stay.
        let mut pruned = gone(
            &has.difference(&named(&field_set(&second, node)))
                .intersection(&last),
        );
        keep_identity(&mut pruned, merged);
        pruned
    }
}

/// Restores the fields that no manager can own or give up.
fn keep_identity(object: &mut Value, before: &Value) {
    for (name, value) in before["metadata"].as_object().into_iter().flatten() {
        if UNOWNED_METADATA.contains(&name.as_str()) && object["metadata"].get(name).is_none() {
            object["metadata"][name] = value.clone();
        }
    }
}

fn refuse_conflicts(managers: &[Manager], changed: &FieldSet) -> Result<(), ApplyError> {
    let mut conflicts = Vec::new();
    for manager in managers {
        let fields = manager.fields.intersection(changed).paths();
        conflicts.extend(fields.into_iter().map(|field| Conflict {
            manager: manager.describe(),
            field,
        }));
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    conflicts
        .sort_by(|left, right| (&left.manager, &left.field).cmp(&(&right.manager, &right.field)));
    Err(ApplyError::Conflicts(conflicts))
}

/// The fields that client-side apply set and that have not changed since: `kubectl` may take them over.
fn from_client_side_apply(live: &Value, node: Node<'_>) -> Vec<String> {
    let text = live["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .unwrap_or_default();
    let Ok(last) = serde_json::from_str::<Value>(text) else {
        return Vec::new();
    };
    let comparison = compare(&last, &without_managers(live), Some(node));
    let fields = field_set(&last, Some(node));
    fields
        .difference(&comparison.modified)
        .difference(&comparison.added)
        .difference(&comparison.removed)
        .paths()
}

fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// Records the ownership in `new`: only the writer owns the fields that differ from `old`. Without `old` the object is
/// created. A writer may set `managedFields` itself, and reset them with `[{}]`.
pub(crate) fn track_update(
    old: Option<&Value>,
    new: &mut Value,
    writer: &Writer<'_>,
    info: &TypeInfo,
) {
    let comparison = match old {
        Some(old) => compare(old, new, Some(info.root())),
        None => compare(&info.empty_object(), new, Some(info.root())),
    };
    if old.is_some_and(|old| renewal::renew(old, new, writer, &comparison)) {
        return;
    }
    let changed = comparison.changed();
    let mut managers = stated_managers(old, new, writer);
    for manager in &mut managers {
        manager.fields.remove(&changed);
        manager.fields.remove(&comparison.removed);
    }
    let taken = changed.difference(&UNOWNED);
    if !taken.is_empty() {
        let mut own = Manager::of(writer, Operation::Update);
        own.fields = taken;
        match managers.iter_mut().find(|one| one.is_same(&own)) {
            Some(known) => {
                known.fields.extend(own.fields);
                known.time = own.time;
            }
            None => managers.push(own),
        }
    }
    if !new["metadata"].is_object() {
        new["metadata"] = json!({});
    }
    managers::write(new, managers::cap(managers));
}

/// The managers before this write: those that the writer sets on the object, otherwise the stored ones.
fn stated_managers(old: Option<&Value>, new: &Value, writer: &Writer<'_>) -> Vec<Manager> {
    let stored = || old.and_then(managers::parse).unwrap_or_default();
    if !writer.subresource.is_empty() {
        return stored();
    }
    if managers::is_reset(new) {
        return Vec::new();
    }
    match managers::parse(new) {
        Some(stated) if !stated.is_empty() => stated,
        _ => stored(),
    }
}

#[cfg(test)]
mod tests;
