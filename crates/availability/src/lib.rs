//! The controller of [`AvailabilitySet`](fedrs_api::AvailabilitySet)s (A1, A2): how many of an application's pods may be unreachable at
//! once, over all members together.
//!
//! ```text
//! host --watch--> AvailabilitySet --what is read of all members--> Seen --plan()--> finalizer, status, events --> host
//!                                                                           |
//!                                          members <-- Request, each names the version that it replaces
//!
//! plan():  parts     the pods of a member, and what limits their evictions: a PodDisruptionBudget, or LocalReplicaSets
//!          carriers  whose PodDisruptionBudget, if sets select the same pods
//!          verdict   A1: whether the set is available, and can be
//!          domains   A2: what would happen if a node, a rack, a zone or a cluster failed
//!          loans     what each part may lose by evictions and updates
//! ```
//!
//! Evictions are granted by the API servers of the members, also while the host is away: they keep to what was lent last. All loans are in the
//! status before they are written. While there is no AvailabilitySet, no member is asked for anything.

pub mod rbac;

mod budget_part;
mod carriers;
mod conditions;
mod controller;
mod domains;
mod events;
mod federated_set;
mod limited;
mod loans;
mod look;
mod metrics;
mod neighbours;
mod observed;
mod own;
mod parts;
mod plan;
mod read;
mod rollouts;
mod turn;
mod verdict;

#[cfg(test)]
mod loan_tests;
#[cfg(test)]
mod overlap_property_tests;
#[cfg(test)]
mod overlap_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod rollout_tests;
#[cfg(test)]
mod world;

pub use controller::AvailabilityController;
pub use metrics::AvailabilityMetrics;
