//! One member with everything that the steps of a check find out about it.

use cluster_informer::WorkloadState;
use federated_scheduler::Preference;
use fedrs_api::ClusterStatus;
use jiff::Timestamp;

use super::{
    capacity::{Room, Seen, see},
    count, drain,
    moves::Holding,
    snapshot::{CheckSettings, Member, Snapshot},
    standing::{Standing, after},
    target::{Target, Usable},
    writes::Writes,
};

/// One member with everything the steps of a check found out about it.
pub(super) struct Considered<'a> {
    pub(super) member: &'a Member,
    pub(super) memory: Option<&'a ClusterStatus>,
    pub(super) standing: Standing,
    pub(super) seen: Seen,
    pub(super) room: Room,
    pub(super) writes: Writes,
    pub(super) target: Target,
    /// The scheduler's sentences.
    pub(super) reasons: Vec<String>,
    /// `spec.replicas` after this check's action.
    pub(super) next: u64,
    /// When the set is written, where that has to wait because of how earlier writes went.
    pub(super) held_until: Option<Timestamp>,
}

impl<'a> Considered<'a> {
    pub(super) fn new(
        member: &'a Member,
        standing: Standing,
        memory: Option<&'a ClusterStatus>,
        snapshot: &Snapshot<'a>,
        now: Timestamp,
    ) -> Self {
        // Of a twin nothing is known but that: it begins anew once it has a cluster of its own.
        let memory = memory.filter(|_| !matches!(standing, Standing::Twin { .. }));
        let room = memory.map(Room::recall).unwrap_or_default();
        let writes = memory
            .map(|memory| Writes::recall(&memory.internal))
            .unwrap_or_default();
        let mut this = Self {
            member,
            memory,
            standing,
            seen: Seen::default(),
            room,
            writes,
            target: Target::default(),
            reasons: Vec::new(),
            next: 0,
            held_until: None,
        };
        if this.live_set().is_some() {
            this.seen = see(&member.view, now, snapshot.settings);
        }
        this.next = this.placed();
        this
    }

    pub(super) fn usable(&self) -> bool {
        self.standing == Standing::Usable
    }

    /// Whether it is another name of a member that counts.
    pub(super) fn is_twin(&self) -> bool {
        matches!(self.standing, Standing::Twin { .. })
    }

    /// The local set, unless it is on its way out: what is left of it can't be counted on.
    pub(super) fn set(&self) -> Option<&'a WorkloadState> {
        self.live_set().filter(|set| !set.deleting)
    }

    /// The local set, if it is ours; that of a twin counts under the other name.
    pub(super) fn live_set(&self) -> Option<&'a WorkloadState> {
        self.member.own_set().filter(|_| !self.is_twin())
    }

    /// Replicas asked of the member, as far as is known: by its set, or by what was last decided.
    pub(super) fn placed(&self) -> u64 {
        match (self.set(), self.memory) {
            (Some(set), _) => u64::from(set.replicas),
            (None, Some(memory)) if !self.usable() => {
                count(memory.desired_replicas) + count(memory.internal.capacity_probes)
            }
            _ => 0,
        }
    }

    /// Pods that are available and stay so once everything asked for is carried out: the status of the set may
    /// lag behind a scale-down of ours, which `floor` remembers, and the pods may be ahead of the status.
    pub(super) fn available(&self) -> u64 {
        self.counted_on(|set| set.available_replicas)
    }

    pub(super) fn ready(&self) -> u64 {
        self.counted_on(|set| set.ready_replicas)
    }

    /// Pods that may be ready: whatever source says so. Those that are not ready by any can be given up at once. More than
    /// are asked for while the member has yet to remove some.
    pub(super) fn perhaps_ready(&self) -> u64 {
        let Some(set) = self.set() else { return 0 };
        u64::from(set.ready_replicas.max(self.member.view.pods.ready))
    }

    /// Pods that have a node and are not ready.
    pub(super) fn unready(&self) -> u64 {
        self.seen.scheduled.saturating_sub(self.perhaps_ready())
    }

    /// Pods that were made from another template than the one with this hash.
    pub(super) fn outdated(&self, template: u32) -> u64 {
        let others = self.member.view.pods.by_template.iter();
        others
            .filter(|(of, _)| *of != template)
            .map(|(_, pods)| u64::from(*pods))
            .sum()
    }

    /// Pods of the template with this hash.
    pub(super) fn updated(&self, template: u32) -> u64 {
        u64::from(self.member.view.updated_replicas(template))
    }

    fn counted_on(&self, of: impl Fn(&WorkloadState) -> u32) -> u64 {
        let Some(set) = self.set() else { return 0 };
        let mut sure = of(set).min(set.replicas).min(set.lowest_replicas);
        if !self.member.view.has_unlabeled_pods() {
            sure = sure.min(self.member.view.pods.ready);
        }
        u64::from(sure)
    }

    pub(super) fn refused_since(&self) -> Option<Timestamp> {
        let since = self.memory?.internal.rejection.as_ref()?.since.0;
        self.set().is_none().then_some(since)
    }

    pub(super) fn as_usable(
        &self,
        preference: Option<Preference>,
        now: Timestamp,
        settings: &CheckSettings,
    ) -> Usable<'a> {
        let refused = self
            .refused_since()
            .is_some_and(|since| after(since, settings.unscheduled_timeout) <= now);
        Usable {
            name: &self.member.name,
            preference: preference.map(|it| {
                if self.member.draining {
                    drain::NOTHING
                } else {
                    it
                }
            }),
            schedulable: self.member.schedulable,
            draining: self.member.draining,
            placed: self.placed(),
            waiting: self.seen.waiting,
            probes: self
                .memory
                .map_or(0, |memory| count(memory.internal.capacity_probes))
                .min(self.placed()),
            room: self.room.clone(),
            refused,
        }
    }

    pub(super) fn holding(&self) -> Holding {
        Holding {
            placed: self.placed(),
            ready: self.perhaps_ready(),
            available: self.available(),
            target: self.target.total(),
            pending: self.target.pending,
        }
    }
}
