//! Adopts a ReplicaSet that has the name of a local set (F29): it existed before, or lost fedrs's labels.

use fedrs_api::{RejectionKind, ValidFrs};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{LocalSet, undecided};
use crate::{
    calls::{self, CallError},
    check::Outcome,
};

impl LocalSet<'_> {
    /// Adopts an existing ReplicaSet of this name (F29), or answers why it must not.
    pub(super) async fn adopt(self, frs: &ValidFrs, replicas: u32) -> Outcome {
        let live = match self.get().await {
            Ok(live) => live,
            // Gone since the POST: the next check creates it.
            Err(error) => return undecided(&error),
        };
        if live["metadata"].get("deletionTimestamp").is_some() {
            return Outcome::Conflict("the existing ReplicaSet is being deleted".to_owned());
        }
        if let Some(message) = self.foreign_owner(&live) {
            let kind = RejectionKind::NameConflict;
            return Outcome::Rejected { kind, message };
        }
        // Running replicas stay: later checks remove the surplus without a dip.
        let running = live["spec"]["replicas"].as_u64().unwrap_or(0);
        let replicas = replicas.max(u32::try_from(running).unwrap_or(0));
        let before = live["spec"].clone();
        match self.write_over(frs, live, replicas).await {
            Ok(Outcome::Written(set)) => Outcome::Adopted {
                changed: changes(&before, frs, set.replicas),
                set,
            },
            Ok(outcome) => outcome,
            Err(error) => undecided(&error),
        }
    }

    /// Writes our spec and labels into `live`, and keeps the metadata of others. Its pods stay. If its selector differs, which
    /// is immutable, deletes it without its pods: the next check creates ours.
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

/// What an adoption changed in the spec that was there before.
fn changes(before: &Value, frs: &ValidFrs, replicas: u32) -> String {
    let mut changes = Vec::new();
    if before["replicas"] != replicas {
        changes.push(format!("replicas {} to {replicas}", before["replicas"]));
    }
    let images_before = images(&before["template"]["spec"]).join(", ");
    let images = images(&frs.template.spec).join(", ");
    if images_before != images {
        changes.push(format!("images {images_before} to {images}"));
    }
    changes.push("template and labels".to_owned());
    changes.join("; ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f29_the_changes_of_an_adoption_and_the_set_of_a_replacement_are_described() {
        let spec = |replicas: u32, image: &str| {
            json!({
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": image }] },
                },
            })
        };
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedReplicaSet",
            "metadata": { "name": "web", "namespace": "default", "uid": "u", "generation": 1 },
            "spec": spec(5, "web:2"),
        });
        let frs = ValidFrs::check(&serde_json::from_value(object).unwrap()).unwrap();
        for (before, expected) in [
            (spec(5, "web:2"), "template and labels"),
            (
                spec(2, "web:1"),
                "replicas 2 to 5; images web:1 to web:2; template and labels",
            ),
        ] {
            assert_eq!(changes(&before, &frs, 5), expected);
        }
        assert_eq!(
            described(&json!({ "spec": spec(2, "web:1") })),
            "replicas 2, images web:1, selector app=web"
        );
    }
}
