//! Calls about the Lease, each with a deadline, each write conditional on what was read.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    calls::{self, CallError},
    event::Event,
    event_recorder::{Subject, event_object},
};

/// Why a call about the Lease did not bring what it was made for.
#[derive(Debug, thiserror::Error)]
pub(super) enum LeaseError {
    /// Somebody else wrote, made or deleted it since it was read.
    #[error("another process has written it")]
    Conflict,
    /// The host said no, could not be asked, or didn't answer in time.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The answer is not a Lease.
    #[error("unexpected response: {0}")]
    Answer(#[from] serde_json::Error),
    /// There is nowhere to make it.
    #[error(
        "failed to create namespace {namespace} on the host ({source}): create it, or choose another with --namespace"
    )]
    Namespace {
        /// The missing namespace.
        namespace: String,
        /// Why it can't be created.
        source: CallError,
    },
}

impl LeaseError {
    fn code(&self) -> Option<u16> {
        match self {
            Self::Call(error) => error.code(),
            _ => None,
        }
    }
}

/// One Lease on the host.
pub(super) struct HostLease {
    pub(super) host: Client,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The longest a call may take.
    pub(super) timeout: Duration,
}

impl HostLease {
    /// The Lease, if it is there.
    pub(super) async fn get(&self) -> Result<Option<Lease>, LeaseError> {
        match self.call(calls::get(&self.host, &self.path())).await {
            Ok(lease) => Ok(Some(serde_json::from_value(lease)?)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes it, and its namespace where that is missing.
    pub(super) async fn create(&self, spec: &LeaseSpec) -> Result<Lease, LeaseError> {
        match self.post(spec).await {
            Err(error) if error.code() == Some(404) => {
                self.create_namespace().await?;
                self.post(spec).await
            }
            answer => answer,
        }
    }

    /// Writes `lease` over what it was read from.
    pub(super) async fn replace(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        let object = serde_json::to_value(lease)?;
        match self
            .call(calls::put(&self.host, &self.path(), &object))
            .await
        {
            Ok(lease) => Ok(serde_json::from_value(lease)?),
            Err(error) if matches!(error.code(), Some(404 | 409)) => Err(LeaseError::Conflict),
            Err(error) => Err(error),
        }
    }

    /// Tells of the Lease, for `kubectl describe lease`.
    pub(super) async fn record(
        &self,
        lease: &Lease,
        message: &str,
        now: Timestamp,
    ) -> Result<(), LeaseError> {
        let name = format!("{}.{:016x}", self.name, now.as_nanosecond());
        let subject = Subject {
            api_version: "coordination.k8s.io/v1",
            kind: "Lease",
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: lease.metadata.uid.clone().unwrap_or_default(),
        };
        let event = Event::normal("LeaderElection", message);
        let event = event_object(&subject, &event, &self.namespace, &name, 1, now);
        let path = format!("/api/v1/namespaces/{}/events", self.namespace);
        self.call(calls::post(&self.host, &path, &event)).await?;
        Ok(())
    }

    async fn post(&self, spec: &LeaseSpec) -> Result<Lease, LeaseError> {
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "spec": spec,
        });
        match self
            .call(calls::post(&self.host, &self.folder(), &object))
            .await
        {
            Ok(lease) => Ok(serde_json::from_value(lease)?),
            Err(error) if error.code() == Some(409) => Err(LeaseError::Conflict),
            Err(error) => Err(error),
        }
    }

    async fn create_namespace(&self) -> Result<(), LeaseError> {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": self.namespace },
        });
        match self
            .call(calls::post(&self.host, "/api/v1/namespaces", &namespace))
            .await
        {
            Ok(_) => {
                tracing::info!(namespace = %self.namespace, "created the namespace of the Lease");
                Ok(())
            }
            // Another candidate was quicker.
            Err(error) if error.code() == Some(409) => Ok(()),
            Err(LeaseError::Call(source @ CallError::Api(_))) => Err(LeaseError::Namespace {
                namespace: self.namespace.clone(),
                source,
            }),
            Err(error) => Err(error),
        }
    }

    async fn call(
        &self,
        call: impl Future<Output = kube::Result<Value>>,
    ) -> Result<Value, LeaseError> {
        Ok(calls::within(self.timeout, call).await?)
    }

    fn folder(&self) -> String {
        format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            self.namespace
        )
    }

    fn path(&self) -> String {
        format!("{}/{}", self.folder(), self.name)
    }
}
