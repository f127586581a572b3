//! The result of the scheduler.

use crate::reason::Reasons;

/// How many replicas each cluster gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// One share for each cluster of the request, in the request's order.
    pub shares: Vec<Share>,
    /// Replicas that no cluster can take (F18).
    pub unplaced: u64,
}

/// What one cluster gets, and why (F19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Replicas for this cluster.
    pub replicas: u64,
    /// The cluster's place in the order of F11, from 0: the lower, the earlier it is served.
    pub rank: usize,
    /// What decided the number.
    pub reasons: Reasons,
}
