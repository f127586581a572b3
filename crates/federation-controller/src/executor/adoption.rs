//! Adopts a workload that has the name of a local one (F29): it existed before, or lost fedrs's labels.
//!
//! A ReplicaSet gets our template, which is for new pods. In a Deployment any difference of the template replaces all pods. So
//! the one that was found stays, also without our labels: these enter with the next template that the user writes, by a
//! rollout. What differs from the user's own template is a rollout as well.

use controller_base::calls::{self, CallError};
use federated_rollout::Strategy;
use fedrs_api::{LocalKind, RejectionKind};
use reflector::printable;

use super::{
    LocalWorkload, failed_write,
    json_patch::{JsonPatch, Operand},
    live_set::{LiveSet, LiveSpec, Over, images},
    rollout::{add_local_defaults, add_local_loan, add_local_strategy, add_settings},
};
use crate::{check::Outcome, manifest::Source};

impl LocalWorkload<'_> {
    /// Adopts an existing workload of this name (F29), or returns why it must not.
    pub(super) async fn adopt(self, source: &Source<'_>, replicas: u32) -> Outcome {
        let live = match self.get().await {
            Ok(live) => live,
            // Gone since the POST: the next check creates it.
            Err(error) => return failed_write(&error),
        };
        if live.metadata.is_deleting {
            // Most deletions end in a moment; one that hangs counts as a rejection later.
            return Outcome::Failed(format!("the existing {} is being deleted", self.kind()));
        }
        if let Some(message) = self.foreign_owner(&live) {
            let kind = RejectionKind::NameConflict;
            return Outcome::Rejected { kind, message };
        }
        let replicas = live.kept_replicas(replicas, source.frs.replicas);
        let has_desired = match self.key.kind {
            LocalKind::ReplicaSet => true,
            LocalKind::Deployment | LocalKind::LocalReplicaSet => {
                match self.has_template(source, &live).await {
                    Ok(has_template) => has_template,
                    Err(error) => return failed_write(&error),
                }
            }
        };
        // Its status does not say which of its pods have our labels.
        if self.key.kind == LocalKind::LocalReplicaSet {
            let labeled = self.label_pods(source, &live.metadata.uid, live.metadata.generation);
            if let Err(error) = Box::pin(labeled).await {
                return failed_write(&error);
            }
        }
        match self.write_over(source, &live, replicas, Over::Found).await {
            Ok(Outcome::Written(set)) => Outcome::Adopted {
                changed: changes(source, &live.spec, set.replicas),
                has_desired,
                set,
            },
            Ok(outcome) => outcome,
            Err(error) => failed_write(&error),
        }
    }

    /// Writes our spec and labels over the workload that was read as `live`, and keeps the metadata of others. Its pods stay.
    /// A Deployment keeps its template; if it is found, its pause as well, since its pods may be of several templates, and it
    /// gets the strategy without a loan. So does a LocalReplicaSet, which is paused then. If its selector differs, or the segment of
    /// nodes of a LocalReplicaSet, which are immutable, deletes the workload without its pods: the next check creates ours.
    pub(super) async fn write_over(
        self,
        source: &Source<'_>,
        live: &LiveSet,
        replicas: u32,
        over: Over,
    ) -> Result<Outcome, CallError> {
        if !live.spec.has_immutable(&source.frs.selector) {
            return self.replace(live).await;
        }
        let is_found = over == Over::Found;
        let ours = self.desired(source, replicas);
        let metadata = &live.metadata;
        let mut patch = JsonPatch::of_read(&metadata.uid, &metadata.resource_version);
        match self.key.kind {
            LocalKind::ReplicaSet => patch.replace("/spec", Operand::Spec(&ours.spec)),
            LocalKind::Deployment => {
                patch.add("/spec/replicas", replicas.into());
                add_settings(&mut patch, source);
                if is_found {
                    let strategy = Strategy::WITHOUT_LOAN.into();
                    patch.add("/spec/strategy", Operand::Strategy(strategy));
                } else if over == (Over::Own { keeps_pause: false }) {
                    patch.add("/spec/paused", Operand::Bool(false));
                }
            }
            LocalKind::LocalReplicaSet => {
                patch.add("/spec/replicas", replicas.into());
                add_settings(&mut patch, source);
                add_local_defaults(&mut patch);
                // What is lent stays, at the set's own speed; whoever changed it to a percentage has nothing.
                let kept = live.spec.max_unavailable().filter(|_| !is_found);
                match Strategy::new(kept.unwrap_or(0).into(), 0) {
                    strategy if strategy.pods() > 0 => {
                        add_local_strategy(&mut patch, source, strategy);
                    }
                    strategy => add_local_loan(&mut patch, source, strategy),
                }
            }
        }
        let labels = ours.labels().iter().map(|(key, value)| (*key, *value));
        patch.add_labels(live.has_labels(), labels);
        self.patch("overwrite", &patch).await
    }

    /// Whether the Deployment that was read as `live` has the user's template, with our labels or without any: whether a write
    /// of it would change nothing, what the API server adds included. Writes nothing.
    pub(super) async fn has_template(
        self,
        source: &Source<'_>,
        live: &LiveSet,
    ) -> Result<bool, CallError> {
        if !live.spec.has_immutable(&source.frs.selector) {
            return Ok(false);
        }
        let template = if live.spec.has_labeled_template() {
            source.template()
        } else {
            source.bare_template()
        };
        let metadata = &live.metadata;
        let mut patch = JsonPatch::of_generation(&metadata.uid, metadata.generation);
        patch.replace("/spec/template", Operand::Template(&template));
        let path = self.path();
        let call = calls::dry_json_patch(&self.member.client, &path, &patch);
        match self.call("compare template", call).await {
            Ok(LiveSet { metadata, .. }) => Ok(metadata.generation == live.metadata.generation),
            // It is written by a rollout, which reports the rejection.
            Err(error) if error.code() == Some(422) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the workload without its pods; the next check creates ours, which adopts them.
    async fn replace(self, live: &LiveSet) -> Result<Outcome, CallError> {
        self.delete(live, "Orphan").await?;
        let was = described(live);
        Ok(Outcome::Replaced { was })
    }
}

/// What an adoption changed in the spec that was there before.
fn changes(source: &Source<'_>, before: &LiveSpec, replicas: u32) -> String {
    let mut changes = Vec::new();
    let replicas_before = before.replicas.unwrap_or_default();
    if replicas_before != replicas {
        changes.push(format!("replicas {replicas_before} to {replicas}"));
    }
    if source.frs.local != LocalKind::ReplicaSet {
        changes.push("strategy, settings and labels".to_owned());
        return changes.join("; ");
    }
    let (images_before, images) = (before.images(), images(&source.frs.template.spec));
    if images_before != images {
        changes.push(format!("images {images_before} to {images}"));
    }
    changes.push("template and labels".to_owned());
    changes.join("; ")
}

/// A description of a workload with another selector: `replicas 2, images web:1, selector app=old`.
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
    use fedrs_api::ValidFrs;
    use serde_json::{Value, json};

    use super::*;
    use crate::manifest::DeploymentSettings;

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
            let source = Source {
                frs: &frs,
                deployment: DeploymentSettings::default(),
                federation: "",
            };
            assert_eq!(changes(&source, &live(&before).spec, 5), expected);
        }
        assert_eq!(
            described(&live(&spec(2, "web:1"))),
            "replicas 2, images web:1, selector app=web"
        );
    }
}
