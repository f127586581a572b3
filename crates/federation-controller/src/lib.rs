//! The controller of FederatedReplicaSets: decides in a pure check, acts at the edge.
//!
//! ```text
//! host watch, member events, health --> queue (FRS_TO_CHECK, work queue) --> reconcile
//!                                                                                  |
//!             registry + host store --> Snapshot --> check() --> Check ------------+
//!                                                                  |--> executor --> members
//!                                                                  |--> status, events --> host
//!                                                                  '--> next check --> queue
//! ```
//!
//! All decisions are in [`check`]; everything else moves data. Of several processes one leads, for a term at a time:
//! [`election`].

pub mod check;
pub mod config;
mod controller;
pub mod forecast;
pub mod members;
pub mod metrics;
pub mod preferences;
pub mod rbac;

mod executor;
mod frs_object;
mod frs_store;
mod frs_watch;
mod history;
mod host_lists;
mod host_namespaces;
mod local_kind;
mod manifest;
mod messages;
mod reconcile;
mod reconcile_queue;
mod set_metrics;
mod trigger;

pub use controller::Controller;
pub use controller_base::{
    clock, election,
    event::{Event, EventType},
    readiness::{NotReady, Readiness},
    running::Running,
    watchdog,
};
pub use reflector::printable_lines;

/// Who reports the controller's events.
pub const COMPONENT: &str = "fedrs.dev/federation-controller";
