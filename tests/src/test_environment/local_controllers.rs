//! The controller of LocalReplicaSets in members: it needs no other part of fedrs.
//!
//! ```text
//! sim:   a task of this process, as its account in the embedded cluster
//! local: the process `fedrs replica-set-controller`, with a token of its account
//! ```
//!
//! Both have exactly the permissions of the manifests.

use std::fs;

use fedrs_api::names::SYSTEM_NAMESPACE;
use local_controller::{LEASE, LocalControllerConfig};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    Clusters, TestEnvironment,
    local_process::{self, LocalProcess},
    program::{self, Program},
    service_account,
    spec::{is_missing, short_waits},
};

impl TestEnvironment {
    /// Starts the controller of LocalReplicaSets in a member, or starts it again after it was killed
    /// ([`Capability::LocalReplicaSets`](super::Capability)).
    pub async fn start_local_controller(&mut self, member: &str) {
        if !self.local_controllers.contains_key(member) {
            let prepared = self.prepare_local_controller(member).await;
            self.local_controllers.insert(member.to_owned(), prepared);
        }
        let process = self.local_controllers.get_mut(member);
        match (&self.clusters, process.expect("it was prepared")) {
            (Clusters::Embedded(embedded), LocalProcess::Embedded(running)) => {
                *running = Some(local_process::start(embedded.federation().member(member)));
            }
            (Clusters::Real(_), LocalProcess::Program(directory, program)) => {
                *program = Some(Program::start_local(directory.path()));
            }
            _ => unreachable!("the process is of the kind of the clusters"),
        }
    }

    /// Kills the controller of LocalReplicaSets in a member.
    pub async fn kill_local_controller(&mut self, member: &str) {
        match self.local_controllers.get_mut(member) {
            Some(LocalProcess::Embedded(running)) => {
                let (cancel, running) = running.take().expect("it runs");
                cancel.cancel();
                running.joined().await;
            }
            Some(LocalProcess::Program(_, program)) => *program = None,
            None => panic!("no controller of LocalReplicaSets was started in {member}"),
        }
    }

    /// Kills all of them, and deletes their Leases, so that nobody waits until they expire.
    pub(super) async fn remove_local_controllers(&mut self) {
        let members: Vec<_> = self.local_controllers.keys().cloned().collect();
        self.local_controllers.clear();
        for member in members {
            let path = format!(
                "/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/{LEASE}"
            );
            let removed = self.on_member(&member, "DELETE", &path, &Value::Null).await;
            assert!(removed.is_ok() || is_missing(&removed), "{removed:?}");
        }
    }

    /// The ends of the logs of all of them.
    pub(super) fn local_logs(&self) -> String {
        let processes = self.local_controllers.values();
        let logs = processes.filter_map(|process| match process {
            LocalProcess::Embedded(_) => None,
            LocalProcess::Program(directory, _) => Some(program::log(directory.path())),
        });
        logs.collect::<Vec<_>>().join("\n---\n")
    }

    async fn prepare_local_controller(&self, member: &str) -> LocalProcess {
        match &self.clusters {
            Clusters::Embedded(embedded) => {
                local_process::prepare(embedded.federation().member(member)).await;
                LocalProcess::Embedded(None)
            }
            // The manifests were applied when the clusters started.
            Clusters::Real(real) => {
                let route = &real.shared.members[member].direct;
                let kubeconfig = service_account::kubeconfig(LEASE, route, route).await;
                let config = LocalControllerConfig {
                    leader_election: short_waits().leader_election,
                    ..LocalControllerConfig::default()
                };
                let config = serde_json::to_string(&config).expect("plain data");
                let directory = TempDir::with_prefix("fedrs-local-");
                let directory = directory.expect("a temporary directory");
                for (file, text) in [("host.yaml", kubeconfig), ("controller.yaml", config)] {
                    fs::write(directory.path().join(file), text).expect("a file can be written");
                }
                LocalProcess::Program(directory, None)
            }
        }
    }
}
