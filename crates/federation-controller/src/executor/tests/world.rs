//! A set of each kind, and an executor for one member.

use std::{sync::Arc, time::Duration};

use cluster_informer::ClusterStore;
use controller_base::{calls::CallError, event::Event};
use fedrs_api::{DeletionPolicy, EventReason, LocalKind, ValidFrs, WorkloadKey};
use jiff::Timestamp;
use kube::Client;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use super::super::{Executor, LocalWorkload, MemberAccess, Slots};
use crate::{
    check::{Action, Outcome, Precondition, SetChange},
    config::Config,
    manifest::{DeploymentSettings, Source},
    metrics::Metrics,
};

pub(super) const FEDERATION: &str = "blue";

/// The valid set `default/web` of a kind: its pods run this image.
pub(super) fn set(kind: LocalKind, image: &str) -> ValidFrs {
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedReplicaSet",
        "metadata": { "name": "web", "namespace": "default", "uid": "u", "labels": { "team": "x" } },
        "spec": { "selector": selector(), "template": template(image), "minReadySeconds": 1 },
    });
    let mut set = ValidFrs::check(&serde_json::from_value(object).unwrap()).unwrap();
    set.key.kind = kind.of_sets();
    set.local = kind;
    set
}

/// The local workload as the check has seen it.
pub(super) fn seen() -> Precondition {
    Precondition {
        uid: "w".to_owned(),
        generation: 4,
        spec_version: 4,
        has_owners: false,
        resource_version: None,
    }
}

pub(super) fn selector() -> Value {
    json!({ "matchLabels": { "app": "web" } })
}

/// The template as a user writes it.
pub(super) fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": image }] },
    })
}

/// The writes to one member.
pub(super) struct Writer {
    executor: Executor,
    access: MemberAccess,
}

impl Writer {
    pub(super) fn new(client: Client) -> Self {
        let store = ClusterStore::new(Arc::new(Timestamp::now), Duration::from_secs(60));
        Self {
            executor: Executor {
                federation: FEDERATION.into(),
                call_timeout: Duration::from_secs(10),
                namespaces: Config::default().namespaces,
                host_namespaces: Arc::default(),
                metrics: Metrics::register(&mut Registry::default()),
                tasks: tokio_util::task::TaskTracker::new(),
                cancel: tokio_util::sync::CancellationToken::new(),
            },
            access: MemberAccess {
                name: "eu".into(),
                client,
                store: Arc::new(store),
                slots: Slots::new(1),
            },
        }
    }

    /// Carries out `change` of the local workload of `set`.
    pub(super) async fn carry_out(&self, set: &ValidFrs, change: SetChange) -> Outcome {
        let source = Source {
            frs: set,
            deployment: DeploymentSettings::default(),
            federation: FEDERATION,
        };
        let workload = LocalWorkload {
            executor: &self.executor,
            member: &self.access,
            key: &set.workload_key(),
        };
        let action = Action {
            member: "eu".to_owned(),
            event: Event::normal(EventReason::Updated, ""),
            is_news: true,
            change,
            repairs: false,
        };
        workload.act(&source, &action).await
    }

    pub(super) async fn release_or_delete(
        &self,
        key: &WorkloadKey,
        uid: &str,
        policy: DeletionPolicy,
    ) -> Result<(), CallError> {
        let released = self
            .executor
            .release_or_delete(key, &self.access, uid, policy);
        released.await
    }
}
