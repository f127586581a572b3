//! Pods as an API server has them, and what kubelets do.

use std::collections::BTreeSet;

use fedrs_api::LocalRecord;
use replica_set_controller::{
    Action, Eviction, EvictionBy, Gate, Guard, InPlace, Life, Node, Owner, Pod, Readiness,
    RemoveReason, Resize, ResizeWait,
};

use super::{STARTUP, has_resize, is_bad, time};

/// How long a pod takes to shut down.
const SHUTDOWN: i64 = 5;
/// How long a kubelet takes to restart a container with another image.
const RESTART: i64 = 5;
/// When a pod of a bad revision crashes for the first time.
const CRASH: i64 = 10;

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct ModelPod {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) revision: Option<u32>,
    pub(crate) owner: Owner,
    created: i64,
    gate: Gate,
    /// When its gate was opened last.
    opened: i64,
    /// When its containers were started, or patched.
    started: i64,
    is_patched: bool,
    /// The resize that it was patched for.
    resize: ModelResize,
    terminating: Option<i64>,
    pub(crate) terminated: bool,
    pub(crate) eviction: Option<Eviction>,
    is_disrupted: bool,
    pub(crate) is_broken: bool,
    /// Whether it has the finalizer of shutdowns.
    is_guarded: bool,
    /// Whether its containers have stopped.
    has_stopped: bool,
    /// Whether its machine is destroyed, and somebody has said so.
    is_destroyed: bool,
    /// Whether it was deleted by force.
    is_forced: bool,
    /// Whether its node does not answer: its containers run on.
    is_cut: bool,
    /// Changes with each write.
    version: u64,
}

/// The resize of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelResize {
    None,
    /// The API server has not been asked.
    Due,
    /// It has accepted it, at this time.
    Accepted(i64),
}

/// A pod as it was seen at a time.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) pod: ModelPod,
    at: i64,
}

/// What the controller sends.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Create {
        name: String,
        revision: u32,
        is_guarded: bool,
    },
    Change {
        name: String,
        uid: String,
        /// The version of the pod that was seen, if that is a precondition.
        version: Option<u64>,
        change: RequestedChange,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum RequestedChange {
    Own(Owner),
    Remove { is_update: bool },
    ForceRemove,
    Guard(bool),
    Gate(Gate),
    Drain,
    Patch(u32),
    Resize,
}

/// What others do to a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    Delete,
    Break(bool),
    Terminate,
    Evict(Option<Eviction>),
    /// Its node does not answer any more.
    Cut,
    /// Its machine is destroyed, and somebody has said so.
    Destroy,
    Orphan,
    Relabel,
}

/// All pods, and what the controller has done to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) now: i64,
    pub(crate) pods: Vec<ModelPod>,
    /// When updates began.
    pub(crate) starts: Vec<i64>,
    /// The names of pods that are gone, and whose containers run.
    pub(crate) phantoms: Vec<String>,
    begun: BTreeSet<(String, Option<u32>)>,
    uids: u64,
}

impl Request {
    pub(crate) fn of(
        action: &Action<'_>,
        (target, is_guarded): (u32, bool),
        view: &[Seen],
    ) -> Self {
        let (pod, change) = match action {
            Action::Create { name, .. } => {
                return Self::Create {
                    name: name.clone(),
                    revision: target,
                    is_guarded,
                };
            }
            Action::Adopt { pod } => (pod, RequestedChange::Own(Owner::Set)),
            Action::Release { pod } => (pod, RequestedChange::Own(Owner::SetWithoutMatch)),
            Action::Remove { pod, reason } => {
                let is_update = matches!(reason, RemoveReason::Recreated { .. });
                (pod, RequestedChange::Remove { is_update })
            }
            Action::ForceRemove { pod, .. } => (pod, RequestedChange::ForceRemove),
            Action::AddFinalizer { pod } => (pod, RequestedChange::Guard(true)),
            Action::RemoveFinalizer { pod } => (pod, RequestedChange::Guard(false)),
            Action::CloseGate { pod } => (pod, RequestedChange::Gate(Gate::Closed)),
            Action::Drain { pod } => (pod, RequestedChange::Drain),
            Action::OpenGate { pod } => (pod, RequestedChange::Gate(Gate::Open)),
            Action::Patch { pod, .. } => (pod, RequestedChange::Patch(target)),
            Action::Resize { pod } => (pod, RequestedChange::Resize),
        };
        let seen = view.iter().find(|seen| seen.pod.uid == pod.uid);
        let needs_version = action.needs_version();
        Self::Change {
            version: seen.map(|seen| seen.pod.version).filter(|_| needs_version),
            name: pod.name.to_owned(),
            uid: pod.uid.to_owned(),
            change,
        }
    }

