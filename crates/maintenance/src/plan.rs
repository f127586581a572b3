//! What has to be done for one Maintenance, from what its object says and what its members show. Pure.
//!
//! ```text
//! Goal -> Summary of each cluster -> status, conditions, events -> patches of nodes, finalizer -> next look
//! ```
//!
//! A cluster is in the status before the first of its nodes is marked, and until the last mark is gone: that is how a later leader finds
//! the marks.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use controller_base::{event::Event, finalizer};
use fedrs_api::{
    Maintenance, MaintenanceCluster, MaintenanceMark, MaintenanceNodes, MaintenancePhase,
    MaintenanceStatus, ValidMaintenance, finalizers,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    blocking,
    conditions::{self, Facts},
    events,
    goal::{Goal, Rejection, acceptance},
    node_patch::NodePatch,
    observed::Observed,
    summary::{self, Summary, Wanted},
};

/// The time between two looks at nodes while they are marked, or marks are removed.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);
/// The same before the work begins: only the numbers of nodes may change.
const SCHEDULED_PERIOD: Duration = Duration::from_secs(60);
/// The time after which writes show.
const AFTER_WRITES: Duration = Duration::from_secs(1);

/// What a plan is made from.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) maintenance: &'a Maintenance,
    /// The names of all members.
    pub(crate) members: &'a BTreeSet<String>,
    /// What was read of those that the goal's scopes name, or why it could not be read.
    pub(crate) observed: &'a BTreeMap<String, Result<Observed, String>>,
    /// The members that rejected the last patch of a node, and why.
    pub(crate) rejected: &'a BTreeMap<String, String>,
    pub(crate) now: Timestamp,
}

/// A change of the finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalizerChange {
    /// Before everything else.
    Add,
    /// After everything else.
    Remove,
}

/// What has to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) finalizer: Option<FinalizerChange>,
    /// To be written before any patch, if it differs.
    pub(crate) status: MaintenanceStatus,
    pub(crate) events: Vec<Event>,
    /// By cluster.
    pub(crate) patches: BTreeMap<String, Vec<NodePatch>>,
    /// When to look again; `None` if nothing changes before the object does.
    pub(crate) next: Option<Duration>,
}

/// The plan.
pub(crate) fn plan(input: &Input<'_>) -> Plan {
    let goal = Goal::of(input.maintenance, input.members, input.now);
    let rejection = acceptance(input.maintenance, input.members).err();
    if goal == Goal::NotAccepted {
        return not_accepted(input, rejection.as_ref());
    }
    let previous = input.maintenance.status.clone().unwrap_or_default();
    let started = started(input, &goal, &previous);
    let summaries = summaries(input, &goal, started);
    let mut status = status(input, &goal, &summaries, &previous);
    status.started = started.map(Time);
    status.conditions = conditions(input, &goal, rejection.as_ref(), &summaries, &previous);
    let has_finalizer = finalizer::is_present(&input.maintenance.metadata, finalizers::MAINTENANCE);
    let is_clean = goal == Goal::Over && status.clusters.is_empty();
    let finalizer = match goal {
        Goal::Active(_) if !has_finalizer => Some(FinalizerChange::Add),
        Goal::Over if has_finalizer && is_clean => Some(FinalizerChange::Remove),
        _ => None,
    };
    let patches = summaries
        .into_iter()
        .filter(|(_, summary)| !summary.patches.is_empty())
        .map(|(name, summary)| (name.to_owned(), summary.patches));
    let mut patches: BTreeMap<_, _> = patches.collect();
    if finalizer == Some(FinalizerChange::Add) {
        // Without it, the object could disappear before its marks.
        patches.clear();
    }
    let is_new = |cluster: &String| !input.rejected.contains_key(cluster);
    let next = match &goal {
        // A member that rejects marks is asked again with the next period.
        _ if patches.keys().any(is_new) => Some(AFTER_WRITES),
        _ if !patches.is_empty() => Some(PERIOD),
        Goal::Scheduled(_, starts) => Some(until(*starts, input.now).min(SCHEDULED_PERIOD)),
        _ if is_clean => None,
        _ => Some(PERIOD),
    };
    Plan {
        finalizer,
        events: events::of(&previous, &status, &forgotten(input, &previous)),
        status,
        patches,
        next,
    }
}

