//! The garbage collector: deletes objects whose owners no longer exist, by uid and by `propagationPolicy`.
//!
//! ```text
//! owner removed ------------------> its dependents: verdict (pure) -> delete, or remove the owner reference
//! owner has `foregroundDeletion` -> delete its dependents, wait for those with blockOwnerDeletion, remove the finalizer
//! owner has `orphan` -------------> remove the owner reference from its dependents, remove the finalizer
//! ```
//!
//! An owner is looked up by its reference, in the dependent's namespace or cluster-wide. An owner with another uid does not
//! exist. Dependents of an owner whose kind is not served (yet) are kept and checked again.

mod verdict;

use serde_json::{Value, json};

use crate::api::Propagation;
use crate::object::Object;
use crate::resources::Kind;
use crate::status::Status;
use crate::store::Change;

use super::context::{Context, Deletion, ignore_not_found};
use super::controller::Controller;
use super::index::Entry;
use super::queue::Queue;
use crate::object::{
    FOREGROUND_FINALIZER, ORPHAN_FINALIZER, flag, has_finalizer, is_terminating, list, name,
    namespace, text, uid,
};
use verdict::{Dependents, Owner, Verdict, verdict};

const MANAGER: &str = "kube-controller-manager";

/// An object by kind, namespace and name, with the uid it had; ordered by uid.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    uid: String,
    kind: Kind,
    namespace: String,
    name: String,
}

/// The collector's queue.
#[derive(Debug)]
pub(crate) struct GarbageCollector {
    queue: Queue<Target>,
}

/// Why an object could not be collected or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectError {
    /// The kind of an owner is not served, or not yet; worth a retry.
    #[error("no kind {kind} in {api_version}")]
    UnknownKind { kind: String, api_version: String },
    /// The API rejected a write; worth a retry.
    #[error(transparent)]
    Rejected(#[from] Status),
    /// A cluster-scoped object has a namespaced owner, which cannot be resolved; the object is kept.
    #[error("a cluster-scoped object cannot have a namespaced owner")]
    NamespacedOwner,
}

impl GarbageCollector {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
        }
    }

    fn add(&mut self, kind: &Kind, object: &Value) {
        self.queue.add(Target::of(kind, object));
    }

    fn add_dependents(&mut self, owner: &str, context: &Context) {
        for Entry { kind, object } in context.index.dependents(owner) {
            self.add(kind, object);
        }
    }

    /// Queues waiting owners that `old` blocked and `new` does not.
    fn add_unblocked_owners(&mut self, old: &Value, new: Option<&Value>, context: &Context) {
        let held = |object: &Value, owner: &str| {
            blocking_owners(object).any(|reference| text(reference, "/uid") == owner)
        };
        for reference in blocking_owners(old) {
            let owner = text(reference, "/uid");
            if new.is_some_and(|new| held(new, owner)) {
                continue;
            }
            if let Ok((kind, Some(object))) = find_owner(context, namespace(old), reference)
                && uid(&object) == owner
                && is_waiting(&object)
            {
                self.add(&kind, &object);
            }
        }
    }
}

impl Target {
    fn of(kind: &Kind, object: &Value) -> Self {
        let (namespace, name) = (namespace(object).to_owned(), name(object).to_owned());
        Self {
            uid: uid(object).to_owned(),
            kind: kind.clone(),
            namespace,
            name,
        }
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.uid == other.uid
    }
}

impl Eq for Target {}

impl PartialOrd for Target {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Target {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.uid.cmp(&other.uid)
    }
}

fn owners(object: &Value) -> &[Value] {
    list(object, "/metadata/ownerReferences")
}

fn blocking_owners(object: &Value) -> impl Iterator<Item = &Value> {
    owners(object)
        .iter()
        .filter(|owner| flag(owner, "/blockOwnerDeletion"))
}

/// Whether the object is being deleted and waits for its dependents.
fn is_waiting(object: &Value) -> bool {
    is_terminating(object) && has_finalizer(object, FOREGROUND_FINALIZER)
}

fn is_orphaning(object: &Value) -> bool {
    is_terminating(object) && has_finalizer(object, ORPHAN_FINALIZER)
}

/// The object of an owner reference in a dependent in `namespace`.
fn find_owner(
    context: &Context,
    namespace: &str,
    reference: &Value,
) -> Result<(Kind, Option<Object>), CollectError> {
    let (version, kind) = (text(reference, "/apiVersion"), text(reference, "/kind"));
    let unknown = || CollectError::UnknownKind {
        kind: kind.to_owned(),
        api_version: version.to_owned(),
    };
    let kind = context.api.kind_of(version, kind).ok_or_else(unknown)?;
    if kind.namespaced && namespace.is_empty() {
        return Err(CollectError::NamespacedOwner);
    }
    let within = if kind.namespaced { namespace } else { "" };
    let found = context
        .api
        .get(&kind, within, text(reference, "/name"))
        .ok();
    Ok((kind, found))
}

fn classify(context: &Context, object: &Value) -> Result<Vec<Owner>, CollectError> {
    let state = |reference: &Value| {
        let (_, found) = find_owner(context, namespace(object), reference)?;
        Ok(
            match found.filter(|owner| uid(owner) == text(reference, "/uid")) {
                None => Owner::Absent,
                Some(owner) if is_waiting(&owner) => Owner::Waiting,
                Some(_) => Owner::Solid,
            },
        )
    };
    owners(object).iter().map(state).collect()
}

