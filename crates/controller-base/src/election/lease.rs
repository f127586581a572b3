//! Calls about the Lease, each with a deadline, each write conditional on what was read.

use std::time::Duration;

use fedrs_api::names::FIELD_MANAGER;
use jiff::Timestamp;
use k8s_openapi::api::{
    coordination::v1::{Lease, LeaseSpec},
    core::v1::Namespace,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use serde::de::IgnoredAny;

use crate::{
    calls::{self, CallError},
    event::Event,
    event_recorder::{InvolvedObject, event_object},
};

/// Why a call about the Lease failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum LeaseError {
    /// Another process has written, created or deleted it since it was read.
    #[error("another process has written it")]
    Conflict,
    /// The host rejects the call, or does not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The namespace of the Lease does not exist.
    #[error(
        "failed to create namespace {namespace} for the Lease ({source}): create it, or choose another with --namespace"
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
    /// Who reports events about it.
    pub(super) component: &'static str,
    /// The longest a call may take.
    pub(super) timeout: Duration,
}

impl HostLease {
    /// The Lease, if it exists.
    pub(super) async fn get(&self) -> Result<Option<Lease>, LeaseError> {
        self.call(self.leases().get_opt(&self.name)).await
    }

    /// Creates the Lease, and its namespace if that does not exist.
    pub(super) async fn create(&self, spec: LeaseSpec) -> Result<Lease, LeaseError> {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(spec),
        };
        let (leases, managed) = (self.leases(), managed());
        let created = match self.call(leases.create(&managed, &lease)).await {
            Err(error) if error.code() == Some(404) => {
                self.create_namespace().await?;
                self.call(leases.create(&managed, &lease)).await
            }
            created => created,
        };
        created.map_err(conflict_if(&[409]))
    }

    /// Writes `lease`, unless it has changed since it was read.
    pub(super) async fn replace(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        let replaced = self
            .call(self.leases().replace(&self.name, &managed(), lease))
            .await;
        replaced.map_err(conflict_if(&[404, 409]))
    }

    /// Records an event about the Lease, for `kubectl describe lease`.
    pub(super) async fn record(
        &self,
        lease: &Lease,
        message: &str,
        now: Timestamp,
    ) -> Result<(), LeaseError> {
        let name = format!("{}.{:016x}", self.name, now.as_nanosecond());
        let involved = InvolvedObject {
            api_version: "coordination.k8s.io/v1",
            kind: "Lease",
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: lease.metadata.uid.clone().unwrap_or_default(),
        };
        let event = Event::normal("LeaderElection", message);
        let event = event_object(
            self.component,
            (&involved, &event),
            &self.namespace,
            &name,
            1,
            now,
        );
        let path = format!("/api/v1/namespaces/{}/events", self.namespace);
        let IgnoredAny = self.call(calls::post(&self.host, &path, &event)).await?;
        Ok(())
    }

    async fn create_namespace(&self) -> Result<(), LeaseError> {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let namespaces = Api::<Namespace>::all(self.host.clone());
        match self.call(namespaces.create(&managed(), &namespace)).await {
            Ok(_) => {
                tracing::info!(namespace = %self.namespace, "created the namespace of the Lease");
                Ok(())
            }
            // Another candidate created it first.
            Err(error) if error.code() == Some(409) => Ok(()),
            Err(LeaseError::Call(source @ CallError::Api(_))) => Err(LeaseError::Namespace {
                namespace: self.namespace.clone(),
                source,
            }),
            Err(error) => Err(error),
        }
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, LeaseError> {
        Ok(calls::within(self.timeout, call).await?)
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.host.clone(), &self.namespace)
    }
}

fn managed() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// Turns a rejection with one of these HTTP statuses into a conflict.
fn conflict_if(codes: &'static [u16]) -> impl Fn(LeaseError) -> LeaseError {
    |error| match error.code() {
        Some(code) if codes.contains(&code) => LeaseError::Conflict,
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::{super::fence::TermOver, *};

    #[test]
    fn each_error_of_the_election_once() {
        let rejected = || {
            let status = Status::failure("namespaces is forbidden", "Forbidden").with_code(403);
            CallError::Api(kube::Error::Api(status.boxed()))
        };
        let errors = [
            LeaseError::Conflict,
            LeaseError::Call(CallError::Deadline(Duration::from_secs(5))),
            LeaseError::Call(rejected()),
            LeaseError::Namespace {
                namespace: "fedrs-system".to_owned(),
                source: rejected(),
            },
        ]
        .map(|error| error.to_string());
        let over = [TermOver::NotSent, TermOver::Aborted].map(|error| error.to_string());
        insta::assert_snapshot!([&errors[..], &over[..]].concat().join("\n"), @r"
        another process has written it
        no answer within 5s
        namespaces is forbidden
        failed to create namespace fedrs-system for the Lease (namespaces is forbidden): create it, or choose another with --namespace
        not sent: this process no longer leads
        aborted: this process no longer leads
        ");
    }
}
