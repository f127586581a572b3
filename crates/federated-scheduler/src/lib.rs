//! Decides how many replicas each cluster gets, and why (rules F10 to F19). Pure: no clock, no IO.
//!
//! ```text
//! Request -> order    clusters by weight, then by a hash of key and name (F11)
//!         -> bounds   minimums in that order (F12); current replicas, maximum and capacity as bounds (F13)
//!         -> divisor  the rest by weight within the bounds: Webster's method (F14, F16, F17)
//!         -> explain  which bound or preference decided each number (F19)
//!         -> Layout   a share for each cluster, and what no cluster can take (F18)
//! ```
//!
//! # Why not round-up passes
//!
//! Kubernetes Federation v1 and the systems that follow it visit the clusters one by one and give each its share of the
//! rest, rounded up, until nothing is left. Rounding up starves the last clusters: 4 replicas over 3 equal clusters become
//! ⌈4/3⌉ = 2, then ⌈4/3⌉ = 2, then nothing: **2/2/0**, although 2/1/1 is possible; 11 replicas over 10 clusters leave four
//! clusters empty. Rounding up is not monotone either: with 3 replicas each cluster has one (1/1/1), so that the fourth
//! replica takes one away from the last cluster. A scale-up must never stop a running pod.
//!
//! A divisor method grants replicas one at a time, each to the cluster with the highest quotient (see `quotient`).
//! Granting one more never changes what was granted before, so that N + 1 replicas are the layout of N and one replica
//! (house monotone, F16), for any bounds. Webster's divisors (1, 3, 5, ...) favour neither heavy nor light clusters:
//! 4 replicas over 3 clusters are 2/1/1; 11 over 10 are one each, and one cluster has two.
//!
//! # Limits
//!
//! The scheduler knows neither pods nor time nor Kubernetes, and moves nothing: the controller compares the layout with
//! what runs, and decides on the steps.

mod binding;
mod bounds;
mod candidate;
mod divisor;
mod explain;
mod layout;
mod messages;
mod order;
mod plan;
mod quota;
mod quotient;
mod reason;
mod request;
mod what_if;

pub use layout::{Layout, Share};
pub use plan::plan;
pub use quota::{Quota, Rounding};
pub use reason::{Reason, Reasons, TakenBy};
pub use request::{Cluster, Preference, Request};
pub use what_if::{CapacityOverride, what_if};
