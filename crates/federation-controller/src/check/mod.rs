//! The check of one FederatedReplicaSet (DoFrsCheck): pure, without clock, client or randomness.
//!
//! ```text
//! snapshot --> standing of each member --> what is seen and learnt --> targets (scheduler) --> next safe step
//!                                                                                                |
//!                            Check { actions, status (with memory), events, next_check } <-------'
//! ```
//!
//! What must outlive the process is in the status, so that a new leader decides the same. Carrying out is
//! the executor's.

mod capacity;
mod contention;
mod drain;
mod moves;
mod recall;
mod report;
mod snapshot;
mod standing;
mod target;

use std::collections::BTreeMap;

use cluster_informer::SetFact;
use federated_scheduler::Reason;
use fedrs_api::{ClusterStatus, FederatedReplicaSetStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub use self::snapshot::{CheckSettings, Member, Snapshot};
use self::{
    capacity::{Room, Seen, see},
    contention::Contention,
    moves::{Bounds, Holding, next_step},
    recall::Recall,
    standing::{Standing, standing},
    target::{Target, Usable, shares_with_room, targets},
};
pub(crate) use self::{report::condition, standing::after};

/// What a check decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What to change in the members. Each is safe by itself, in any order, and at most one for each member.
    pub actions: Vec<Action>,
    /// The status to publish, which is the next check's memory.
    pub status: FederatedReplicaSetStatus,
    /// What people should be told.
    pub events: Vec<Notice>,
    /// When to check again, if nothing happens before; `None` when settled (F27).
    pub next_check: Option<Timestamp>,
    /// Whether replicas wait for their replacements to be ready: each that gets ready is worth a check (F20).
    pub moving: bool,
}

/// One change of one member's local set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The member.
    pub member: String,
    /// What to do there.
    pub change: SetChange,
    /// Whether that puts right what somebody else has changed (F29, F31).
    pub repairs: bool,
    /// What people should be told once it is done.
    pub notice: Notice,
}

/// How a local set changes. Carries what the write is conditional on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetChange {
    /// It doesn't exist: create it.
    Create {
        /// Its `spec.replicas`.
        replicas: u32,
    },
    /// Set its replicas.
    Scale {
        /// The set as it was seen.
        seen: Seat,
        /// The replicas it has.
        from: u32,
        /// The replicas it gets.
        to: u32,
        /// Whether some are given up because they don't run, which only this very version of the set shows.
        idle: bool,
    },
    /// Write all of it: its template is not the one wanted (F29).
    Overwrite {
        /// The set as it was seen.
        seen: Seat,
        /// Its `spec.replicas`.
        replicas: u32,
        /// Whether somebody else changed it, and not the user the FederatedReplicaSet.
        drifted: bool,
    },
}

/// Which object, in which state, a write is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The object's uid.
    pub uid: String,
    /// The object's generation: every change of its spec raises it.
    pub generation: i64,
    /// The object's resourceVersion: every change of it, also of its status, makes another.
    pub resource_version: String,
}

impl From<&SetFact> for Seat {
    fn from(set: &SetFact) -> Self {
        Self {
            uid: set.uid.clone(),
            generation: set.generation,
            resource_version: set.resource_version.clone(),
        }
    }
}

/// What people should be told about a FederatedReplicaSet: becomes an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it needs attention.
    pub warning: bool,
    /// One word in CamelCase.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Notice {
    /// Needs attention.
    pub(crate) fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning: true,
            reason,
            message: message.into(),
        }
    }

    /// All is well.
    pub(crate) fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning: false,
            ..Self::warning(reason, message)
        }
    }
}

/// One member with everything the steps of a check found out about it.
struct Considered<'a> {
    member: &'a Member,
    memory: Option<&'a ClusterStatus>,
    standing: Standing,
    seen: Seen,
    room: Room,
    contention: Contention,
    target: Target,
    /// The scheduler's sentences.
    reasons: Vec<String>,
    /// `spec.replicas` after this check's action.
    next: u64,
    /// When the set is written, where that has to wait because somebody else writes it as well.
    held_until: Option<Timestamp>,
}

