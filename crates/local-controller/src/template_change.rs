//! What a change of the template does to pods, before it is made: for commands.

use std::sync::Arc;

use fedrs_api::{FieldError, LocalReplicaSet, PodTemplate, ResourceUpdates, ValidLocalReplicaSet};
use replica_set_controller::{Change, CompleteTemplate};
use serde_json::Value;

use crate::revisions::complete_template;

/// The template that pods get: with what the controller adds to it (L1, L3).
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateOfPods(PodTemplate);

impl TemplateOfPods {
    /// That of a spec.
    pub fn of_set(set: &LocalReplicaSet) -> Result<Self, Vec<FieldError>> {
        let valid = ValidLocalReplicaSet::check(set)?;
        let template = CompleteTemplate::of(&valid).template;
        Ok(Self(Arc::unwrap_or_clone(template)))
    }

    /// That of a revision, from the data of its ControllerRevision; `None` if they can't be read.
    #[must_use]
    pub fn of_revision(data: &Value) -> Option<Self> {
        complete_template(data).map(Self)
    }

    /// How a pod with this template gets to the template `to` (L12), if CPU and memory are updated in this way.
    #[must_use]
    pub fn change(&self, to: &Self, resources: ResourceUpdates) -> Change {
        Change::between(&self.0, &to.0, resources)
    }
}
