//! `metadata.managedFields`: the managers and the fields they own.

use serde_json::{Map, Value, json};

use super::field_set::FieldSet;
use super::writer::Writer;

/// The most managers that updated (not applied) an object; older ones are merged.
const UPDATE_MANAGERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// The operation of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// One entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    /// RFC 3339, in whole seconds; none if the manager has never changed anything.
    pub(super) time: Option<String>,
    pub(super) subresource: String,
    pub(super) fields: FieldSet,
}

impl Manager {
    pub(super) fn of(writer: &Writer<'_>, operation: Operation) -> Self {
        Self {
            name: writer.manager.to_owned(),
            operation,
            api_version: writer.api_version.to_owned(),
            time: Some(writer.now.to_owned()),
            subresource: writer.subresource.to_owned(),
            fields: FieldSet::default(),
        }
    }

    /// Whether both are the same manager with the same operation; the API version of an apply may change.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The manager as conflicts describe it: `"kubectl" using apps/v1`.
    pub(super) fn describe(&self) -> String {
        let mut text = crate::field::quote(&self.name);
        if !self.subresource.is_empty() {
            text = format!(
                "{text} with subresource {}",
                crate::field::quote(&self.subresource)
            );
        }
        if self.operation == Operation::Update {
            text = format!("{text} using {}", self.api_version);
        }
        text
    }

    fn parse(entry: &Value) -> Option<Self> {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let operation = match entry["operation"].as_str()? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        Some(Self {
            name: text("manager"),
            operation,
            api_version: text("apiVersion"),
            time: entry["time"].as_str().map(str::to_owned),
            subresource: text("subresource"),
            fields: entry
                .get("fieldsV1")
                .map_or_else(|| Some(FieldSet::default()), FieldSet::parse)?,
        })
    }

    fn to_value(&self) -> Value {
        let operation = if self.operation == Operation::Apply {
            "Apply"
        } else {
            "Update"
        };
        let mut entry = Map::from_iter([
            ("manager".to_owned(), json!(self.name)),
            ("operation".to_owned(), json!(operation)),
            ("apiVersion".to_owned(), json!(self.api_version)),
            ("fieldsType".to_owned(), json!("FieldsV1")),
            ("fieldsV1".to_owned(), self.fields.to_value()),
        ]);
        entry.extend(
            self.time
                .as_ref()
                .map(|time| ("time".to_owned(), json!(time))),
        );
        if !self.subresource.is_empty() {
            entry.insert("subresource".to_owned(), json!(self.subresource));
        }
        Value::Object(entry)
    }
}

/// The managers of an object; none if an entry is malformed.
pub(super) fn parse(object: &Value) -> Option<Vec<Manager>> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    entries.iter().map(Manager::parse).collect()
}

/// Whether the writer resets the ownership: by an empty list, or one with an empty entry.
pub(super) fn is_reset(object: &Value) -> bool {
    object["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|entries| entries.is_empty() || *entries == [json!({})])
}

/// Writes the managers into the object, sorted: applied first, then by time and name.
pub(super) fn write(object: &mut Value, managers: Vec<Manager>) {
    let mut managers: Vec<Manager> = managers
        .into_iter()
        .filter(|manager| !manager.fields.is_empty())
        .collect();
    sort(&mut managers);
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    if managers.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert(
            "managedFields".to_owned(),
            managers.iter().map(Manager::to_value).collect(),
        );
    }
}

fn sort(managers: &mut [Manager]) {
    fn key(manager: &Manager) -> (Operation, &str, &str, &str, &str) {
        let time = manager.time.as_deref().unwrap_or_default();
        let Manager {
            name,
            operation,
            api_version,
            subresource,
            ..
        } = manager;
        (*operation, time, name, api_version, subresource)
    }
    managers.sort_by(|left, right| key(left).cmp(&key(right)));
}

/// The entries of an object, as they are stored; null if there are none.
pub(super) fn managed_fields(object: &Value) -> &Value {
    &object["metadata"]["managedFields"]
}

/// Whether an entry is that of the updates of this writer.
pub(super) fn is_entry_of(entry: &Value, writer: &Writer<'_>) -> bool {
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    text("manager") == writer.manager
        && text("operation") == "Update"
        && text("subresource") == writer.subresource
        && text("apiVersion") == writer.api_version
}

/// Sorts stored entries as [`write`] does.
pub(super) fn sort_entries(entries: &mut [Value]) {
    fn key(entry: &Value) -> [&str; 5] {
        let fields = ["operation", "time", "manager", "apiVersion", "subresource"];
        fields.map(|field| entry[field].as_str().unwrap_or_default())
    }
    entries.sort_by(|left, right| key(left).cmp(&key(right)));
}

/// Merges the oldest updating managers if there are too many.
pub(super) fn cap(mut managers: Vec<Manager>) -> Vec<Manager> {
    let updaters = managers
        .iter()
        .filter(|manager| manager.operation == Operation::Update)
        .count();
    if updaters <= UPDATE_MANAGERS_MAX {
        return managers;
    }
    sort(&mut managers);
    let mut left = updaters - UPDATE_MANAGERS_MAX + 1;
    let mut kept: Vec<Manager> = Vec::with_capacity(managers.len());
    for manager in managers {
        if manager.operation == Operation::Apply || left == 0 {
            kept.push(manager);
            continue;
        }
        left -= 1;
        let bucket = Manager {
            name: ANCIENT.to_owned(),
            subresource: String::new(),
            ..manager
        };
        match kept.iter_mut().find(|one| one.is_same(&bucket)) {
            Some(ancient) => {
                ancient.fields.extend(bucket.fields);
                ancient.time = ancient.time.take().max(bucket.time);
            }
            None => kept.push(bucket),
        }
    }
    kept
}