impl<'a> Considered<'a> {
    fn new(
        member: &'a Member,
        memory: Option<&'a ClusterStatus>,
        snapshot: &Snapshot<'a>,
        now: Timestamp,
    ) -> Self {
        let standing = standing(member, now, snapshot.settings);
        let seen = see(&member.view, now, snapshot.settings);
        let room = memory.map(Room::recall).unwrap_or_default();
        let contention = memory.map(Contention::recall).unwrap_or_default();
        let mut this = Self {
            member,
            memory,
            standing,
            seen,
            room,
            contention,
            target: Target::default(),
            reasons: Vec::new(),
            next: 0,
            held_until: None,
        };
        this.next = this.placed();
        this
    }

    fn usable(&self) -> bool {
        self.standing == Standing::Usable
    }

    /// The local set, unless it is on its way out: what is left of it can't be counted on.
    fn set(&self) -> Option<&'a SetFact> {
        self.live_set().filter(|set| !set.deleting)
    }

    /// The local set, if it is ours: one with a controller owner is somebody else's (F29).
    fn live_set(&self) -> Option<&'a SetFact> {
        self.member.view.set.as_ref().filter(|set| !set.controlled)
    }

    /// Replicas asked of the member, as far as is known: by its set, or by what was last decided.
    fn placed(&self) -> u64 {
        match (self.set(), self.memory) {
            (Some(set), _) => u64::from(set.replicas),
            (None, Some(memory)) if !self.usable() => count(memory.desired) + count(memory.probes),
            _ => 0,
        }
    }

    /// Pods that are available and stay so once everything asked for is carried out: the status of the set may
    /// lag behind a scale-down of ours, which `floor` remembers, and the pods may be ahead of the status.
    fn available(&self) -> u64 {
        self.counted_on(|set| set.available)
    }

    fn ready(&self) -> u64 {
        self.counted_on(|set| set.ready)
    }

    /// Pods that may be ready: whatever source says so. Those that are not ready by any can be given up at once.
    fn perhaps_ready(&self) -> u64 {
        let Some(set) = self.set() else { return 0 };
        u64::from(set.ready.max(self.member.view.pods.ready).min(set.replicas))
    }

    /// Pods that have a node and are not ready.
    fn unready(&self) -> u64 {
        self.seen.scheduled.saturating_sub(self.perhaps_ready())
    }

    fn counted_on(&self, of: impl Fn(&SetFact) -> u32) -> u64 {
        let Some(set) = self.set() else { return 0 };
        let mut sure = of(set).min(set.replicas).min(set.floor);
        if set.fully_labeled == set.current {
            sure = sure.min(self.member.view.pods.ready);
        }
        u64::from(sure)
    }

    fn refused_since(&self) -> Option<Timestamp> {
        let since = self.memory?.refused_since.as_ref()?.0;
        self.set().is_none().then_some(since)
    }

    fn as_usable(&self, now: Timestamp, settings: &CheckSettings) -> Usable<'a> {
        let refused = self
            .refused_since()
            .is_some_and(|since| after(since, settings.unscheduled_timeout) <= now);
        Usable {
            name: &self.member.name,
            schedulable: self.member.schedulable,
            draining: self.member.draining,
            placed: self.placed(),
            waiting: self.seen.waiting,
            probes: self
                .memory
                .map_or(0, |memory| count(memory.probes))
                .min(self.placed()),
            room: self.room.clone(),
            refused,
        }
    }

    fn holding(&self) -> Holding {
        Holding {
            placed: self.placed(),
            ready: self.perhaps_ready(),
            available: self.available(),
            target: self.target.total(),
            pending: self.target.pending,
        }
    }
}