fn judge(context: &Context, kind: &Kind, object: &Value) -> Result<(), CollectError> {
    let owner_states = classify(context, object)?;
    let mut dependents = context.index.dependents(uid(object)).peekable();
    let any = dependents.peek().is_some();
    let dependents = Dependents {
        any,
        waiting: dependents.any(|entry| is_waiting(&entry.object)),
    };
    let finalizers: Vec<&str> = list(object, "/metadata/finalizers")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match verdict(&owner_states, dependents, &finalizers) {
        Verdict::Keep => Ok(()),
        Verdict::DropOwners(places) => {
            let lost: Vec<String> = places
                .into_iter()
                .map(|place| text(&owners(object)[place], "/uid").to_owned())
                .collect();
            later(context.edit(MANAGER, (kind, None), object, |object| {
                drop_owners(object, &lost);
            }))
        }
        Verdict::Delete {
            propagation,
            unblock,
        } => {
            if unblock {
                later(context.edit(MANAGER, (kind, None), object, unblock_owners))?;
            }
            delete(context, kind, object, propagation, !unblock)
        }
    }
}

fn delete(
    context: &Context,
    kind: &Kind,
    object: &Value,
    propagation: Propagation,
    unchanged: bool,
) -> Result<(), CollectError> {
    later(context.delete(
        kind,
        object,
        Deletion {
            propagation: Some(propagation),
            unchanged,
            grace_seconds: None,
        },
    ))
}

fn later<T>(result: Result<T, Status>) -> Result<(), CollectError> {
    Ok(ignore_not_found(result)?)
}

fn drop_owners(object: &mut Value, lost: &[String]) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    let Some(owners) = metadata
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    owners.retain(|owner| !lost.iter().any(|uid| owner["uid"] == uid.as_str()));
    if owners.is_empty() {
        metadata.remove("ownerReferences");
    }
}

fn unblock_owners(object: &mut Value) {
    let owners = object
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut);
    for owner in owners
        .into_iter()
        .flatten()
        .filter(|owner| owner["blockOwnerDeletion"] == json!(true))
    {
        owner["blockOwnerDeletion"] = json!(false);
    }
}

fn remove_finalizer(
    context: &Context,
    kind: &Kind,
    object: &Value,
    finalizer: &str,
) -> Result<(), CollectError> {
    later(context.edit(MANAGER, (kind, None), object, |object| {
        let Some(metadata) = object["metadata"].as_object_mut() else {
            return;
        };
        let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else {
            return;
        };
        finalizers.retain(|each| each != finalizer);
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }))
}

/// Removes the owner reference from the dependents, then the finalizer from the owner.
fn orphan_dependents(context: &Context, kind: &Kind, owner: &Value) -> Result<(), CollectError> {
    let dependents: Vec<Entry> = context.index.dependents(uid(owner)).cloned().collect();
    for Entry { kind, object } in dependents {
        later(context.edit(MANAGER, (&kind, None), &object, |object| {
            drop_owners(object, &[uid(owner).to_owned()]);
        }))?;
    }
    remove_finalizer(context, kind, owner, ORPHAN_FINALIZER)
}

impl GarbageCollector {
    /// Removes the finalizer from a waiting owner once no dependent blocks it.
    fn wait_for_dependents(
        &mut self,
        context: &Context,
        kind: &Kind,
        owner: &Value,
    ) -> Result<(), CollectError> {
        let blocks = |entry: &&Entry| {
            blocking_owners(&entry.object).any(|reference| reference["uid"] == uid(owner))
        };
        let blocking: Vec<Entry> = context
            .index
            .dependents(uid(owner))
            .filter(blocks)
            .cloned()
            .collect();
        if blocking.is_empty() {
            return remove_finalizer(context, kind, owner, FOREGROUND_FINALIZER);
        }
        for Entry { kind, object } in blocking.iter().filter(|entry| !is_waiting(&entry.object)) {
            self.add(kind, object);
        }
        Ok(())
    }

    fn process(&mut self, context: &Context, target: &Target) -> Result<(), CollectError> {
        let found = context
            .api
            .get(&target.kind, &target.namespace, &target.name)
            .ok();
        let Some(object) = found.filter(|object| uid(object) == target.uid) else {
            return Ok(());
        };
        if is_orphaning(&object) {
            orphan_dependents(context, &target.kind, &object)
        } else if is_waiting(&object) {
            self.wait_for_dependents(context, &target.kind, &object)
        } else if is_terminating(&object) {
            // Its dependents are checked when it is removed.
            Ok(())
        } else {
            judge(context, &target.kind, &object)
        }
    }
}

impl Controller for GarbageCollector {
    type Key = Target;
    type Failure = CollectError;

    fn queue(&mut self) -> &mut Queue<Target> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, context: &Context) {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        let Some(new) = new else {
            if let Some(old) = old {
                self.queue.remove(&Target::of(&change.kind, old));
                self.add_dependents(uid(old), context);
                self.add_unblocked_owners(old, None, context);
            }
            return;
        };
        if let Some(old) = old {
            self.add_unblocked_owners(old, Some(new), context);
        }
        let starts = |state: fn(&Value) -> bool| state(new) && !old.is_some_and(|old| state(old));
        if starts(is_waiting) {
            self.add_dependents(uid(new), context);
            self.add(&change.kind, new);
        } else if starts(is_orphaning) || owners(new) != old.map_or(&[][..], |old| owners(old)) {
            self.add(&change.kind, new);
        }
    }

    fn sync(&mut self, context: &mut Context, target: &Target) -> Result<(), CollectError> {
        match self.process(context, target) {
            Err(CollectError::NamespacedOwner) => Ok(()),
            outcome => outcome,
        }
    }
}
