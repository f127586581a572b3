//! Adopts a ReplicaSet that has the name of a local set (F29): it existed before, or lost fedrs's labels.

use fedrs_api::{RejectionKind, ValidFrs};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{LocalSet, foreign_owner, undecided};
use crate::{
    calls::{self, CallError},
    check::Outcome,
    messages,
};

/// What to do with an existing ReplicaSet.
#[derive(Debug, PartialEq, Eq)]
enum Claim {
    /// Adopt it: its pods stay.
    Overwrite,
    /// Its selector differs and is immutable: delete it without its pods, then create ours.
    Replace,
    /// It is being deleted: wait.
    Wait,
    /// It belongs to another owner.
    Rejected(String),
}

/// Decides by the live set alone.
fn claim(live: &Value, frs: &ValidFrs, federation: &str) -> Claim {
    if live["metadata"].get("deletionTimestamp").is_some() {
        return Claim::Wait;
    }
    if let Some(owner) = foreign_owner(live, federation) {
        return Claim::Rejected(owner);
    }
    if live["spec"]["selector"] == json!(frs.selector) {
        Claim::Overwrite
    } else {
        Claim::Replace
    }
}

/// Says of a set that was written over what became different.
fn adopted(outcome: Outcome, frs: &ValidFrs, before: &Value) -> Outcome {
    let Outcome::Written(set) = outcome else {
        return outcome;
    };
    let replicas = &before["replicas"];
    let replicas = (*replicas != set.replicas).then_some((replicas, set.replicas));
    let (old, new) = (
        images(&before["template"]["spec"]).join(", "),
        images(&frs.template.spec).join(", "),
    );
    let images = (old != new).then_some((&*old, &*new));
    let changed = messages::adopted_changes(replicas, images);
    Outcome::Adopted { set, changed }
}

impl LocalSet<'_> {
    /// Adopts an existing ReplicaSet of this name (F29), or answers why it must not.
    pub(super) async fn adopt(self, frs: &ValidFrs, replicas: u32) -> Outcome {
        let live = match self.get().await {
            Ok(live) => live,
            // Gone since the POST: the next check creates it.
            Err(error) => return undecided(&error),
        };
        let answer = match claim(&live, frs, &self.executor.federation) {
            Claim::Overwrite => {
                // Running replicas stay: later checks remove the surplus without a dip.
                let running = live["spec"]["replicas"].as_u64().unwrap_or(0);
                let replicas = replicas.max(u32::try_from(running).unwrap_or(0));
                let before = live["spec"].clone();
                let written = self.write_over(frs, live, replicas).await;
                written.map(|outcome| adopted(outcome, frs, &before))
            }
            Claim::Replace => self.replace(&live).await,
            Claim::Wait => Ok(Outcome::Conflict(
                "the existing ReplicaSet is being deleted".to_owned(),
            )),
            Claim::Rejected(message) => Ok(Outcome::Rejected {
                kind: RejectionKind::NameConflict,
                message,
            }),
        };
        answer.unwrap_or_else(|error| undecided(&error))
    }

    /// Writes our spec and labels into `live`, and keeps the metadata of others.
    pub(super) async fn write_over(
        self,
        frs: &ValidFrs,
        mut live: Value,
        replicas: u32,
    ) -> Result<Outcome, CallError> {
        if live["spec"]["selector"] != json!(frs.selector) {
            return self.replace(&live).await;
        }
        let ours = self.desired(frs, replicas);
        live["spec"] = ours["spec"].clone();
        let labels = ours["metadata"]["labels"].as_object().into_iter().flatten();
        for (key, value) in labels {
            live["metadata"]["labels"][key] = value.clone();
        }
        if let Some(metadata) = live["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let path = self.path();
        let call = calls::put(&self.member.client, &path, &live);
        self.written("overwrite", call).await
    }

    /// Deletes the set without its pods; the next check creates ours, which adopts them.
    async fn replace(self, live: &Value) -> Result<Outcome, CallError> {
        self.delete(live, "Orphan").await?;
        let was = described(live);
        Ok(Outcome::Replaced { was })
    }
}

/// A description of a ReplicaSet with another selector: `replicas 2, images web:1, selector app=old`.
fn described(live: &Value) -> String {
    let spec = &live["spec"];
    let selector = LabelSelector::deserialize(&spec["selector"]).unwrap_or_default();
    format!(
        "replicas {}, images {}, selector {}",
        spec["replicas"],
        images(&spec["template"]["spec"]).join(", "),
        fedrs_api::selector::to_text(&selector)
    )
}

/// The images of a pod's spec.
fn images(spec: &Value) -> Vec<String> {
    let containers = spec["containers"].as_array().into_iter().flatten();
    containers
        .filter_map(|container| container["image"].as_str().map(str::to_owned))
        .collect()
}
