//! How quick the cluster's parts are. The defaults are those of a small healthy cluster; tests and demos turn them.

use std::time::Duration;

/// Latencies and grace periods of controllers and kubelets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// From a pod's binding until its containers run. Per pod: annotation `sim-cluster.dev/start-seconds`. Default 1 s.
    pub start_time: Duration,
    /// From running until ready. Per pod: annotation `sim-cluster.dev/ready-seconds`. Default 0.
    pub ready_delay: Duration,
    /// From a pod's deletion until it's gone, if its grace period isn't shorter. Default 1 s.
    pub stop_time: Duration,
    /// How long a container that crashes runs before it does. Default 1 s.
    pub crash_after: Duration,
    /// The scheduler's time for one pod. Default 1 ms.
    pub schedule_latency: Duration,
    /// Any other controller's time for one object. Default 1 ms.
    pub sync_latency: Duration,
    /// A pod without a place is tried again at least this often; a change of nodes or pods comes earlier. Default 60 s.
    pub unschedulable_retry: Duration,
    /// How often a kubelet renews its node's lease. Default 10 s.
    pub heartbeat: Duration,
    /// A node is lost when its lease is older. Default 50 s.
    pub node_grace: Duration,
    /// Pods of a deleted node are removed this long after it. Default 40 s.
    pub pod_collection_delay: Duration,
    /// Events go this long after they were last written. Default 1 hour.
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
