//! MigrationPolicies and MigrationRequests as the API server has them.

use std::{sync::Arc, time::Duration};

use fedrs_api::{
    FieldError, MigrationCause, MigrationPolicy, MigrationRequest, MigrationRequestStatus,
    MigrationWaitReason, ValidMigrationPolicy, names,
};
use jiff::Timestamp;
use kube::core::ObjectMeta;
use reflector::Versioned;
use replica_set_controller::Confirmed;
use serde::Deserialize;

/// A MigrationPolicy that is watched.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct PolicyObject(MigrationPolicy);

/// A MigrationRequest.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct RequestObject(pub(crate) MigrationRequest);

/// A MigrationPolicy in the store.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) version: String,
    pub(crate) valid: Result<Arc<ValidMigrationPolicy>, Vec<FieldError>>,
}

impl Versioned for PolicyObject {
    fn resource_version(&self) -> Option<&str> {
        self.0.metadata.resource_version.as_deref()
    }
}

impl Versioned for RequestObject {
    fn resource_version(&self) -> Option<&str> {
        self.0.metadata.resource_version.as_deref()
    }
}

impl PolicyObject {
    /// Namespace and name.
    pub(crate) fn id(&self) -> (&str, &str) {
        id(&self.0.metadata)
    }

    pub(crate) fn policy(&self) -> Policy {
        Policy {
            version: self.resource_version().unwrap_or_default().to_owned(),
            valid: ValidMigrationPolicy::check(&self.0.spec).map(Arc::new),
        }
    }
}

impl RequestObject {
    /// Namespace and name.
    pub(crate) fn id(&self) -> (&str, &str) {
        id(&self.0.metadata)
    }

    pub(crate) fn version(&self) -> &str {
        self.resource_version().unwrap_or_default()
    }

    pub(crate) fn uid(&self) -> &str {
        self.0.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn pod_name(&self) -> &str {
        &self.0.spec.pod_name
    }

    pub(crate) fn status(&self) -> Option<&MigrationRequestStatus> {
        self.0.status.as_ref()
    }

    /// The uid of the pod, once it is known.
    pub(crate) fn pod_uid(&self) -> Option<&str> {
        let status = self.status().map(|status| &*status.pod_uid);
        let seen = status.filter(|uid| !uid.is_empty());
        seen.or(self.0.spec.pod_uid.as_deref())
    }

    /// The LocalReplicaSet of the pod, once it is known.
    pub(crate) fn replica_set(&self) -> Option<&str> {
        let status = self.status().filter(|status| status.native.is_none())?;
        Some(&*status.replica_set).filter(|set| !set.is_empty())
    }

    /// The workload of a pod of a ReplicaSet, once it is known: its Deployment, or else the ReplicaSet.
    pub(crate) fn workload(&self) -> Option<String> {
        let status = self.status()?;
        let deployment = &status.native.as_ref()?.deployment;
        Some(if deployment.is_empty() {
            format!("replicasets/{}", status.replica_set)
        } else {
            format!("deployments/{deployment}")
        })
    }

    /// The earlier one of the deadline that it names, unless a person has cancelled it, and the time `after` it was made (M15).
    pub(crate) fn deadline(&self, after: Duration) -> Timestamp {
        let latest = self.created().checked_add(after);
        let latest = latest.unwrap_or(Timestamp::MAX);
        let spec = &self.0.spec;
        let asked = spec.deadline.as_ref().filter(|_| !spec.cancel);
        asked.map_or(latest, |asked| asked.0.min(latest))
    }

    /// When it ended; `None` if it has not.
    pub(crate) fn ended(&self) -> Option<Timestamp> {
        self.status()?.ended()
    }

    /// Whether it was acknowledged that its ticket is closed (M8).
    pub(crate) fn is_closed(&self) -> bool {
        let notified = self.status().and_then(|status| status.notified.as_ref());
        notified.is_some_and(|notified| notified.closed.is_some())
    }

    pub(crate) fn created(&self) -> Timestamp {
        let created = self.0.metadata.creation_timestamp.as_ref();
        created.map_or(Timestamp::UNIX_EPOCH, |created| created.0)
    }

    pub(crate) fn is_compaction(&self) -> bool {
        self.0.spec.cause == MigrationCause::Compaction
    }

    /// What persons have confirmed.
    pub(crate) fn confirmed(&self) -> Confirmed {
        let spec = &self.0.spec;
        Confirmed {
            is_stopped: spec.confirmation.is_some(),
            may_activate: spec.activation_confirmed_by.is_some(),
            may_shut_down: spec.shutdown_confirmed_by.is_some(),
        }
    }

    /// Whether a person has cancelled it. One that was made for a mark continues while that is there: what it asks of a person, nobody
    /// could confirm otherwise.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.spec.cancel && !self.follows_its_cause()
    }

    /// Whether this controller has made it, and it only says what the pod or its node asks for: its controller is the set of the pod, or the
    /// Deployment of that.
    pub(crate) fn follows_its_cause(&self) -> bool {
        let owners = self.0.metadata.owner_references.iter().flatten();
        let mut controllers = owners.filter(|owner| owner.controller == Some(true));
        controllers.any(|owner| {
            let kind = (&*owner.api_version, &*owner.kind);
            let local = (names::API_VERSION, "LocalReplicaSet");
            [local, ("apps/v1", "ReplicaSet"), ("apps/v1", "Deployment")].contains(&kind)
        })
    }

    /// Whether it waits because of what its policy asks for and pods of ReplicaSets do not support: it holds up no other one.
    pub(crate) fn is_parked(&self) -> bool {
        let reason = MigrationWaitReason::PolicyNotSupported.as_str();
        self.status().is_some_and(|status| status.reason == reason)
    }
}

fn id(metadata: &ObjectMeta) -> (&str, &str) {
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}