/// A count of the status, which is never negative when it is ours.
fn count(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A count for the API: sets have at most `i32::MAX` replicas.
fn number(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Checks one FederatedReplicaSet at `now` (F20, F26 to F39).
#[must_use]
pub fn check(snapshot: &Snapshot<'_>, now: Timestamp) -> Check {
    let mut memory = Recall::from(&snapshot.memory.clusters);
    let mut members: Vec<_> = snapshot
        .members
        .iter()
        .map(|member| Considered::new(member, memory.of(&member.name), snapshot, now))
        .collect();
    let joining = members
        .iter()
        .any(|it| matches!(it.standing, Standing::Joining { .. }));
    let unplaced = if joining {
        count(snapshot.memory.unplaced)
    } else {
        decide(snapshot, &mut members, now)
    };
    let hold = joining || snapshot.frs.paused || snapshot.observe_only;
    let actions = if hold {
        Vec::new()
    } else {
        actions(snapshot, &mut members, now)
    };
    // What has been told stays until all have answered: a restart of a settled set writes nothing.
    let (status, events) = if joining && snapshot.is_answered() {
        (snapshot.memory.clone(), Vec::new())
    } else {
        let status = report::status(snapshot, &members, unplaced, joining, now);
        let events = report::notices(snapshot, &members, &status);
        (status, events)
    };
    let next_check = next_check(snapshot, &members, &status, &actions, now);
    let moving = members
        .iter()
        .any(|it| it.usable() && it.placed() != it.target.total());
    Check {
        actions,
        status,
        events,
        next_check,
        moving,
    }
}

/// Fills in room, target and next step of the usable members; answers what no cluster can run.
fn decide(snapshot: &Snapshot<'_>, members: &mut [Considered<'_>], now: Timestamp) -> u64 {
    let settings = snapshot.settings;
    let wanted = u64::from(snapshot.frs.replicas);
    let frozen: u64 = members
        .iter()
        .filter(|it| matches!(it.standing, Standing::Frozen { .. }))
        .map(Considered::placed)
        .sum();
    let replicas = wanted.saturating_sub(frozen);
    let key = snapshot.frs.key.to_string();

    let mut usable: Vec<&mut Considered<'_>> =
        members.iter_mut().filter(|it| it.usable()).collect();
    let clusters: Vec<_> = usable
        .iter()
        .map(|it| it.as_usable(now, settings))
        .collect();
    let mut with_room = shares_with_room(snapshot.frs, &key, replicas, &clusters);
    let rebalance = snapshot.frs.placement.rebalance;
    let mut has_learnt = false;
    for ((it, before), &share) in usable.iter_mut().zip(&clusters).zip(&with_room) {
        let room = std::mem::take(&mut it.room);
        it.room = room.learn(&it.seen, share, rebalance, now, settings);
        has_learnt |= it.room != before.room;
    }
    let clusters: Vec<_> = usable
        .iter()
        .map(|it| it.as_usable(now, settings))
        .collect();
    if has_learnt {
        with_room = shares_with_room(snapshot.frs, &key, replicas, &clusters);
    }
    let laid_out = targets(snapshot.frs, &key, replicas, &clusters, with_room, settings);
    for (i, it) in usable.iter_mut().enumerate() {
        it.target = laid_out.per_cluster[i];
        if it.member.draining {
            it.reasons = vec![drain::reason(it.placed()).to_owned()];
            continue;
        }
        it.reasons = laid_out.layout.shares[i]
            .reasons
            .iter()
            // A cordon and a refusal limit it as well, and say so themselves.
            .filter(|reason| {
                it.room.capacity.is_some() || !matches!(reason, Reason::AtCapacity { .. })
            })
            .map(|reason| reason.to_string())
            .collect();
    }

    // F39: what a frozen member runs can't be counted on, so that nothing is given up elsewhere because of it.
    let targets = usable.iter().map(|it| it.target);
    let floor: u64 = targets
        .clone()
        .map(|target| target.layout + target.pending)
        .sum::<u64>()
        + frozen;
    let probes: u64 = targets.map(|target| target.probes).sum();
    let ceiling = (wanted + settings.surge(wanted) + probes).saturating_sub(frozen);
    let holdings: Vec<_> = usable.iter().map(|it| it.holding()).collect();
    let step = next_step(&holdings, Bounds { floor, ceiling });
    for (it, next) in usable.iter_mut().zip(step) {
        it.next = next;
    }
    laid_out.layout.unplaced
}

/// What to write in the members to take the step.
fn actions(snapshot: &Snapshot<'_>, members: &mut [Considered<'_>], now: Timestamp) -> Vec<Action> {
    let usable = members.iter_mut().filter(|it| it.usable());
    usable.filter_map(|it| action(snapshot, it, now)).collect()
}