/// Nothing is changed, and the status says why.
fn not_accepted(input: &Input<'_>, rejection: Option<&Rejection>) -> Plan {
    let previous = input.maintenance.status.clone().unwrap_or_default();
    let conditions = conditions(
        input,
        &Goal::NotAccepted,
        rejection,
        &BTreeMap::new(),
        &previous,
    );
    let status = MaintenanceStatus {
        observed_generation: input.maintenance.metadata.generation,
        conditions,
        ..previous.clone()
    };
    Plan {
        finalizer: None,
        events: events::of(&previous, &status, &[]),
        status,
        patches: BTreeMap::new(),
        // A member of that name may be added.
        next: Some(PERIOD),
    }
}

/// When nodes were first marked: of an object without a status, the marks know it.
fn started(input: &Input<'_>, goal: &Goal, previous: &MaintenanceStatus) -> Option<Timestamp> {
    let recorded = previous.started.as_ref().map(|started| started.0);
    let Goal::Active(valid) = goal else {
        return recorded;
    };
    let uid = input.maintenance.metadata.uid.as_deref()?;
    let observed = input.observed.values().flatten();
    let marks = observed.flat_map(|observed| observed.nodes.values());
    let ends = marks.filter_map(|node| Some(node.mark_of(uid)?.until?.0));
    let by_marks = valid.duration.zip(ends.min()).and_then(|(duration, end)| {
        let duration = SignedDuration::try_from(duration).ok()?;
        end.checked_sub(duration).ok()
    });
    recorded.or(by_marks).or_else(|| Some(seconds(input.now)))
}

/// Times of objects have no fractions of seconds.
fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The mark that nodes have, apart from what was before.
fn wanted_mark(
    maintenance: &Maintenance,
    valid: &ValidMaintenance,
    started: Option<Timestamp>,
) -> MaintenanceMark {
    let metadata = &maintenance.metadata;
    let begin = valid.start_time.or(started);
    let until = begin.zip(valid.duration).and_then(|(begin, duration)| {
        let duration = SignedDuration::try_from(duration).ok()?;
        begin.checked_add(duration).ok()
    });
    MaintenanceMark {
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        deadline: valid.deadline.map(Time),
        until: until.map(Time),
        duration_seconds: maintenance.spec.duration_seconds,
        reason: maintenance.spec.reason.clone(),
        was_cordoned: false,
    }
}

/// The summaries of the clusters that answer.
fn summaries<'a>(
    input: &Input<'a>,
    goal: &Goal,
    started: Option<Timestamp>,
) -> BTreeMap<&'a str, Summary> {
    let uid = input
        .maintenance
        .metadata
        .uid
        .as_deref()
        .unwrap_or_default();
    let targets = goal.targets(input.members);
    let answering = input
        .observed
        .iter()
        .filter_map(|(name, observed)| Some((name, observed.as_ref().ok()?)));
    let of_cluster = |(name, observed): (&'a String, &Observed)| {
        let valid = goal.valid().filter(|_| targets.contains(name));
        let wanted = match (goal, valid) {
            (Goal::Active(_), Some(valid)) => {
                let mark = wanted_mark(input.maintenance, valid, started);
                Wanted::Marks(&valid.node_selector, mark)
            }
            (_, valid) => Wanted::NoMarks(valid.map(|valid| &valid.node_selector), uid),
        };
        (name.as_str(), summary::of(name, observed, &wanted))
    };
    answering.map(of_cluster).collect()
}

