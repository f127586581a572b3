//! How far the migration of a pod is (M5).

use std::collections::HashMap;

use fedrs_api::{AwaitedAction, EvictionRecord, LocalRecord, MigrationPhase, RecreateRecord};
use jiff::Timestamp;

use crate::{
    copies,
    migration::MigrationWait,
    plan::{Plan, Wait},
    pod::{Guard, Life, Pod},
    set::Set,
    shutdown::Shutdown,
    time::after,
};

/// How far a migration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationState<'a> {
    /// The phase. Whether it was forced, `is_forced` says until it ends.
    pub phase: MigrationPhase,
    /// What holds it up.
    pub wait: Option<MigrationWait<'a>>,
    /// What a person has to do, so that it goes on.
    pub awaits: Option<AwaitedAction>,
    /// When what it waits for ends, if that is known.
    pub until: Option<Timestamp>,
    /// Whether nothing of the set may be changed (L8).
    pub is_stopped: bool,
    /// Whether the pod is being removed.
    pub is_removed: bool,
    /// Whether it has begun because its deadline had passed (M15).
    pub is_forced: bool,
    /// The node of the pod, while it is there.
    pub node: Option<&'a str>,
    /// The pod in its place, if it is known which one that is.
    pub successor: Option<&'a Pod<'a>>,
}

/// How far the migrations of a set's pods are.
pub struct MigrationStates<'s, 'a> {
    set: &'s Set<'a>,
    record: &'s LocalRecord,
    by_uid: HashMap<&'a str, &'a Pod<'a>>,
    by_name: HashMap<&'a str, &'a Pod<'a>>,
    waits: HashMap<&'a str, MigrationWait<'a>>,
    has_unplaced: bool,
    now: Timestamp,
}

impl<'s, 'a> MigrationStates<'s, 'a> {
    /// Those of `pods` by what is `recorded`. What only the `plan` of the step has in its record has not begun, or not ended, until it is
    /// stored.
    #[must_use]
    pub fn new(
        set: &'s Set<'a>,
        pods: &'a [Pod<'a>],
        (plan, recorded): (&'s Plan<'a>, &'s LocalRecord),
        now: Timestamp,
    ) -> Self {
        let waits = plan.waits.iter().filter_map(|wait| match wait {
            Wait::Migration { uid, reason, .. } => Some((*uid, *reason)),
            _ => None,
        });
        let mut live = pods.iter().filter(|pod| pod.is_live());
        // A pod that has ended does not run anywhere (C8).
        let present = pods.iter().filter(|pod| pod.life != Life::Terminated);
        Self {
            set,
            record: recorded,
            by_uid: present.clone().map(|pod| (pod.uid, pod)).collect(),
            by_name: present.map(|pod| (pod.name, pod)).collect(),
            waits: waits.collect(),
            has_unplaced: plan.account.missing > 0 || live.any(|pod| pod.node.is_none()),
            now,
        }
    }

