//! What is written of a ControllerRevision.

use std::collections::BTreeMap;

use fedrs_api::{annotations, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    plan::{Update, Wanted},
    stored::Revision,
};

/// A ControllerRevision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    data: &'a Value,
    revision: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
    labels: BTreeMap<&'a str, &'a str>,
    annotations: BTreeMap<&'a str, &'a str>,
    owner_references: [OwnerReference; 1],
}

/// The wanted revision with a number.
pub(super) fn of<'a>(wanted: &Wanted<'a>, number: i64) -> Manifest<'a> {
    let set = wanted.owner;
    let cause = wanted.change_cause;
    Manifest {
        api_version: "apps/v1",
        kind: "ControllerRevision",
        metadata: Metadata {
            name: wanted.name,
            namespace: set.namespace,
            labels: [(set.label, set.name)].into(),
            annotations: cause
                .map(|cause| (annotations::CHANGE_CAUSE, cause))
                .into_iter()
                .collect(),
            owner_references: [owner(wanted)],
        },
        data: wanted.data,
        revision: number,
    }
}

/// A merge patch that makes the update, if the revision is as it was read.
pub(super) fn patch(wanted: &Wanted<'_>, of: &Revision, update: &Update<'_>) -> Value {
    let mut patch = json!({
        "metadata": { "uid": of.uid(), "resourceVersion": of.resource_version() },
    });
    if let Some(number) = update.number {
        patch["revision"] = number.into();
    }
    if let Some(cause) = update.change_cause {
        patch["metadata"]["annotations"] = json!({ annotations::CHANGE_CAUSE: cause });
    }
    if update.is_adoption {
        let metadata = &mut patch["metadata"];
        metadata["labels"] = json!({ wanted.owner.label: wanted.owner.name });
        if of.controller().is_none() {
            // A merge patch replaces the whole list.
            let others = of
                .owners()
                .iter()
                .filter(|owner| owner.uid != wanted.owner.uid);
            let owners: Vec<_> = others.cloned().chain([owner(wanted)]).collect();
            metadata["ownerReferences"] = json!(owners);
        }
    }
    patch
}

/// Deletes the revision with the set, and does not hold up the deletion of the set.
fn owner(wanted: &Wanted<'_>) -> OwnerReference {
    let set = wanted.owner;
    OwnerReference {
        api_version: names::API_VERSION.to_owned(),
        kind: set.kind.to_owned(),
        name: set.name.to_owned(),
        uid: set.uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}
