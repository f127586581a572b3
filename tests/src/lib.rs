//! End-to-end scenarios: a host, members, the real controller; driven and watched through the Kubernetes API.
//!
//! ```text
//! scenario --apply, scale, inject faults--> SimFederation | TestEnvironment { host, members, controller } --observe--> assertions
//! ```
//!
//! On embedded clusters time is paused: a scenario takes milliseconds and repeats exactly. Every wait has a deadline, and a
//! wait that times out prints the state of the clusters, the events and the log.

pub mod controller_process;
pub mod generated_members;
pub mod kstatus;
mod local_manifests;
pub mod measured_cluster;
pub mod measured_federation;
pub mod measured_process;
mod ports;
pub mod recorded;
pub mod scenario;
mod seeds;
pub mod test_environment;
mod watcher;

pub use ports::free_ports;
pub use seeds::seeds;
pub use simulation::*;
pub use watcher::ReadyWatcher;
