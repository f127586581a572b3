//! The requirements of a scenario, and what all kinds of clusters have in common.

use std::time::Duration;

use federation_controller::config::Config;
use fedrs_api::LocalKind;
use serde_json::Value;

/// The prefix of the scenarios' namespaces.
pub(super) const NAMESPACE_PREFIX: &str = "scenario-";

/// The members and the configuration that a scenario starts with.
#[derive(Clone, Debug)]
pub struct TestEnvironmentSpec {
    /// The kind of the local workloads of the sets that the scenario creates.
    pub local: LocalKind,
    /// The members that the controller knows at first, of `a`, `b` and `c`.
    pub members: Vec<&'static str>,
    /// The controller's configuration.
    pub config: Config,
}

impl Default for TestEnvironmentSpec {
    fn default() -> Self {
        Self {
            local: LocalKind::ReplicaSet,
            members: vec!["a", "b", "c"],
            config: short_waits(),
        }
    }
}

/// A capability that only some kinds of clusters have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// The clusters are embedded: for what real ones would only show again, and slowly.
    Embedded,
    /// The network between the controller and a member can be slowed down or cut.
    NetworkFaults,
    /// Nodes of known size that can fail: three in each member, each with 64 CPUs and 110 pods.
    NodeFaults,
    /// API servers can be stopped and restarted.
    ApiServerFaults,
    /// The processes of members and of the host can be killed and started again, one by one.
    ClusterProcesses,
    /// The host runs the controller of HorizontalPodAutoscalers.
    Autoscaler,
    /// The controller is a process that can be suspended, and there can be several.
    ControllerProcess,
    /// API servers write audit logs, and each controller has its own tokens.
    AuditLog,
    /// The program with the kstatus library is built with the control planes.
    Kstatus,
    /// The controller of LocalReplicaSets can be started in members.
    LocalReplicaSets,
    /// The pinned kubectl, and clusters whose answers to it are known: three nodes in each member.
    Kubectl,
}

/// Whether the response is 404.
pub(super) fn is_missing(answer: &kube::Result<Value>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 404)
}

/// A configuration for scenarios: short durations, in their usual proportions.
pub fn short_waits() -> Config {
    let seconds = Duration::from_secs;
    let mut config = Config {
        check_delay: seconds(2),
        recheck_interval: seconds(2),
        unscheduled_timeout: Some(seconds(5)),
        backoff_initial: seconds(3),
        backoff_max: seconds(20),
        lost_grace_period: Some(seconds(5)),
        stabilization_window: seconds(5),
        ..Config::default()
    };
    config.probe.period = seconds(1);
    config.probe.timeout = seconds(4);
    config.leader_election.lease_duration = seconds(4);
    config.leader_election.renew_deadline = seconds(3);
    config.leader_election.retry_period = Duration::from_millis(500);
    config
}
