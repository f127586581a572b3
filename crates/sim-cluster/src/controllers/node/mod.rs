//! Nodes: their specification, the detection of unreachable nodes, and the removal of their pods.
//!
//! ```text
//! NodeSpec -> Node object -> kubelet's first report -> Ready
//! lease too old -> Ready=Unknown -> taints -> pods not ready, evicted after their tolerations    (lifecycle)
//! node deleted -> its pods are removed after a while                                             (pod_collector)
//! ```

mod lifecycle;
mod pod_collector;
mod spec;

pub(crate) use lifecycle::NodeLifecycle;
pub(crate) use pod_collector::PodCollector;
pub use spec::NodeSpec;
pub(crate) use spec::{LEASE_NAMESPACE, date_conditions, first_report};
