//! Several controllers of one federation ([`Capability::ControllerProcess`](super::Capability),

use std::time::Duration;

use fedrs_api::names;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{Clusters, TestEnvironment, audit_log, rbac_usage::USERS, real::Real};

impl TestEnvironment {
    pub(super) fn real(&self) -> &Real {
        match &self.clusters {
            Clusters::Real(real) => real,
            Clusters::Embedded(_) => panic!("the kind of clusters has this capability"),
        }
    }

    fn real_mut(&mut self) -> &mut Real {
        match &mut self.clusters {
            Clusters::Real(real) => real,
            Clusters::Embedded(_) => panic!("the kind of clusters has this capability"),
        }
    }

    /// Starts one more controller as a standby. Returns its number: the first controller has 0.
    pub async fn start_standby(&mut self) -> usize {
        let real = self.real_mut();
        real.add_controller().await;
        let number = real.controllers.len() - 1;
        real.controllers[number].start();
        number
    }

    /// Suspends the process of controller `number`, or resumes it.
    pub fn suspend(&mut self, number: usize, is_suspended: bool) {
        let real = self.real();
        let program = real.controllers[number].program.as_ref();
        program
            .expect("the process runs")
            .set_suspended(is_suspended);
    }

    /// Kills controller `number`.
    pub fn kill_number(&mut self, number: usize) {
        let real = self.real_mut();
        real.controllers[number].program = None;
    }

    /// The last lines of the log of controller `number`.
    pub fn controller_log(&self, number: usize) -> String {
        let real = self.real();
        real.controllers[number].log()
    }

    /// The identity of the leader, by the Lease.
    pub async fn leader(&self) -> Option<String> {
        let lease = self
            .on_host("GET", &lease_path(), &Value::Null)
            .await
            .ok()?;
        let holder = lease.pointer("/spec/holderIdentity")?.as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    /// Waits until another controller than `before` is the leader. Returns how long that took.
    pub async fn wait_for_takeover(&self, before: &str) -> Duration {
        let began = Instant::now();
        let deadline = began + Duration::from_secs(60);
        loop {
            if self.leader().await.is_some_and(|leader| leader != before) {
                return began.elapsed();
            }
            assert!(Instant::now() < deadline, "no controller took over");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The requests of controller `number` to the host and all members since `since`, ordered by time.
    pub async fn audit_entries(
        &self,
        number: usize,
        since: Timestamp,
    ) -> Vec<audit_log::AuditEntry> {
        let real = self.real();
        let credentials = real.controllers[number].credentials();
        let control_planes = real.shared.control_planes().await;
        let clusters = std::iter::once(&control_planes.host).chain(&control_planes.members);
        let mut entries: Vec<_> = clusters
            .flat_map(|cluster| {
                audit_log::read(cluster.directory(), USERS).expect("a log can be read")
            })
            .filter(|entry| entry.at >= since && credentials.contains(&entry.credential))
            .collect();
        entries.sort_by_key(|entry| entry.at);
        entries
    }
}

/// The Lease of the federation without a name.
pub(super) fn lease_path() -> String {
    format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}",
        names::SYSTEM_NAMESPACE,
        names::CONTROLLER
    )
}
