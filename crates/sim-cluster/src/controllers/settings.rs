//! The latencies and grace periods of a cluster. The defaults are those of a small healthy cluster.

use std::time::Duration;

/// Latencies and grace periods of controllers and kubelets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// From a pod's binding until its containers run. Per pod: annotation `sim-cluster.dev/start-seconds`. Default 1 s.
    pub start_time: Duration,
    /// From running until ready. Per pod: annotation `sim-cluster.dev/ready-seconds`. Default 0.
    pub ready_delay: Duration,
    /// From a pod's deletion until it is removed, unless its grace period is shorter. Default 1 s.
    pub stop_time: Duration,
    /// How long a container that crashes runs before it crashes. Default 1 s.
    pub crash_after: Duration,
    /// The time in which the scheduler handles one pod. Default 1 ms.
    pub schedule_latency: Duration,
    /// The time in which any other controller handles one object. Default 1 ms.
    pub sync_latency: Duration,
    /// The longest time between two attempts to schedule a pod; a change of nodes or pods causes an earlier one. Default 60 s.
    pub unschedulable_retry: Duration,
    /// How often a kubelet renews its node's lease. Default 10 s.
    pub heartbeat: Duration,
    /// A node whose lease is older is unreachable. Default 50 s.
    pub node_grace: Duration,
    /// The time from a node's deletion until its pods are removed. Default 40 s.
    pub pod_collection_delay: Duration,
    /// The time from an event's last write until it is removed. Default 1 hour.
    pub event_time: Duration,
    /// The certificate authority in each namespace's `kube-root-ca.crt`, PEM. Default empty.
    pub root_ca: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start_time: Duration::from_secs(1),
            ready_delay: Duration::ZERO,
            stop_time: Duration::from_secs(1),
            crash_after: Duration::from_secs(1),
            schedule_latency: Duration::from_millis(1),
            sync_latency: Duration::from_millis(1),
            unschedulable_retry: Duration::from_mins(1),
            heartbeat: Duration::from_secs(10),
            node_grace: Duration::from_secs(50),
            pod_collection_delay: Duration::from_secs(40),
            event_time: Duration::from_hours(1),
            root_ca: String::new(),
        }
    }
}