/// What to write in one member; nothing yet where somebody else keeps writing as well.
fn action(snapshot: &Snapshot<'_>, it: &mut Considered<'_>, now: Timestamp) -> Option<Action> {
    let settings = snapshot.settings;
    let change = change(snapshot, it, now);
    let found = it.live_set().map(|set| set.generation);
    let contention = std::mem::take(&mut it.contention);
    it.contention = contention.learn(found, change.is_some(), now, settings);
    let change = change?;
    it.held_until = it.contention.not_before(settings).filter(|it| now < *it);
    if it.held_until.is_some() {
        return None;
    }
    it.contention.write(now);
    let member = it.member.name.clone();
    let repairs = it.contention.is_disturbed();
    let notice = report::action_notice(&member, &change, &it.reasons.join("; "), repairs);
    Some(Action {
        member,
        change,
        repairs,
        notice,
    })
}

fn change(snapshot: &Snapshot<'_>, it: &Considered<'_>, now: Timestamp) -> Option<SetChange> {
    let next = u32::try_from(it.next).unwrap_or(u32::MAX);
    let Some(set) = it.live_set() else {
        let backing_off = it
            .memory
            .and_then(|memory| memory.next_try.as_ref())
            .is_some_and(|time| now < time.0);
        let wait = it.refused_since().is_some() && backing_off;
        return (next > 0 && !wait).then_some(SetChange::Create { replicas: next });
    };
    if set.deleting {
        return None;
    }
    let idle = next < set.replicas && it.perhaps_ready() < it.placed();
    let recorded = it.memory.and_then(|memory| memory.template.as_deref());
    let written = TemplateRecord {
        wanted: snapshot.wanted_spec_hash,
        live: set.spec_hash,
    };
    if recorded != Some(written.to_string().as_str()) {
        // Without a record it isn't known who wrote it: overwritten all the same, without blaming anybody.
        let drifted = recorded
            .and_then(TemplateRecord::parse)
            .is_some_and(|recorded| recorded.wanted == written.wanted);
        return Some(SetChange::Overwrite {
            seen: set.into(),
            // What doesn't run is given up by a write of its own, which fails if it runs by then.
            replicas: if idle { set.replicas } else { next },
            drifted,
        });
    }
    (next != set.replicas).then(|| SetChange::Scale {
        seen: set.into(),
        from: set.replicas,
        to: next,
        idle,
    })
}

/// When to look again, if nothing happens before (F27).
fn next_check(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
    actions: &[Action],
    now: Timestamp,
) -> Option<Timestamp> {
    let mut times: Vec<Timestamp> = Vec::new();
    for it in members {
        match &it.standing {
            Standing::Joining { until } => times.push(*until),
            Standing::Frozen { until, .. } => times.extend(until),
            Standing::Usable | Standing::Lost { .. } => {}
        }
        times.extend(it.seen.next_failure);
        if it.usable() {
            times.extend(it.held_until);
            times.extend(it.contention.over_at(snapshot.settings));
        }
        if it.refused_since().is_some() {
            times.extend(
                it.memory
                    .and_then(|memory| memory.next_try.as_ref())
                    .map(|time| time.0),
            );
        }
    }
    if !report::settled(members, status) || !actions.is_empty() {
        times.push(after(now, snapshot.settings.recheck_interval));
    }
    times.into_iter().filter(|time| *time > now).min()
}

