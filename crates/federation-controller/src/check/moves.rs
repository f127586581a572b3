//! The next step from the requested to the desired replicas, with no fewer running (F20).
//!
//! A replica that runs is removed only while more replicas than the floor are available; one that doesn't run is removed at
//! once, unless it may replace one of a cluster that has only just returned, or that can get no more now. Growth may exceed N
//! by the surge. Every write of a step is safe by itself: a crash after any of them, or one that fails, leaves no fewer running
//! than before, and no more than allowed.

use std::ops::{Add, Sub};

use planted_bugs::{PlantedBug, is_planted};

/// One writable cluster, as far as moves depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplicaState {
    /// Replicas requested of the local ReplicaSet now (`spec.replicas`).
    pub(super) requested: u64,
    /// The most that a lost request may still set; 0 without one.
    pub(super) open_scale_up: u64,
    /// Pods that may be ready, also those not ready for long enough; more than `requested` while the member still removes
    /// some.
    pub(super) ready: u64,
    /// Pods that are available, and stay so once the requests are carried out.
    pub(super) available: u64,
    /// Replicas that have had no node for longer than the timeout, if all without one have: those that are removed are not
    /// about to run. 0 otherwise, because the member removes the newest first.
    pub(super) failed: u64,
    /// Whether its replicas may go at any time, because the cluster was lost a short time ago or the local ReplicaSet is being
    /// deleted: nothing elsewhere is removed for them.
    pub(super) unreliable: bool,
    /// Whether it should have more replicas, and they can only be requested later, because writes have failed or are undone.
    pub(super) waits: bool,
    /// The most replicas that the cluster is believed to have: what it reports beyond them neither lets replicas elsewhere be
    /// removed, nor takes the place of new ones. 0 if its replicas end anyway: replacements are requested beside them.
    pub(super) limit: u64,
    /// Replicas beyond `limit` that take the place of new ones all the same: an earlier leader may have requested them.
    pub(super) unpublished: u64,
    /// Replicas that it should have, with capacity probes.
    pub(super) target: u64,
    /// Of these: pending, as no cluster can run them now (F18).
    pub(super) pending: u64,
}

impl ReplicaState {
    /// Replicas that it should have and may be able to run.
    fn schedulable_target(&self) -> u64 {
        self.target - self.pending
    }

    /// Replicas that are requested, that may be at any time, or that still run although they are no longer requested.
    fn present(&self) -> u64 {
        let requested = self.requested.max(self.open_scale_up);
        let most = self.limit.saturating_add(self.unpublished);
        requested.max(self.ready).min(most)
    }

    /// Available replicas that are requested.
    fn running(&self) -> u64 {
        self.available.min(self.requested)
    }

    /// Of `running` replicas, those for which replicas elsewhere may be removed.
    fn trusted(&self, running: u64) -> Trusted {
        if self.unreliable {
            return Trusted::default();
        }
        Trusted {
            believed: running.min(self.limit),
            with_unpublished: running.min(self.limit.saturating_add(self.unpublished)),
        }
    }
}

/// Replicas for which others may be removed.
#[derive(Clone, Copy, Default)]
struct Trusted {
    /// Those that clusters are believed to have.
    believed: u64,
    /// These, and those that an earlier leader may have requested: a reason to remove others of the kind. Otherwise several clusters
    /// with such replicas would keep them all for ever, for want of surge.
    with_unpublished: u64,
}

impl Add for Trusted {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            believed: self.believed + other.believed,
            with_unpublished: self.with_unpublished + other.with_unpublished,
        }
    }
}

impl Sub for Trusted {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            believed: self.believed - other.believed,
            with_unpublished: self.with_unpublished - other.with_unpublished,
        }
    }
}

/// Bounds of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Available replicas that must be left: N, or what the preferences allow of it.
    pub(super) floor: u64,
    /// The most replicas that the clusters together may be requested or run: N, the surge and the capacity probes, less the
    /// replicas of members that must not change.
    pub(super) ceiling: u64,
    /// Whether members that may have replicas must not be changed now. The ceiling counts all replicas that they may have,
    /// perhaps more than they have: no pending replica is removed because of that.
    pub(super) has_unwritable: bool,
    /// Replicas that are requested of the members on hold, if some of these should have more and cannot be requested now.
    pub(super) on_hold: Option<u64>,
}

