//! A real control plane with a controller of LocalReplicaSets that is measured on it.

use std::{collections::BTreeMap, path::PathBuf};

use control_plane::{ControlPlaneSpec, Environment, EnvironmentSpec, NodeResources};
use jiff::Timestamp;
use kube::Client;
use local_controller::LEASE;

use crate::{
    ReadyWatcher,
    controller_process::{Controller, Program},
    local_manifests,
    test_environment::{account_kubeconfig, audit_entries},
};

/// The name of the cluster.
const NAME: &str = "a";
/// The kubeconfig of the controller.
const KUBECONFIG: &str = "replica-set-controller.yaml";

/// A cluster whose API server logs each request, and the controller as a process of its own, with its own account. Both end when it
/// is dropped.
pub struct MeasuredCluster {
    /// A user's client.
    pub client: Client,
    program: Program,
    controller: Option<Controller>,
    environment: Environment,
}

impl MeasuredCluster {
    /// Starts a cluster whose three nodes can have so many `pods` each, and the controller `program`.
    pub async fn start(program: PathBuf, pods: usize) -> anyhow::Result<Self> {
        let member = ControlPlaneSpec {
            name: NAME.to_owned(),
            nodes: 3,
            resources: NodeResources {
                pods: u32::try_from(pods).unwrap_or(u32::MAX),
                ..NodeResources::default()
            },
        };
        let spec = EnvironmentSpec {
            members: vec![member],
            audit: true,
        };
        let environment = Environment::start_temporary(&spec).await?;
        let member = &environment.members[0];
        let client = member.client().await?;
        local_manifests::install(&client).await;
        let kubeconfig = account_kubeconfig(LEASE, member.kubeconfig()).await;
        std::fs::write(environment.directory().join(KUBECONFIG), kubeconfig)?;
        let program = Program::of_replica_sets(program, environment.directory(), KUBECONFIG);
        let mut cluster = Self {
            client,
            program,
            controller: None,
            environment,
        };
        cluster.restart().await?;
        Ok(cluster)
    }

    /// Kills the controller and starts it again.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        drop(self.controller.take());
        self.controller = Some(self.program.start_until_ready().await?);
        Ok(())
    }

    /// The resident bytes of the controller, now and at most.
    pub fn memory(&self) -> anyhow::Result<(u64, u64)> {
        self.controller.as_ref().expect("it was started").memory()
    }

    /// Watches the ready pods of the set `name` from now on.
    pub async fn watch(&self, namespace: &str, name: &str) -> ReadyWatcher {
        let clients = BTreeMap::from([(NAME.to_owned(), self.client.clone())]);
        ReadyWatcher::of_clients(&clients, namespace, Some(name)).await
    }

    /// The writes of the controller since `since`, by verb and resource.
    pub fn writes(&self, since: Timestamp) -> anyhow::Result<BTreeMap<String, u64>> {
        let user = format!("system:serviceaccount:fedrs-system:{LEASE}");
        let mut writes = BTreeMap::new();
        for entry in audit_entries(self.environment.members[0].directory(), &user)? {
            if entry.at >= since && entry.wrote() {
                let of = format!("{} {}", entry.verb, entry.resource);
                *writes.entry(of).or_default() += 1;
            }
        }
        Ok(writes)
    }
}
