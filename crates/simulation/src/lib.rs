//! The real controller on simulated time, against embedded clusters with faults.
//!
//! ```text
//! seed --> Plan (steps: edits, faults) --run--> Outcome (trace, violation) --shrink--> the shortest plan that fails
//!                                        |
//!               SimFederation { host, members, controller } --writes, changes--> checks
//! ```
//!
//! Time is paused: an hour takes milliseconds, and the same seed gives the same run.

#![expect(
    clippy::unwrap_used,
    reason = "a simulation whose own parts fail cannot go on"
)]

mod batch;
mod changes;
mod checks;
mod command;
mod connect;
mod crash;
mod history;
pub mod hostile;
mod invariants;
mod join;
mod local;
mod observe;
mod pace;
mod plan;
mod planted;
mod print;
mod ready_pods;
mod report;
mod request;
mod run;
mod scenario;
mod set_kind;
mod shrink;
mod sim_federation;
mod suspension;
mod trace;

pub use batch::{Batch, Failure, run_batch};
pub use changes::{ChangeWaiter, next_changes};
pub use checks::{Invariant, Violation};
pub use command::SimulateArgs;
pub use connect::{AdministratorClients, kubeconfig, member_file};
pub use crash::{CrashPoint, DelayedRequest, Lifetime, WriteObserver};
pub use invariants::InvariantChecker;
pub use join::{MEMBERS_PATH, SECRETS_PATH};
pub use local::{LocalAction, LocalFault, LocalPlan, LocalSetPlan, LocalStep, generate_local};
pub use observe::{Layout, LocalSetState};
pub use plan::{
    Action, AvailabilityWork, Closing, Disk, Drift, Fault, MemberPlan, NodeWork, Plan, Selected,
    SetPlan, Step, Trial, generate, generate_discovery,
};
pub use print::Print;
pub use ready_pods::{ReadyPods, is_ready, name_of, set_of};
pub use report::{FailureKind, describe_plan, timeline};
pub use request::request;
pub use run::{Outcome, run};
pub use scenario::Scenario;
pub use shrink::shrink;
pub use sim_federation::{
    FDEPLOY_PATH, FRS_PATH, HOST, SimFederation, SimFederationSpec, SimMemberSpec,
    client_until_crash, even, frs, install_crds, minutes,
};
pub use suspension::Suspension;
pub use trace::{Topic, Trace, TraceLine};