/// The next `spec.replicas` of each cluster, in order; the current one where nothing may change yet.
pub(super) fn next_step(states: &[ReplicaState], bounds: Bounds) -> Vec<u64> {
    let mut next = without_surplus(states, bounds);
    // Removed replicas are still there until the member has deleted them, which may take time, or fail.
    let present = states.iter().map(ReplicaState::present).sum();
    let growth = bounds.ceiling.saturating_sub(present);
    if !bounds.has_unwritable {
        release_pending(&mut next, states, growth);
    }
    grow(&mut next, states, growth);
    next
}

/// The requested replicas without those beyond the target that may go.
fn without_surplus(states: &[ReplicaState], bounds: Bounds) -> Vec<u64> {
    // What was requested elsewhere while a cluster was lost may still start: it is not taken back before its replicas count.
    // Nor is what cannot be replaced now.
    let is_back = |state: &ReplicaState| state.unreliable && state.present() > 0;
    let waits = |state: &ReplicaState| state.waits || is_back(state);
    let keeps_idle = bounds.on_hold.is_some() || states.iter().any(waits);
    let reliable = states.iter().filter(|state| !state.unreliable);
    let reliable = reliable.map(|state| state.requested).sum::<u64>();
    let mut requested = reliable + bounds.on_hold.unwrap_or(0);
    let trusted = (states.iter()).map(|state| state.trusted(state.running()));
    let mut trusted = trusted.fold(Trusted::default(), Add::add);
    let next = states.iter().map(|state| {
        let surplus = state.requested.saturating_sub(state.target);
        // The member's controller removes pods that are not ready first.
        let not_running = state.requested - state.ready.min(state.requested);
        let mut idle = surplus.min(not_running);
        if keeps_idle && !state.unreliable {
            let spare = requested.saturating_sub(bounds.floor);
            idle = idle.min(spare.max(state.failed));
            requested -= idle;
        }
        // A cluster's own replicas count even where they are no reason to remove others.
        let running = state.running();
        let spare = |elsewhere: u64| (elsewhere + running).saturating_sub(bounds.floor);
        let elsewhere = trusted - state.trusted(running);
        let beyond_limit = running.saturating_sub(state.limit);
        let spare =
            spare(elsewhere.believed).max(spare(elsewhere.with_unpublished).min(beyond_limit));
        let removed = (surplus - idle).min(spare);
        trusted = elsewhere + state.trusted(running.saturating_sub(removed));
        // Pods that the member has yet to remove are requested again, which creates no new ones.
        state
            .target
            .min(state.ready)
            .max(state.requested - idle - removed)
    });
    next.collect()
}

/// Adds replicas that are missing, those first that can run.
fn grow(next: &mut [u64], states: &[ReplicaState], mut growth: u64) {
    for wanted in [ReplicaState::schedulable_target, |state: &ReplicaState| {
        state.target
    }] {
        for (next, state) in next.iter_mut().zip(states) {
            let requested = state.requested.max(*next);
            let missing = wanted(state).saturating_sub(requested).min(growth);
            if !is_planted(PlantedBug::SurgeOfEachCluster) {
                growth -= missing;
            }
            *next += missing;
        }
    }
}

/// Removes pending replicas where others may run once they are requested, if `growth` is not enough for these: pending
/// ones would use up the surge for ever.
fn release_pending(next: &mut [u64], states: &[ReplicaState], growth: u64) {
    let missing: u64 = states
        .iter()
        .zip(next.iter())
        .map(|(state, next)| state.schedulable_target().saturating_sub(*next))
        .sum();
    let mut left = missing.saturating_sub(growth);
    for (next, state) in next.iter_mut().zip(states) {
        let not_running = next.saturating_sub(state.schedulable_target().max(state.ready));
        let released = not_running.min(state.pending).min(left);
        left -= released;
        *next -= released;
    }
}

#[cfg(test)]
#[path = "moves_tests.rs"]
mod tests;
