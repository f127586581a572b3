//! The federated ReplicaSet controller (FRSC): decides in a pure check, carries out at the edge.
//!
//! ```text
//! host watch, members' notices, health --> agenda (FRS_TO_CHECK, work queue) --> reconcile
//!                                                                                  |
//!             registry + host store --> Snapshot --> check() --> Check ------------+
//!                                                                  |--> executor --> members
//!                                                                  |--> status, events --> host
//!                                                                  '--> next check --> agenda
//! ```
//!
//! All decisions are in [`check`]; everything else moves data. It doesn't know what a folder of kubeconfigs is
//! except in [`members::directory`]. Of several processes one works, for a term at a time: [`election`].

pub mod calls;
pub mod check;
pub mod clock;
pub mod config;
mod controller;
pub mod election;
pub mod members;
pub mod metrics;
pub mod preferences;
pub mod rbac;

mod agenda;
mod error_text;
mod event;
mod events;
mod executor;
mod finalizer;
mod host;
mod manifest;
mod reconcile;
mod watch;

pub use controller::{Controller, Readiness, Running};
pub use error_text::words;
pub use event::{Event, EventType};
