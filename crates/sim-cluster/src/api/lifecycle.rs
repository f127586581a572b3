//! The effects of a committed write on the API server itself.
//!
//! ```text
//! definition stored  -> names accepted, established -> its kinds are served
//! definition deleted -> its objects are deleted -> the last one is removed -> definition and kinds are removed
//! ```

use serde_json::{Value, json};

use super::options::DeleteOptions;
use super::state::State;
use crate::clock::Clock;
use crate::object::{self, Condition, Object, text};
use crate::resources::{Kind, kinds};

/// Delays the removal of a definition until its objects are removed.
const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Runs after an object was stored.
pub(crate) fn after_put(state: &mut State, clock: &Clock, kind: &Kind, new: &Object) {
    if *kind != *kinds::CUSTOM_RESOURCE_DEFINITIONS || object::is_terminating(new) {
        return;
    }
    let mut established = Value::clone(new);
    establish(clock, &mut established);
    if established != **new {
        let name = text(new, "/metadata/name");
        state.store.put(kind, "", name, established.clone());
    }
    state.registry.define(&established);
}

/// Runs after an object was removed.
pub(crate) fn after_remove(state: &mut State, clock: &Clock, kind: &Kind, last: &Value) {
    if *kind == *kinds::CUSTOM_RESOURCE_DEFINITIONS {
        state.registry.forget(text(last, "/metadata/name"));
    }
    let Some(custom) = &kind.custom else {
        return;
    };
    let definition = state
        .store
        .get(&kinds::CUSTOM_RESOURCE_DEFINITIONS, "", &custom.definition);
    if let Some(definition) = definition.cloned()
        && object::is_terminating(&definition)
    {
        finish_definition(state, clock, &definition);
    }
}

/// Writes the status that Kubernetes' controllers write: accepted names, stored versions, conditions.
fn establish(clock: &Clock, definition: &mut Value) {
    let names = definition["spec"]["names"].clone();
    let versions = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    let stored = versions.filter(|version| version["storage"] == json!(true));
    let stored: Vec<Value> = stored.map(|version| version["name"].clone()).collect();
    let status = &mut definition["status"];
    status["acceptedNames"] = names;
    if !status["storedVersions"].is_array() {
        status["storedVersions"] = json!([]);
    }
    if let Value::Array(known) = &mut status["storedVersions"] {
        for version in stored {
            if !known.contains(&version) {
                known.push(version);
            }
        }
    }
    let conditions = [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        (
            "Established",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ),
    ];
    for (kind, reason, message) in conditions {
        set_true(clock, definition, kind, reason, message);
    }
}

fn set_true(clock: &Clock, definition: &mut Value, kind: &str, reason: &str, message: &str) {
    let condition = Condition {
        kind,
        status: "True",
        reason,
        message,
    };
    object::set_condition(definition, condition, clock.now());
}

/// Begins the deletion of a definition: marks it and deletes its objects. A definition without objects is removed.
/// Returns the marked definition.
pub(crate) fn terminate_definition(
    state: &mut State,
    clock: &Clock,
    name: &str,
    old: &Object,
) -> Object {
    let mut marked = Value::clone(old);
    let mut finalizers = object::finalizers(old);
    if !finalizers
        .iter()
        .any(|finalizer| finalizer == CLEANUP_FINALIZER)
    {
        finalizers.push(CLEANUP_FINALIZER.to_owned());
    }
    object::set_finalizers(&mut marked, &finalizers);
    marked["metadata"]["deletionTimestamp"] = json!(clock.now_time());
    marked["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    let message =
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_true(
        clock,
        &mut marked,
        "Terminating",
        "InstanceDeletionPending",
        message,
    );
    let marked = state
        .store
        .put(&kinds::CUSTOM_RESOURCE_DEFINITIONS, "", name, marked);
    if let Some(kind) = kind_of(state, name) {
        let objects: Vec<Object> = state.store.list(&kind, None).cloned().collect();
        for object in objects {
            let (namespace, name) = (
                text(&object, "/metadata/namespace"),
                text(&object, "/metadata/name"),
            );
            // An object that no longer exists needs no deletion.
            let _ = state.delete(clock, &kind, namespace, name, &DeleteOptions::default());
        }
    }
    if let Some(current) = state
        .store
        .get(&kinds::CUSTOM_RESOURCE_DEFINITIONS, "", name)
        .cloned()
    {
        finish_definition(state, clock, &current);
    }
    marked
}

/// Removes a definition that is being deleted if it has no objects.
fn finish_definition(state: &mut State, clock: &Clock, definition: &Object) {
    let name = text(definition, "/metadata/name");
    let kind = kind_of(state, name);
    if kind.is_some_and(|kind| state.store.list(&kind, None).next().is_some()) {
        return;
    }
    let mut finalizers = object::finalizers(definition);
    finalizers.retain(|finalizer| finalizer != CLEANUP_FINALIZER);
    if finalizers.is_empty() {
        if let Some(last) = state
            .store
            .remove(&kinds::CUSTOM_RESOURCE_DEFINITIONS, "", name)
        {
            after_remove(state, clock, &kinds::CUSTOM_RESOURCE_DEFINITIONS, &last);
        }
    } else {
        let mut held = Value::clone(definition);
        object::set_finalizers(&mut held, &finalizers);
        state
            .store
            .put(&kinds::CUSTOM_RESOURCE_DEFINITIONS, "", name, held);
    }
}

/// A kind of that definition, in any version.
fn kind_of(state: &State, definition: &str) -> Option<Kind> {
    let is_of =
        |kind: &&Kind| (kind.custom.as_ref()).is_some_and(|custom| custom.definition == definition);
    state.registry.all().find(is_of).cloned()
}