    /// The pod that it creates.
    pub(crate) fn created(&self) -> Option<String> {
        let is_creation = matches!(self, Self::Create { .. });
        is_creation.then(|| self.name().to_owned())
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Create { name, .. } | Self::Change { name, .. } => name,
        }
    }
}

impl Cluster {
    /// Carries a request out, if its precondition holds. Those updates have begun that are recorded.
    pub(crate) fn carry_out(&mut self, request: &Request, record: &LocalRecord) {
        match request {
            Request::Create {
                name,
                revision,
                is_guarded,
            } => self.create(name, *revision, *is_guarded),
            Request::Change {
                uid,
                version,
                change,
                ..
            } => {
                let is_recorded = record.updates.contains_key(uid);
                self.change(uid, *version, change, is_recorded);
            }
        }
    }

    fn create(&mut self, name: &str, revision: u32, is_guarded: bool) {
        let is_free = self.pods.iter().all(|pod| pod.name != name);
        if is_free {
            self.uids += 1;
            self.pods.push(ModelPod {
                name: name.to_owned(),
                uid: format!("uid-{}", self.uids),
                revision: Some(revision),
                owner: Owner::Set,
                created: self.now,
                gate: Gate::Unset,
                opened: self.now,
                started: self.now,
                is_patched: false,
                resize: ModelResize::None,
                terminating: None,
                terminated: false,
                eviction: None,
                is_disrupted: false,
                is_broken: false,
                is_guarded,
                has_stopped: false,
                is_destroyed: false,
                is_forced: false,
                is_cut: false,
                version: 0,
            });
            self.pods.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }

    fn change(
        &mut self,
        uid: &str,
        version: Option<u64>,
        change: &RequestedChange,
        is_recorded: bool,
    ) {
        let now = self.now;
        let Some(index) = self.pods.iter().position(|pod| pod.uid == uid) else {
            return;
        };
        if matches!(change, RequestedChange::Own(Owner::SetWithoutMatch)) {
            self.pods.remove(index);
            return;
        }
        let pod = &mut self.pods[index];
        if version.is_some_and(|version| version != pod.version) {
            return;
        }
        let is_live = pod.terminating.is_none() && !pod.terminated;
        pod.version += 1;
        let from = pod.revision;
        // Its update has begun when clients began to leave it.
        let was_draining = matches!(pod.gate, Gate::Draining { .. });
        let begins = match change {
            RequestedChange::Own(owner) => {
                pod.owner = *owner;
                false
            }
            RequestedChange::Remove { is_update } => {
                pod.terminating.get_or_insert(now);
                *is_update && !was_draining
            }
            RequestedChange::ForceRemove => {
                pod.terminating.get_or_insert(now);
                pod.is_forced = true;
                false
            }
            // None can be added to a pod that is being removed.
            RequestedChange::Guard(is_guarded) => {
                pod.is_guarded = *is_guarded && (pod.is_guarded || pod.terminating.is_none());
                false
            }
            RequestedChange::Gate(gate) => {
                pod.gate = *gate;
                pod.opened = now;
                *gate == Gate::Closed
            }
            RequestedChange::Drain => {
                pod.gate = Gate::Draining { since: time(now) };
                pod.opened = now;
                is_recorded
            }
            RequestedChange::Patch(revision) => {
                if was_draining {
                    pod.gate = Gate::Closed;
                }
                pod.revision = Some(*revision);
                (pod.started, pod.is_patched) = (now, true);
                pod.resize = if has_resize(*revision) {
                    ModelResize::Due
                } else {
                    ModelResize::None
                };
                !was_draining
            }
            RequestedChange::Resize => {
                pod.resize = ModelResize::Accepted(now);
                false
            }
        };
        if begins && is_live && self.begun.insert((uid.to_owned(), from)) {
            self.starts.push(now);
        }
        self.remove_ended();
    }

    /// Removes the pods that nothing keeps any more.
    fn remove_ended(&mut self) {
        let (pods, phantoms) = (&mut self.pods, &mut self.phantoms);
        pods.retain(|pod| {
            let is_over = pod.is_terminating() && (pod.has_stopped || pod.is_forced);
            let is_gone = is_over && !pod.is_guarded;
            if is_gone && !pod.has_stopped && !pod.is_destroyed {
                phantoms.push(pod.name.clone());
            }
            !is_gone
        });
    }

    /// What a current watch shows.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = self.pods.iter().map(|pod| Seen {
            pod: pod.clone(),
            at: self.now,
        });
        seen.collect()
    }

    /// Time passes: pods shut down.
    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += seconds;
        let now = self.now;
        for pod in &mut self.pods {
            let is_shut_down = pod.terminating.is_some_and(|at| at + SHUTDOWN <= now);
            if is_shut_down && !pod.is_cut && !pod.has_stopped {
                pod.version += 1;
                pod.has_stopped = true;
            }
            // The sweep lets go of pods without a set.
            let is_abandoned = pod.owner == Owner::Nobody && pod.has_stopped;
            pod.is_guarded &= !is_abandoned;
        }
        self.remove_ended();
    }

    /// Somebody else changes a pod.
    pub(crate) fn edit(&mut self, index: usize, edit: Edit) {
        let (count, now) = (self.pods.len().max(1), self.now);
        let Some(pod) = self.pods.get_mut(index % count) else {
            return;
        };
        pod.version += 1;
        match edit {
            Edit::Delete => _ = pod.terminating.get_or_insert(now),
            Edit::Break(is_broken) => pod.is_broken = is_broken,
            Edit::Terminate => pod.terminated = true,
            Edit::Evict(by) => pod.eviction = by,
            Edit::Cut => pod.is_cut = true,
            Edit::Destroy => {
                (pod.is_cut, pod.is_destroyed) = (true, true);
            }
            Edit::Orphan => pod.owner = Owner::Nobody,
            Edit::Relabel => pod.owner = Owner::SetWithoutMatch,
        }
    }

    /// A pod is evicted.
    pub(crate) fn evict(&mut self, uid: &str) {
        let now = self.now;
        if let Some(pod) = self.pods.iter_mut().find(|pod| pod.uid == uid) {
            pod.version += 1;
            pod.is_disrupted = true;
            pod.terminating.get_or_insert(now);
        }
    }

    /// The garbage collector removes pods that have terminated, and what was broken works.
    pub(crate) fn heal(&mut self) {
        self.pods.retain(|pod| !pod.terminated);
        for pod in &mut self.pods {
            (pod.is_broken, pod.is_cut) = (false, pod.is_destroyed);
        }
        self.phantoms.clear();
    }

    pub(crate) fn available(&self) -> usize {
        self.pods
            .iter()
            .filter(|pod| pod.ready_since(self.now).is_some())
            .count()
    }
}

