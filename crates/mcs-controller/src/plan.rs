//! The writes that bring a member closer to what was decided: those that can be made now, in their order.
//!
//! ```text
//! ServiceImport created -> its EndpointSlices, which it owns      EndpointSlices deleted -> ServiceImport deleted
//! ```

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use crate::{
    conditions,
    decide::{Decision, Imports},
    import::{DesiredImport, Import},
    key::ServiceKey,
    meta::Meta,
    names::{API_VERSION, EXPORTS, IMPORTS, SLICES, in_namespace},
    slice::{DesiredSlice, Slice},
    view::MemberView,
};

/// One write in a member. Each depends on the object being as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) kind: Kind,
    pub(crate) verb: Verb,
    /// The object's path; of a new one, that of its collection.
    pub(crate) path: String,
    /// The object, a merge patch, or the preconditions of a deletion.
    pub(crate) body: Value,
}

impl Write {
    /// The namespace and the name of its object, which exists.
    pub(crate) fn id(&self) -> (String, String) {
        let mut parts = self
            .path
            .split('/')
            .skip_while(|&part| part != "namespaces");
        let namespace = parts.nth(1).unwrap_or_default();
        let name = parts.nth(1).unwrap_or_default();
        (namespace.to_owned(), name.to_owned())
    }
}

/// What kind of object a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Export,
    Import,
    Slice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    /// A merge patch.
    Patch,
    Delete,
}

/// The next writes in the member that looks like `member`.
pub(crate) fn plan(
    key: &ServiceKey,
    member: &MemberView,
    decision: &Decision,
    now: Timestamp,
) -> Vec<Write> {
    let mut writes = Vec::new();
    if let Some(imports) = &decision.imports {
        match &imports.import {
            Some(desired) => keep(key, member, (desired, imports), &mut writes),
            None => remove(key, member, &mut writes),
        }
    }
    if let Some(export) = &member.export
        && let Some(conditions) = conditions::updated(export, &decision.conditions, now)
    {
        writes.push(export_status(key, &export.metadata, &conditions));
    }
    writes
}

/// The ServiceImport, and once it exists, its EndpointSlices.
fn keep(
    key: &ServiceKey,
    member: &MemberView,
    (desired, imports): (&DesiredImport, &Imports),
    writes: &mut Vec<Write>,
) {
    let Some(import) = &member.import else {
        writes.push(create_import(key, desired));
        return;
    };
    // The status is a second write to the same object: it follows when the first one is known.
    let patch = patch_import(key, import, desired);
    let status = || import_status(key, import, desired, imports);
    let of_import = patch.or_else(status);
    writes.extend(of_import);
    let uid = &import.metadata.uid;
    for (name, slice) in &member.imported {
        if !imports.slices.contains_key(name) {
            writes.extend(outdated_slice(key, slice, imports, uid));
        }
    }
    for (name, slice) in &imports.slices {
        match member.imported.get(name) {
            None => writes.push(create_slice(key, (name, slice), uid)),
            Some(found) if slice.is(key, found, uid) => {}
            Some(found) => writes.push(patch_slice(key, found, slice, uid)),
        }
    }
}

/// Deletes an EndpointSlice whose endpoints are gone. One of which that is not known stays, also if the ServiceImport is a new one:
/// it would be deleted with the one before.
fn outdated_slice(key: &ServiceKey, found: &Slice, imports: &Imports, uid: &str) -> Option<Write> {
    let source = found.source()?;
    if !imports.kept_sources.contains(source) {
        return Some(delete(Kind::Slice, key, &found.metadata));
    }
    let kept = DesiredSlice {
        source: source.into(),
        content: found.content.clone(),
    };
    (!kept.is(key, found, uid)).then(|| patch_slice(key, found, &kept, uid))
}

/// No EndpointSlices, and once there are none, no ServiceImport.
fn remove(key: &ServiceKey, member: &MemberView, writes: &mut Vec<Write>) {
    let slices = member.imported.values();
    writes.extend(slices.map(|slice| delete(Kind::Slice, key, &slice.metadata)));
    if let Some(import) = &member.import
        && writes.is_empty()
    {
        writes.push(delete(Kind::Import, key, &import.metadata));
    }
}

