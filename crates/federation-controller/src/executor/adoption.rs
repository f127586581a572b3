//! Adopts a ReplicaSet that has the name of a local ReplicaSet (F29): it existed before, or lost fedrs's labels.

use fedrs_api::{RejectionKind, ValidFrs};
use reflector::printable;

use super::{
    LocalWorkload, failed_write,
    live_set::{LiveSet, LiveSpec, images},
};
use crate::{calls::CallError, check::Outcome};

impl LocalWorkload<'_> {
    /// Adopts an existing ReplicaSet of this name (F29), or returns why it must not.
    pub(super) async fn adopt(self, frs: &ValidFrs, replicas: u32) -> Outcome {
        let live = match self.get().await {
            Ok(live) => live,
            // Gone since the POST: the next check creates it.
            Err(error) => return failed_write(&error),
        };
        if live.metadata.is_deleting {
            // Most deletions end in a moment; one that hangs counts as a rejection later.
            return Outcome::Failed("the existing ReplicaSet is being deleted".to_owned());
        }
        if let Some(message) = self.foreign_owner(&live) {
            let kind = RejectionKind::NameConflict;
            return Outcome::Rejected { kind, message };
        }
        // Running replicas stay: later checks remove the surplus without a dip.
        let replicas = replicas.max(live.spec.replicas.unwrap_or(0));
        match self.write_over(frs, &live, replicas).await {
            Ok(Outcome::Written(set)) => Outcome::Adopted {
                changed: changes(&live.spec, frs, set.replicas),
                set,
            },
            Ok(outcome) => outcome,
            Err(error) => failed_write(&error),
        }
    }

    /// Writes our spec and labels over the set that was read as `live`, and keeps the metadata of others. Its pods stay. If
    /// its selector differs, which is immutable, deletes it without its pods: the next check creates ours.
    pub(super) async fn write_over(
        self,
        frs: &ValidFrs,
        live: &LiveSet,
        replicas: u32,
    ) -> Result<Outcome, CallError> {
        if live.spec.selector != frs.selector {
            return self.replace(live).await;
        }
        let ours = self.desired(frs, replicas);
        self.patch("overwrite", &live.overwrite(&ours)).await
    }

    /// Deletes the set without its pods; the next check creates ours, which adopts them.
    async fn replace(self, live: &LiveSet) -> Result<Outcome, CallError> {
        self.delete(live, "Orphan").await?;
        let was = described(live);
        Ok(Outcome::Replaced { was })
    }
}

/// What an adoption changed in the spec that was there before.
fn changes(before: &LiveSpec, frs: &ValidFrs, replicas: u32) -> String {
    let mut changes = Vec::new();
    let replicas_before = before.replicas.unwrap_or_default();
    if replicas_before != replicas {
        changes.push(format!("replicas {replicas_before} to {replicas}"));
    }
    let (images_before, images) = (before.images(), images(&frs.template.spec));
    if images_before != images {
        changes.push(format!("images {images_before} to {images}"));
    }
    changes.push("template and labels".to_owned());
    changes.join("; ")
}

/// A description of a ReplicaSet with another selector: `replicas 2, images web:1, selector app=old`.
fn described(live: &LiveSet) -> String {
    printable(&format!(
        "replicas {}, images {}, selector {}",
        live.spec.replicas.unwrap_or_default(),
        live.spec.images(),
        fedrs_api::selector::to_text(&live.spec.selector)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn live(spec: &Value) -> LiveSet {
        serde_json::from_str(&json!({ "spec": spec }).to_string()).unwrap()
    }

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
            assert_eq!(changes(&live(&before).spec, &frs, 5), expected);
        }
        assert_eq!(
            described(&live(&spec(2, "web:1"))),
            "replicas 2, images web:1, selector app=web"
        );
    }
}
