//! End-to-end scenarios: a host, members, the real controller; driven and watched through the Kubernetes API.
//!
//! ```text
//! scenario --apply, scale, inject faults--> SimFederation | TestEnvironment { host, members, controller } --observe--> assertions
//! ```
//!
//! On embedded clusters time is paused: a scenario takes milliseconds and repeats exactly. Every wait has a deadline, and a
//! wait that times out prints the state of the clusters, the events and the log.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: what can't go on ends"
)]

mod changes;
mod connect;
mod crash;
mod history;
pub mod hostile;
mod invariants;
mod join;
pub mod kstatus;
mod observe;
pub mod recorded;
pub mod scenario;
mod seeds;
mod sim_federation;
pub mod test_environment;
mod watcher;

pub use connect::{AdministratorClients, kubeconfig, member_file};
pub use crash::{CrashPoint, Lifetime};
pub use invariants::{HOST, InvariantChecker};
pub use join::{MEMBERS_PATH, SECRETS_PATH};
pub use observe::{Layout, LocalSetState};
pub use seeds::seeds;
pub use sim_federation::{
    FRS_PATH, SimFederation, SimFederationSpec, SimMemberSpec, client_until_crash, even, frs,
    install_crds, minutes,
};
pub use watcher::ReadyWatcher;
