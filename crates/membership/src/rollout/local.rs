//! The rollout of a LocalReplicaSet over its pods.

use fedrs_api::{LocalReplicaSet, RevisionPods, labels};
use serde_json::{Value, json};

use super::kind::{Observed, RolloutKind, Users};

impl RolloutKind for LocalReplicaSet {
    type Part = RevisionPods;

    const COMMAND: &'static str = "fedrs lrs";
    const REVISION_LABEL: &'static str = labels::LOCAL_REPLICA_SET;

    fn remove_record(object: &mut Value) {
        let status = object.get_mut("status").and_then(Value::as_object_mut);
        status.and_then(|status| status.remove("record"));
    }

    fn is_paused(&self) -> bool {
        self.spec.paused
    }

    fn revision_fields(&self) -> Value {
        let constraints = self.spec.constraints.iter();
        let antiaffinity = constraints.flat_map(|all| &all.antiaffinity);
        json!({
            "template": self.spec.template,
            "accountId": self.spec.account_id,
            "constraints": { "antiaffinity": antiaffinity.collect::<Vec<_>>() },
        })
    }

    fn observed(&self) -> Observed<'_> {
        let desired = self.spec.replicas;
        let Some(status) = &self.status else {
            return Observed {
                desired,
                ..Observed::default()
            };
        };
        Observed {
            generation: status.observed_generation,
            current_revision: status.current_revision.as_deref(),
            update_revision: status.update_revision.as_deref(),
            desired,
            pods: status.replicas,
            updated: status.updated_replicas,
            available: status.available_replicas,
            conditions: &status.conditions,
            awaited_step: None,
        }
    }

    /// The pods of each revision, by group (L16).
    fn parts(&self) -> Vec<RevisionPods> {
        let status = self.status.as_ref();
        status.map_or_else(Vec::new, |status| status.revisions.clone())
    }

    fn users(&self, revision: &str) -> Users {
        let of_revisions = self.status.iter().flat_map(|status| &status.revisions);
        let with_it = of_revisions.filter(|pods| pods.revision == revision);
        Users::Pods(
            with_it
                .map(|pods| pods.ready + pods.in_progress + pods.failed + pods.marked_remove)
                .sum(),
        )
    }
}
