//! The controller of [`Maintenance`](fedrs_api::Maintenance)s (M9, M15): planned work on nodes of members.
//!
//! ```text
//! host --watch--> Maintenance --Goal--> what is read of which members --> Observed --plan()--> finalizer, status, events --> host
//!                                                                                    |
//!                                                  members <-- NodePatch, each conditional
//! ```
//!
//! It marks nodes and shows how far they are. What follows from a mark is done by the controllers in the members, also while the host is
//! away. `Goal` and `plan` are pure. A cluster that does not answer keeps what was last known of it, and whatever was recorded in the
//! status before the first mark was written finds the marks again. While there is no Maintenance, no member is asked for anything.

pub mod rbac;

mod blocking;
mod conditions;
mod controller;
mod events;
mod goal;
mod look;
mod metrics;
mod node_patch;
mod observed;
mod plan;
mod read;
mod summary;

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod world;

pub use controller::MaintenanceController;
pub use metrics::MaintenanceMetrics;
