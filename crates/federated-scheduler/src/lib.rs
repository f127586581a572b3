//! Decides how many replicas each cluster gets, and why (rules F10 to F19). Pure: no clock, no IO.

/// What is to be laid out.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Names the set (`namespace/name`): ties between clusters fall differently for different keys (F11).
    pub key: &'a str,
    /// Replicas wanted over all clusters, N.
    pub replicas: u64,
    /// Whether replicas that are present may be moved to bring clusters to their shares (F13).
    pub rebalance: bool,
    /// The clusters that can be used, in any order, each name once.
    pub clusters: &'a [Cluster<'a>],
}

/// One cluster as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// The cluster's name.
    pub name: &'a str,
    /// Its preferences; without any it gets nothing (F3).
    pub preference: Option<Preference>,
    /// Replicas present (F13). Used where `rebalance` is false.
    pub current: u64,
    /// The most it has shown it can run (F10); unlimited if `None`.
    pub capacity: Option<u64>,
}

/// Preferences for one cluster (F2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// Replicas given before any are shared out by weight.
    pub min: u64,
    /// The most replicas; no limit if `None`. Not below `min`.
    pub max: Option<u64>,
    /// Part of the replicas shared out, relative to the other weights.
    pub weight: u64,
}

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
    /// What decided the number, the most important first.
    pub reasons: Vec<Reason>,
}

/// Why a cluster has its number. `Display` says it in one sentence for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No entry of its own and no `*` (F3).
    NoPreference,
}

/// Lays out `request` (F10 to F19).
#[must_use]
pub fn plan(_request: &Request<'_>) -> Layout {
    Layout { shares: Vec::new(), unplaced: 0 }
}
