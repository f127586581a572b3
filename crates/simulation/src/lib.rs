//! The real controller on simulated time, against embedded clusters with faults.
//!
//! ```text
//! SimFederation { host, members, controller } --committed changes--> InvariantChecker --> violations
//! ```
//!
//! Time is paused: an hour takes milliseconds, and the same seed gives the same run.

#![expect(
    clippy::unwrap_used,
    reason = "a simulation whose own parts fail cannot go on"
)]

mod changes;
mod connect;
mod crash;
mod history;
pub mod hostile;
mod invariants;
mod join;
mod observe;
mod ready_pods;
mod request;
mod sim_federation;

pub use changes::{ChangeWaiter, next_changes};
pub use connect::{AdministratorClients, kubeconfig, member_file};
pub use crash::{CrashPoint, Lifetime, WriteObserver};
pub use invariants::{HOST, InvariantChecker};
pub use join::{MEMBERS_PATH, SECRETS_PATH};
pub use observe::{Layout, LocalSetState};
pub use ready_pods::{ReadyPods, is_ready, name_of};
pub use request::request;
pub use sim_federation::{
    FRS_PATH, SimFederation, SimFederationSpec, SimMemberSpec, client_until_crash, even, frs,
    install_crds, minutes,
};
