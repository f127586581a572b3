//! What is learnt about a cluster's room for one set (F10, F34): a pure step from what was known and what is seen.
//!
//! ```text
//!                 failed for longer than X              a probe got a node
//!  no limit known ------------------------> full at c ----------------------> room: c + found + step, step doubles
//!        ^                                   |   ^                                |
//!        '----- its share fits in c ---------'   '----- growth failed for X ------'  (step 1, next try backs off)
//! ```

use cluster_informer::WorkloadView;
use fedrs_api::ClusterStatus;
use jiff::Timestamp;

use super::{snapshot::CheckSettings, standing::after};

/// What a cluster shows of one set at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Replicas asked of the local set (`spec.replicas`).
    pub(crate) placed: u64,
    /// Of these: have a pod with a node.
    pub(crate) scheduled: u64,
    /// Of these: wait for a node or could not be created, for any time.
    pub(crate) waiting: u64,
    /// Of the waiting: could not even be created (F32).
    pub(crate) uncreated: u64,
    /// Of the waiting: for longer than X (F34).
    pub(crate) failed: u64,
    /// When the next of the waiting will have waited for X.
    pub(crate) next_failure: Option<Timestamp>,
    /// The member's own words about why they wait.
    pub(crate) message: Option<String>,
}

/// Reads `view` at `now`.
pub(crate) fn see(view: &WorkloadView, now: Timestamp, settings: &CheckSettings) -> Seen {
    let Some(set) = &view.workload else {
        return Seen::default();
    };
    let placed = u64::from(set.replicas);
    let mut seen = Seen {
        placed,
        message: view.pods.unscheduled_message.clone(),
        ..Seen::default()
    };
    let mut wait = |count: u64, since: Timestamp| {
        seen.waiting += count;
        let due = after(since, settings.unscheduled_timeout);
        if due <= now {
            seen.failed += count;
        } else {
            seen.next_failure = Some(seen.next_failure.map_or(due, |earlier| earlier.min(due)));
        }
    };
    for &(since, count) in &view.pods.unscheduled_since {
        wait(u64::from(count), since);
    }
    // F32: only the member's controller knows what it could not create, and only once it has seen our last write.
    if let Some(failure) = &set.replica_failure
        && set.observed_generation >= set.generation
    {
        let uncreated = u64::from(set.replicas.saturating_sub(set.status_replicas));
        if uncreated > 0 {
            wait(uncreated, failure.since);
            seen.uncreated = uncreated;
            seen.message = Some(failure.message.clone());
        }
    }
    seen.waiting = seen.waiting.min(placed);
    seen.failed = seen.failed.min(placed);
    // Of the two watches either may be ahead: what one has seen go counts no more.
    let present = if view.has_unlabeled_pods() {
        set.status_replicas
    } else {
        set.status_replicas.min(view.pods.active)
    };
    let with_node = u64::from(present.saturating_sub(view.pods.unscheduled));
    seen.scheduled = with_node.min(placed);
    seen
}

/// What is remembered of one cluster's room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// The most it has shown it can run; `None` where it never showed a limit.
    pub(crate) capacity: Option<u64>,
    /// How many replicas beyond what was found the next try adds.
    pub(crate) step: u64,
    /// Failed tries in a row.
    pub(crate) failures: u32,
    /// Not before then is growth beyond what a probe found tried.
    pub(crate) next_try: Option<Timestamp>,
}

impl Room {
    /// As it is written in the status.
    pub(crate) fn recall(memory: &ClusterStatus) -> Self {
        let Some(capacity) = memory.capacity else {
            return Self::default();
        };
        Self {
            capacity: Some(u64::try_from(capacity).unwrap_or(0)),
            step: u64::try_from(memory.internal.growth_step)
                .unwrap_or(1)
                .max(1),
            failures: u32::try_from(memory.internal.failures).unwrap_or(0),
            next_try: memory
                .internal
                .next_attempt_time
                .as_ref()
                .map(|time| time.0),
        }
    }

    /// What is known after having `seen` the cluster (F10, F34).
    ///
    /// `with_room` is what the cluster would get if its room had no limit, where one is known: what fits needs no
    /// memory. With `rebalance` false nothing moves back, so that room found is simply no limit any more.
    pub(crate) fn learn(
        self,
        seen: &Seen,
        with_room: Option<u64>,
        rebalance: bool,
        now: Timestamp,
        settings: &CheckSettings,
    ) -> Self {
        let shown = seen.placed - seen.failed;
        match self.capacity {
            None if seen.failed > 0 => self.failed(shown, now, settings),
            None => Self::default(),
            Some(capacity) if seen.failed > 0 && shown < capacity => {
                self.failed(shown, now, settings)
            }
            Some(capacity) if seen.scheduled > capacity => {
                if rebalance {
                    self.found(seen.scheduled, now)
                } else {
                    Self::default()
                }
            }
            Some(capacity)
                if seen.waiting == 0 && with_room.is_none_or(|share| share <= capacity) =>
            {
                Self::default()
            }
            Some(_) => self,
        }
    }

    fn failed(self, shown: u64, now: Timestamp, settings: &CheckSettings) -> Self {
        let failures = self.failures.saturating_add(1);
        Self {
            capacity: Some(shown),
            step: 1,
            failures,
            next_try: Some(after(now, settings.backoff(failures))),
        }
    }

    /// A probe got a node: what is scheduled is sure; beyond it a doubling step is tried, unless a try has
    /// just failed.
    fn found(self, scheduled: u64, now: Timestamp) -> Self {
        if self.next_try.is_some_and(|time| now < time) {
            return Self {
                capacity: Some(scheduled),
                ..self
            };
        }
        // A step above 1 means that the try before this one was used in full.
        let failures = if self.step > 1 { 0 } else { self.failures };
        Self {
            capacity: Some(scheduled.saturating_add(self.step)),
            step: self.step.saturating_mul(2).min(MAX_STEP),
            failures,
            ..self
        }
    }
}

/// No step is larger: a set of 2^16 replicas is back after 16 steps.
const MAX_STEP: u64 = 1 << 16;