    /// That of the pod with this uid, which another one with this name replaces. `has_begun`: by what was known of it before; a pod that
    /// is removed before its migration has begun is not migrated.
    #[must_use]
    pub fn of(&self, uid: &str, name: &str, has_begun: bool) -> MigrationState<'a> {
        let eviction = self.record.evictions.get(uid);
        let is_begun = eviction.is_some_and(|eviction| eviction.begun);
        let pod = self.by_uid.get(uid).copied();
        let node = pod.and_then(|pod| pod.node).map(|node| node.name);
        let state = |phase, successor| MigrationState {
            node,
            phase,
            wait: None,
            awaits: None,
            until: None,
            is_stopped: false,
            is_removed: pod.is_some_and(|pod| matches!(pod.life, Life::Terminating { .. })),
            is_forced: eviction.is_some_and(|eviction| eviction.forced),
            successor,
        };
        match pod {
            Some(pod) if pod.is_live() && is_begun && pod.is_draining() => {
                state(MigrationPhase::ShuttingDown, None)
            }
            Some(pod) if pod.is_live() && is_begun => state(MigrationPhase::Evicting, None),
            Some(pod) if let Some(copy) = self.copy_of(pod) => self.copied(pod, copy, state),
            Some(pod) if pod.is_live() && pod.eviction.is_some() => {
                let wait = self.waits.get(uid).copied();
                MigrationState {
                    wait,
                    until: wait.and_then(MigrationWait::until),
                    awaits: (wait == Some(MigrationWait::ShutdownByPerson))
                        .then_some(AwaitedAction::ShutDown),
                    is_stopped: self.set.is_still(),
                    ..state(self.waiting_phase(uid), None)
                }
            }
            Some(pod) if matches!(pod.life, Life::Terminating { .. }) => {
                let (phase, until, awaits) = self.removed(pod);
                MigrationState {
                    awaits,
                    until,
                    ..state(phase, None)
                }
            }
            Some(_) => state(MigrationPhase::Cancelled, None),
            None if !is_begun && !has_begun => state(MigrationPhase::Cancelled, None),
            None => {
                let copy = eviction.and_then(|eviction| eviction.copy.as_ref());
                let name = copy.map_or(name, |copy| &copy.name);
                let successor = self.by_name.get(name).copied();
                let is_gated = successor.is_some_and(|pod| pod.is_gated);
                MigrationState {
                    awaits: is_gated.then_some(AwaitedAction::Start),
                    ..state(self.placed(eviction, successor), successor)
                }
            }
        }
    }

    /// The phase of a pod that is being removed, until when it waits, and for what.
    fn removed(&self, pod: &Pod<'_>) -> (MigrationPhase, Option<Timestamp>, Option<AwaitedAction>) {
        match Shutdown::of(self.set, pod, self.now) {
            Some(Shutdown::HandsUp | Shutdown::Replaced) => {
                let awaits = Some(AwaitedAction::ConfirmDestroyed);
                (MigrationPhase::HandsUp, None, awaits)
            }
            Some(Shutdown::Unconfirmed) => {
                let awaits = Some(AwaitedAction::ConfirmStopped);
                let deadline = pod.migration.map(|asked| asked.deadline);
                (MigrationPhase::WaitingForConfirmation, deadline, awaits)
            }
            Some(Shutdown::Stopping { until }) => (MigrationPhase::ShuttingDown, until, None),
            None if pod.guard != Guard::Absent => (MigrationPhase::ShuttingDown, None, None),
            _ => (MigrationPhase::Evicting, None, None),
        }
    }

    fn waiting_phase(&self, uid: &str) -> MigrationPhase {
        match self.waits.get(uid) {
            _ if self.set.is_still() => MigrationPhase::WaitingForBudget,
            None => MigrationPhase::Requested,
            Some(MigrationWait::ShutdownByPerson) => MigrationPhase::WaitingForConfirmation,
            Some(MigrationWait::CompactionRefused) => MigrationPhase::Cancelled,
            Some(_) => MigrationPhase::WaitingForBudget,
        }
    }

    /// The copy that is to take the place of a live pod, and has not.
    fn copy_of(&self, pod: &Pod<'_>) -> Option<&'s RecreateRecord> {
        let eviction = self.record.evictions.get(pod.uid)?;
        let is_waiting = pod.is_live() && pod.eviction.is_some() && !eviction.begun;
        eviction.copy.as_ref().filter(|_| is_waiting)
    }

    /// That of a pod whose copy has not taken its place (M2, M4).
    fn copied(
        &self,
        pod: &Pod<'_>,
        copy: &RecreateRecord,
        state: impl Fn(MigrationPhase, Option<&'a Pod<'a>>) -> MigrationState<'a>,
    ) -> MigrationState<'a> {
        let successor = self.by_name.get(&*copy.name).copied();
        let with_node = successor.filter(|copy| copy.node.is_some());
        let (phase, awaits) = match with_node {
            None => {
                let is_gated = successor.is_some_and(|copy| copy.is_gated);
                let awaits = is_gated.then_some(AwaitedAction::Start);
                (MigrationPhase::Placing, awaits)
            }
            Some(_) if copies::is_held(self.set, Some(pod)) => {
                let awaits = Some(AwaitedAction::ConfirmActivation);
                (MigrationPhase::WaitingForConfirmation, awaits)
            }
            Some(copy) if !self.is_available(copy) => (MigrationPhase::Starting, None),
            Some(_) if copies::is_kept(self.set, pod) => {
                let awaits = Some(AwaitedAction::ConfirmShutdown);
                (MigrationPhase::WaitingForConfirmation, awaits)
            }
            Some(_) if self.waits.contains_key(pod.uid) => (MigrationPhase::WaitingForBudget, None),
            Some(_) => (MigrationPhase::Starting, None),
        };
        MigrationState {
            awaits,
            wait: self.waits.get(pod.uid).copied(),
            is_stopped: self.set.is_still(),
            ..state(phase, successor)
        }
    }

    /// The pod is gone.
    fn placed(
        &self,
        eviction: Option<&EvictionRecord>,
        successor: Option<&Pod<'_>>,
    ) -> MigrationPhase {
        match (successor, eviction) {
            (Some(pod), _) if self.is_available(pod) => MigrationPhase::Done,
            (Some(pod), _) if pod.node.is_some() => MigrationPhase::Starting,
            (Some(_), _) => MigrationPhase::Placing,
            (None, None) => MigrationPhase::Done,
            (None, Some(eviction)) if eviction.recreate.is_some() || self.has_unplaced => {
                MigrationPhase::Placing
            }
            (None, Some(_)) => MigrationPhase::Starting,
        }
    }

    fn is_available(&self, pod: &Pod<'_>) -> bool {
        let since = pod.ready_since();
        let is_long = since.is_some_and(|since| after(since, self.set.min_ready) <= self.now);
        is_long && !pod.is_on_lost_node()
    }
}