impl ModelPod {
    /// Whether it runs, or is about to, as a replica.
    pub(crate) fn is_live(&self) -> bool {
        !self.is_terminating() && !self.terminated
    }

    /// Whether it is being removed, and stays while its containers run.
    pub(crate) fn is_held(&self) -> bool {
        let has_stopped = self.has_stopped || self.is_destroyed;
        self.is_terminating() && self.is_guarded && !has_stopped
    }

    fn guard(&self) -> Guard {
        match (self.is_guarded, self.is_terminating()) {
            (false, _) => Guard::Absent,
            (true, true) if self.has_stopped => Guard::Stopped,
            (true, _) if self.is_forced => Guard::Unproved,
            (true, _) => Guard::Holding,
        }
    }

    fn is_bad(&self) -> bool {
        self.revision.is_some_and(is_bad) || self.is_broken
    }

    /// How far its resize is. One of three nodes has no room, ever.
    fn resize_at(&self, now: i64) -> Resize {
        let since = time(self.started);
        match self.resize {
            ModelResize::Due => Resize::Due { since },
            ModelResize::Accepted(at) if at + RESTART > now => {
                let wait = ResizeWait::Kubelet;
                Resize::Pending { since, wait }
            }
            ModelResize::Accepted(_) if self.uid.ends_with(['0', '3', '6', '9']) => {
                Resize::Infeasible
            }
            ModelResize::None | ModelResize::Accepted(_) => Resize::Settled,
        }
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.terminating.is_some()
    }

