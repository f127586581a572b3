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

pub mod calls;
pub mod check;
pub mod clock;
pub mod config;
mod controller;
pub mod election;
pub mod forecast;
pub mod members;
pub mod metrics;
pub mod preferences;
pub mod rbac;
pub mod watchdog;

mod error_text;
mod event;
mod event_recorder;
mod executor;
mod finalizer;
mod frs_object;
mod frs_store;
mod frs_watch;
mod history;
mod host_namespaces;
mod local_kind;
mod manifest;
mod messages;
mod readiness;
mod reconcile;
mod reconcile_queue;
mod selector_index;
mod short_list;
mod trigger;

pub use controller::{Controller, Running};
pub use error_text::format_api_error;
pub use event::{Event, EventType};
pub use readiness::{NotReady, Readiness};
pub use reflector::printable_lines;