/// Hashes of what was written to a member and of what the member made of it: tells a template the user changed
/// from one that somebody changed in the member (F29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateRecord {
    /// Hash of the local set's spec as fedrs writes it, without replicas.
    pub wanted: u64,
    /// Hash of it as the member shows it, with its defaults.
    pub live: u64,
}

impl TemplateRecord {
    /// Reads what `Display` wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (wanted, live) = text.split_once('-')?;
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self {
            wanted: hex(wanted)?,
            live: hex(live)?,
        })
    }
}

impl std::fmt::Display for TemplateRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}-{:016x}", self.wanted, self.live)
    }
}

/// Outcomes of actions, by member: what the executor found out.
pub type Outcomes = BTreeMap<String, Outcome>;

/// How a refusal begins that is about a set of somebody else (F29, F40).
pub(crate) const NAME_CONFLICT: &str = "NameConflict:";

/// What became of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written; the set as the member now shows it.
    Written(SetFact),
    /// There was a set of somebody: written over (F29); the set as the member now shows it.
    TakenOver {
        /// The set.
        set: SetFact,
        /// What was changed in it, in words.
        changed: String,
    },
    /// Somebody else had changed the set: written as it should be; the set as the member now shows it.
    Repaired {
        /// The set.
        set: SetFact,
        /// The field manager of the change, where the member says so.
        by: Option<String>,
    },
    /// The member refused to create the set (F28), and its words.
    Refused(String),
    /// It didn't happen and will be decided anew: a conflict.
    Undecided(String),
    /// Whether it happened nobody knows, and it will be decided anew: a deadline, a broken connection.
    Unknown(String),
    /// The answer is still awaited: until it comes nothing is decided about the member.
    Unanswered,
}

/// Says in the status that the spec can't be carried out (F4); everything else stays as it was.
pub fn reject(status: &mut FederatedReplicaSetStatus, message: &str, now: Timestamp) {
    let accepted = report::condition(
        &status.conditions,
        "Accepted",
        false,
        "Invalid",
        message,
        now,
    );
    let accepted = Condition {
        observed_generation: status.observed_generation,
        ..accepted
    };
    status.conditions.retain(|it| it.type_ != "Accepted");
    status.conditions.insert(0, accepted);
}

/// Takes what the executor found out into the status: it is the next check's memory.
pub fn remember(
    status: &mut FederatedReplicaSetStatus,
    outcomes: &Outcomes,
    wanted: u64,
    now: Timestamp,
    settings: &CheckSettings,
) {
    for cluster in &mut status.clusters {
        match outcomes.get(&cluster.name) {
            Some(Outcome::Written(set) | Outcome::TakenOver { set, .. }) => {
                remember_written(cluster, set, wanted);
            }
            Some(Outcome::Repaired { set, by }) => {
                remember_written(cluster, set, wanted);
                cluster.disturbed_by.clone_from(by);
            }
            Some(Outcome::Refused(message)) => report::refused(cluster, message, now, settings),
            // What is found there next may be what this wrote.
            Some(Outcome::Unknown(_) | Outcome::Unanswered) => cluster.written_generation = None,
            Some(Outcome::Undecided(_)) | None => {}
        }
    }
}

fn remember_written(cluster: &mut ClusterStatus, set: &SetFact, wanted: u64) {
    let live = set.spec_hash;
    cluster.template = Some(TemplateRecord { wanted, live }.to_string());
    cluster.written_generation = Some(set.generation);
    if cluster.refused_since.take().is_some() {
        (cluster.failures, cluster.next_try, cluster.refusal) = (0, None, None);
    }
}