    /// Since when it is ready; `None` if it is not.
    fn ready_since(&self, now: i64) -> Option<i64> {
        let is_in_endpoints = matches!(self.gate, Gate::Open | Gate::Absent);
        let is_up = self.is_live() && !self.is_bad() && !self.is_cut;
        let since = (self.started + STARTUP).max(self.opened);
        (is_in_endpoints && is_up && since <= now).then_some(since)
    }
}

impl Seen {
    /// Whether it was ready when it was seen.
    pub(crate) fn is_ready(&self) -> bool {
        self.pod.ready_since(self.at).is_some()
    }

    /// The facts at the time at which it was seen.
    pub(crate) fn facts(&self) -> Pod<'_> {
        let pod = &self.pod;
        let life = match (pod.terminating, pod.ready_since(self.at)) {
            (Some(since), _) => Life::Terminating {
                since: Some(time(since)),
            },
            _ if pod.terminated => Life::Terminated,
            (None, Some(since)) => Life::Live(Readiness::Ready { since: time(since) }),
            (None, None) => {
                let has_crashed = pod.is_bad() && pod.started + CRASH <= self.at;
                let failure = has_crashed.then_some("CrashLoopBackOff");
                Life::Live(Readiness::NotReady {
                    since: time(pod.started.max(pod.opened)),
                    failure,
                })
            }
        };
        let is_restarting = pod.is_patched && (pod.is_bad() || pod.started + RESTART > self.at);
        Pod {
            name: &pod.name,
            uid: &pod.uid,
            revision: pod.revision,
            owner: pod.owner,
            node: Some(Node {
                name: "node",
                is_ready: !pod.is_cut,
                is_cordoned: false,
            }),
            life,
            eviction: if pod.is_cut {
                Some(Eviction::Involuntary)
            } else {
                pod.eviction
            },
            eviction_by: EvictionBy::Pod,
            absence: None,
            migration: None,
            shard: None,
            guard: pod.guard(),
            is_gated: false,
            is_destroyed: pod.is_destroyed,
            is_disrupted: pod.is_disrupted,
            deletion_cost: 0,
            created: time(pod.created),
            restarts: 0,
            is_refused: false,
            gate: pod.gate,
            in_place: if is_restarting {
                InPlace::Restarting {
                    since: time(pod.started),
                }
            } else {
                InPlace::Settled
            },
            resize: pod.resize_at(self.at),
            is_crowded: false,
            is_resizable: true,
        }
    }
}
