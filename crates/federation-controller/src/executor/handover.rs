//! Hands the pods of a ReplicaSet over to the Deployment that takes its place: those that a FederatedReplicaSet left when it was
//! deleted with `deletionPolicy: Orphan` (F29, F30).
//!
//! ```text
//! GET replicaset of the name: unowned, of the same selector, released
//!   -> PATCH its labels, by which the Deployment claims it
//!   -> POST the Deployment with its template, and at least as many replicas
//!   -> compare the template by a dry run, as that of a Deployment that was found
//! ```
//!
//! A Deployment replaces the pods of every other template. So it is created with the one that is there: what differs from the
//! user's template is rolled out within the budget.

use controller_base::calls::{self, CallError};
use fedrs_api::LocalKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reflector::limited_value;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    LocalWorkload, creation::failed_creation, failed_write, json_patch::JsonPatch,
    live_set::LiveSet,
};
use crate::{check::Outcome, manifest::Source};

/// The values that a ReplicaSet may have: as many as a template.
const MAX_VALUES: usize = 20_000;

/// A ReplicaSet with its template.
struct FoundReplicaSet {
    live: LiveSet,
    template: Value,
}

impl<'de> Deserialize<'de> for FoundReplicaSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = limited_value::<MAX_VALUES, _>(deserializer)?;
        let template = object.pointer_mut("/spec/template").map(Value::take);
        Ok(Self {
            live: LiveSet::deserialize(object).map_err(serde::de::Error::custom)?,
            template: template.unwrap_or_default(),
        })
    }
}

impl FoundReplicaSet {
    /// Whether a Deployment with this selector takes its place: nobody else has it.
    fn is_left_behind(&self, selector: &LabelSelector) -> bool {
        let live = &self.live;
        !live.metadata.is_deleting
            && !live.has_controller()
            && live.federation().is_none()
            && live.spec.selector == *selector
    }
}

impl LocalWorkload<'_> {
    /// Creates the Deployment around the ReplicaSet of its name that was left behind, if there is one, with at least so many
    /// `replicas`: running ones stay. No pod restarts. The member is asked each time: what was left behind has no label that a
    /// watch selects by.
    pub(super) async fn take_over(self, source: &Source<'_>, replicas: u32) -> Option<Outcome> {
        let path = self.replica_set();
        let found = calls::get::<FoundReplicaSet>(&self.member.client, &path);
        let found = match self.call("get replicaset", found).await {
            Ok(found) if found.is_left_behind(&source.frs.selector) => found,
            Ok(_) => return None,
            Err(error) if error.code() == Some(404) => return None,
            Err(error) => return Some(failed_creation(&error)),
        };
        if let Err(error) = self.label_as_in_template(&found).await {
            return Some(failed_write(&error));
        }
        let replicas = found.live.kept_replicas(replicas, source.frs.replicas);
        let mut deployment = json!(self.desired(source, replicas));
        deployment["spec"]["template"] = found.template;
        Some(match self.post(&deployment).await {
            Ok(Outcome::Written(set)) => match self.live_has_template(source).await {
                Ok(has_desired) => Outcome::Adopted {
                    set,
                    has_desired,
                    changed: "its ReplicaSet was left behind".to_owned(),
                },
                Err(error) => failed_write(&error),
            },
            Ok(outcome) => outcome,
            Err(error) if error.code() == Some(409) => Box::pin(self.adopt(source, replicas)).await,
            Err(error) => failed_creation(&error),
        })
    }

    async fn live_has_template(self, source: &Source<'_>) -> Result<bool, CallError> {
        self.has_template(source, &self.get().await?).await
    }

    /// A Deployment claims the ReplicaSets whose labels match its selector; those that fedrs wrote need not have such labels.
    async fn label_as_in_template(self, found: &FoundReplicaSet) -> Result<(), CallError> {
        let FoundReplicaSet { live, template } = found;
        let wanted = template
            .pointer("/metadata/labels")
            .and_then(Value::as_object);
        let texts = wanted.into_iter().flatten();
        let texts = texts.filter_map(|(key, value)| Some((&**key, value.as_str()?)));
        let metadata = &live.metadata;
        let mut patch = JsonPatch::of_read(&metadata.uid, &metadata.resource_version);
        patch.add_labels(live.has_labels(), texts);
        let path = self.replica_set();
        let call = calls::json_patch::<IgnoredAny>(&self.member.client, &path, &patch);
        self.call("patch replicaset", call).await?;
        Ok(())
    }

    fn replica_set(self) -> String {
        let collection = self.collection_of(LocalKind::ReplicaSet);
        format!("{collection}/{}", self.key.name)
    }
}
