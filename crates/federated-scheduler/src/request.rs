//! The input of the scheduler.

/// One set and its clusters, before they are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The key of the set (`namespace/name`): it decides ties between clusters (F11).
    pub key: &'a str,
    /// Desired replicas over all clusters, N.
    pub replicas: u64,
    /// Whether current replicas may move to bring clusters to their shares (F13).
    pub rebalance: bool,
    /// The candidate clusters, in any order, each name once.
    pub clusters: &'a [Cluster<'a>],
}

/// One cluster as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// The cluster's name.
    pub name: &'a str,
    /// Its preferences; a cluster without any gets nothing (F3).
    pub preference: Option<Preference>,
    /// Replicas that are in place now (F13). Ignored where `rebalance` is true.
    pub current: u64,
    /// The most replicas it has shown it can run (F10); unlimited if `None`.
    pub capacity: Option<u64>,
}

/// Preferences for one cluster (F2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// Replicas granted before any are shared out by weight.
    pub min: u64,
    /// The most replicas; no limit if `None`. Binds where it is below `min`.
    pub max: Option<u64>,
    /// The cluster's part of the replicas that are shared out, relative to the other weights.
    pub weight: u64,
}

impl Cluster<'_> {
    /// 0 without preferences.
    pub(crate) fn weight(&self) -> u64 {
        self.preference.map_or(0, |preference| preference.weight)
    }

    /// 0 without preferences.
    pub(crate) fn minimum(&self) -> u64 {
        self.preference.map_or(0, |preference| preference.min)
    }

    /// The most replicas the cluster may have: its maximum or its capacity, whichever is less. 0 without preferences (F3).
    pub(crate) fn ceiling(&self) -> u64 {
        let max = |preference: Preference| preference.max.unwrap_or(u64::MAX);
        let capacity = self.capacity.unwrap_or(u64::MAX);
        self.preference.map_or(0, max).min(capacity)
    }
}
