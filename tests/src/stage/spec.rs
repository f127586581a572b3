//! What scenarios ask of a stage, and what all kinds of clusters have in common.

use std::time::Duration;

use federation_controller::config::Config;
use serde_json::Value;

/// How the namespaces of scenarios begin.
pub(super) const NAMESPACE_PREFIX: &str = "scenario-";

/// What a scenario wants to begin with.
#[derive(Clone, Debug)]
pub struct StageSpec {
    /// The members that the controller knows at first, of `a`, `b` and `c`.
    pub members: Vec<&'static str>,
    /// The controller's configuration.
    pub config: Config,
}

impl Default for StageSpec {
    fn default() -> Self {
        Self {
            members: vec!["a", "b", "c"],
            config: short_waits(),
        }
    }
}

/// What not every kind of cluster can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Members that can be cut off from the controller, by a link that can be made slow or broken.
    CutOff,
    /// Nodes of known size that can be lost: three in each member, for 64 CPUs and 110 pods each.
    Nodes,
    /// API servers that can be stopped and restarted.
    Restarts,
    /// A HorizontalPodAutoscaler's controller on the host.
    Autoscaler,
    /// A controller that is a process: it can be stopped and go on, and there can be several.
    Process,
    /// API servers that write down who asked for what, and controllers that can be told apart by their tokens.
    Audit,
}

/// Whether there is no such object.
pub(super) fn is_missing(answer: &kube::Result<Value>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 404)
}

/// A configuration for scenarios: the waits are short, in their usual proportions.
pub fn short_waits() -> Config {
    let seconds = Duration::from_secs;
    let mut config = Config {
        check_delay: seconds(2),
        recheck_interval: seconds(2),
        unscheduled_timeout: seconds(5),
        backoff_initial: seconds(3),
        backoff_max: seconds(20),
        lost_grace_period: seconds(5),
        ..Config::default()
    };
    config.probe.period = seconds(1);
    config.probe.timeout = seconds(4);
    config.leader_election.lease_duration = seconds(4);
    config.leader_election.renew_deadline = seconds(3);
    config.leader_election.retry_period = Duration::from_millis(500);
    config
}
