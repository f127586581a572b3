//! A federated set of either kind, as the commands read it.

use fedrs_api::{
    FederatedDeployment, FederatedReplicaSet, FederatedReplicaSetStatus, FieldError, ObjectKey,
    RolloutSettings, SetKind, ValidFederatedDeployment, ValidFrs,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What the commands read of a set.
#[derive(Clone, Debug)]
pub struct FederatedSet {
    /// Its kind.
    pub kind: SetKind,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// `spec.replicas`.
    pub replicas: i32,
    /// What the controller works with; the errors if it is invalid.
    pub valid: Result<ValidSet, Vec<FieldError>>,
    /// The status; an empty one if there is none.
    pub status: FederatedReplicaSetStatus,
}

/// A valid set of either kind.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidSet {
    /// What both kinds have.
    pub frs: ValidFrs,
    /// How a FederatedDeployment is rolled out.
    pub rollout: Option<RolloutSettings>,
}

impl From<ValidFrs> for ValidSet {
    fn from(frs: ValidFrs) -> Self {
        Self { frs, rollout: None }
    }
}

impl From<ValidFederatedDeployment> for ValidSet {
    fn from(deployment: ValidFederatedDeployment) -> Self {
        Self {
            frs: deployment.set,
            rollout: Some(deployment.rollout),
        }
    }
}

impl FederatedSet {
    /// A FederatedReplicaSet.
    #[must_use]
    pub fn of_frs(set: FederatedReplicaSet) -> Self {
        Self {
            kind: SetKind::FederatedReplicaSet,
            valid: ValidFrs::check(&set).map(ValidSet::from),
            replicas: set.spec.replicas,
            status: set.status.unwrap_or_default(),
            metadata: set.metadata,
        }
    }

    /// A FederatedDeployment.
    #[must_use]
    pub fn of_deployment(set: FederatedDeployment) -> Self {
        Self {
            kind: SetKind::FederatedDeployment,
            valid: ValidFederatedDeployment::check(&set).map(ValidSet::from),
            replicas: set.spec.replicas,
            status: set.status.unwrap_or_default(),
            metadata: set.metadata,
        }
    }

    /// The key of the set.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let ObjectMeta {
            namespace, name, ..
        } = &self.metadata;
        ObjectKey::of_kind(self.kind, text(namespace), text(name))
    }
}