/// The status, without its conditions and the start.
fn status(
    input: &Input<'_>,
    goal: &Goal,
    summaries: &BTreeMap<&str, Summary>,
    previous: &MaintenanceStatus,
) -> MaintenanceStatus {
    let mut clusters = BTreeMap::<&str, &MaintenanceCluster>::new();
    let is_silent = |name: &String| matches!(input.observed.get(name), Some(Err(_)));
    for cluster in &previous.clusters {
        // What is not known now is as it was.
        if is_silent(&cluster.name) {
            clusters.insert(&cluster.name, cluster);
        }
    }
    for (name, summary) in summaries {
        if summary.counts.nodes > 0 || summary.marks_left > 0 {
            clusters.insert(name, &summary.counts);
        }
    }
    let clusters: Vec<_> = clusters.into_values().cloned().collect();
    let sum = |of: fn(&MaintenanceCluster) -> i32| {
        clusters
            .iter()
            .fold(0_i32, |sum, cluster| sum.saturating_add(of(cluster)))
    };
    let nodes = MaintenanceNodes {
        matched: sum(|cluster| cluster.nodes),
        cordoned: sum(|cluster| cluster.cordoned),
        emptied: sum(|cluster| cluster.emptied),
    };
    let all_answer = input.observed.values().all(Result::is_ok);
    let is_ready = all_answer && nodes.matched > 0 && nodes.emptied == nodes.matched;
    let phase = match goal {
        Goal::Scheduled(..) => MaintenancePhase::Scheduled,
        Goal::Active(_) if is_ready => MaintenancePhase::Ready,
        Goal::Active(_) => MaintenancePhase::Draining,
        Goal::Over | Goal::NotAccepted => MaintenancePhase::Ended,
    };
    let blocking = summaries.values();
    let (blocking, blocking_total) = blocking::shown(
        blocking
            .flat_map(|summary| summary.blocking.clone())
            .collect(),
    );
    MaintenanceStatus {
        observed_generation: input.maintenance.metadata.generation,
        phase: Some(phase),
        started: None,
        nodes,
        clusters,
        blocking,
        blocking_total,
        conditions: Vec::new(),
    }
}

fn conditions(
    input: &Input<'_>,
    goal: &Goal,
    rejection: Option<&Rejection>,
    summaries: &BTreeMap<&str, Summary>,
    previous: &MaintenanceStatus,
) -> Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let silent = input.observed.iter();
    let unreachable =
        silent.filter_map(|(name, observed)| Some((&**name, &**observed.as_ref().err()?)));
    let held = summaries.iter().flat_map(|(cluster, summary)| {
        let held = summary.held.iter();
        held.map(move |(node, by)| (format!("{cluster}/{node}"), by.clone()))
    });
    let stuck = summaries.iter().filter(|(_, summary)| summary.is_stuck);
    let stuck = stuck.map(|(cluster, summary)| (*cluster, summary.counts.pods_left));
    let matched = summaries.values().map(|summary| summary.counts.nodes);
    let facts = Facts {
        rejection,
        not_observed: match goal {
            Goal::NotAccepted => Some("the spec is not accepted"),
            Goal::Over => Some("the work is over"),
            Goal::Scheduled(..) | Goal::Active(_) => None,
        },
        matched: matched
            .map(|nodes| usize::try_from(nodes).unwrap_or_default())
            .sum(),
        unreachable: unreachable.collect(),
        rejected: input.rejected,
        held: &held.collect(),
        stuck: stuck.collect(),
    };
    let generation = input.maintenance.metadata.generation;
    let conditions = conditions::of(&facts).into_iter();
    conditions
        .map(|condition| condition.into_condition(&previous.conditions, generation, input.now))
        .collect()
}

/// The clusters that have marks, and are no members any more.
fn forgotten<'a>(
    input: &Input<'_>,
    previous: &'a MaintenanceStatus,
) -> Vec<&'a MaintenanceCluster> {
    let clusters = previous.clusters.iter();
    clusters
        .filter(|cluster| cluster.cordoned > 0 && !input.members.contains(&cluster.name))
        .collect()
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}