fn create_import(key: &ServiceKey, desired: &DesiredImport) -> Write {
    let mut body = json!({
        "apiVersion": API_VERSION, "kind": "ServiceImport",
        "metadata": desired.metadata(), "spec": desired.spec,
    });
    body["metadata"]["name"] = json!(*key.name);
    if let Some(spec) = body["spec"].as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    Write {
        kind: Kind::Import,
        verb: Verb::Create,
        path: collection(Kind::Import, key),
        body,
    }
}

/// Changes the fields of the controller, if they are not as desired; what others have written stays.
fn patch_import(key: &ServiceKey, import: &Import, desired: &DesiredImport) -> Option<Write> {
    let metadata = desired.metadata_patch(import);
    let is_other_spec = import.spec != desired.spec;
    if metadata.is_none() && !is_other_spec {
        return None;
    }
    let mut body = json!({ "metadata": metadata.unwrap_or_else(|| json!({})) });
    if is_other_spec {
        // `null` removes a field.
        body["spec"] = json!(desired.spec);
    }
    Some(patch(Kind::Import, key, &import.metadata, "", body))
}

fn import_status(
    key: &ServiceKey,
    import: &Import,
    desired: &DesiredImport,
    imports: &Imports,
) -> Option<Write> {
    let has_slices = !imports.slices.is_empty() || !imports.kept_sources.is_empty();
    let objects = if has_slices { "Present" } else { "Absent" };
    let status = &import.status;
    if status.clusters == desired.clusters && status.endpoint_slice_objects == objects {
        return None;
    }
    let status = json!({ "clusters": desired.clusters, "endpointSliceObjects": objects });
    let body = json!({ "metadata": {}, "status": status });
    let metadata = &import.metadata;
    Some(patch(Kind::Import, key, metadata, "/status", body))
}

fn create_slice(key: &ServiceKey, (name, slice): (&str, &DesiredSlice), import: &str) -> Write {
    let mut body = slice.fields(key, import);
    body["apiVersion"] = json!("discovery.k8s.io/v1");
    body["kind"] = json!("EndpointSlice");
    body["metadata"]["name"] = json!(name);
    Write {
        kind: Kind::Slice,
        verb: Verb::Create,
        path: collection(Kind::Slice, key),
        body,
    }
}

fn patch_slice(key: &ServiceKey, found: &Slice, slice: &DesiredSlice, import: &str) -> Write {
    let body = slice.fields(key, import);
    patch(Kind::Slice, key, &found.metadata, "", body)
}

fn export_status(key: &ServiceKey, export: &Meta, conditions: &[Condition]) -> Write {
    let body = json!({ "metadata": {}, "status": { "conditions": conditions } });
    patch(Kind::Export, key, export, "/status", body)
}

/// A merge patch of an object, or of a subresource, that must be as it was seen.
fn patch(kind: Kind, key: &ServiceKey, seen: &Meta, subresource: &str, mut body: Value) -> Write {
    body["metadata"]["uid"] = json!(seen.uid);
    body["metadata"]["resourceVersion"] = json!(seen.resource_version);
    Write {
        kind,
        verb: Verb::Patch,
        path: format!("{}/{}{subresource}", collection(kind, key), seen.name),
        body,
    }
}

/// Deletes an object that must be as it was seen.
fn delete(kind: Kind, key: &ServiceKey, seen: &Meta) -> Write {
    let preconditions = json!({ "uid": seen.uid, "resourceVersion": seen.resource_version });
    Write {
        kind,
        verb: Verb::Delete,
        path: format!("{}/{}", collection(kind, key), seen.name),
        body: json!({ "preconditions": preconditions }),
    }
}

fn collection(kind: Kind, key: &ServiceKey) -> String {
    let collection = match kind {
        Kind::Export => EXPORTS,
        Kind::Import => IMPORTS,
        Kind::Slice => SLICES,
    };
    in_namespace(collection, &key.namespace)
}
