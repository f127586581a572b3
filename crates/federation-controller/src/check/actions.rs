//! What to write in the members to take a step: at most one write for each, conditional on what was seen.

use cluster_informer::WorkloadState;
use jiff::Timestamp;

use fedrs_api::TemplateRecord;

use super::{considered::Considered, report, snapshot::Snapshot};
use crate::event::Event;

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
    pub event: Event,
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
        seen: Precondition,
        /// The replicas it has.
        from: u32,
        /// The replicas it gets.
        to: u32,
    },
    /// Write all of it: its template is not the one wanted (F29).
    Overwrite {
        /// The set as it was seen.
        seen: Precondition,
        /// Its `spec.replicas`.
        replicas: u32,
        /// Whether somebody else changed it, and not the user the FederatedReplicaSet.
        drifted: bool,
    },
    /// Put our marks on the pods that it adopted (F30).
    LabelPods {
        /// The set as it was seen.
        seen: Precondition,
    },
}

/// Which object, in which state, a write is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    /// The object's uid.
    pub uid: String,
    /// The object's generation: every change of its spec raises it.
    pub generation: i64,
    /// The object's resourceVersion, which every change raises, also one of its status: where the status decided the write.
    pub resource_version: Option<String>,
}

impl From<&WorkloadState> for Precondition {
    fn from(set: &WorkloadState) -> Self {
        Self {
            uid: set.uid.clone(),
            generation: set.generation,
            resource_version: None,
        }
    }
}

/// What to write in the members to take the step.
pub(super) fn actions(
    snapshot: &Snapshot<'_>,
    members: &mut [Considered<'_>],
    now: Timestamp,
) -> Vec<Action> {
    let usable = members.iter_mut().filter(|it| it.usable());
    usable.filter_map(|it| action(snapshot, it, now)).collect()
}

/// Finds out which members' sets have to wait for a write, where nothing is to be written.
pub(super) fn hold(snapshot: &Snapshot<'_>, members: &mut [Considered<'_>], now: Timestamp) {
    for it in members.iter_mut().filter(|it| it.usable()) {
        let until = held_until(snapshot, it, now);
        it.held_until = until.filter(|_| change(snapshot, it, now).is_some());
    }
}

/// Until when a member's set is not written, because earlier writes were undone or failed.
fn held_until(snapshot: &Snapshot<'_>, it: &Considered<'_>, now: Timestamp) -> Option<Timestamp> {
    let until = it.writes.not_before(snapshot.settings)?;
    (now < until).then_some(until)
}

/// What to write in one member; nothing yet where earlier writes were undone or failed.
fn action(snapshot: &Snapshot<'_>, it: &mut Considered<'_>, now: Timestamp) -> Option<Action> {
    let change = change(snapshot, it, now);
    // Of a set that lost its mark no generation tells: whoever took it has changed it.
    let found = it.live_set().filter(|_| it.member.is_marked());
    let found = found.map(|set| set.generation);
    let writes = std::mem::take(&mut it.writes);
    it.writes = writes.learn(found, change.is_some(), now, snapshot.settings);
    let change = change?;
    it.held_until = held_until(snapshot, it, now);
    if it.held_until.is_some() {
        return None;
    }
    it.writes.write(now);
    let member = it.member.name.clone();
    let is_update = matches!(change, SetChange::Overwrite { drifted: false, .. });
    let repairs = it.writes.is_disturbed() && !is_update;
    let event = report::action_notice(&member, &change, &it.reasons.join("; "), repairs);
    Some(Action {
        member,
        change,
        repairs,
        event,
    })
}

fn change(snapshot: &Snapshot<'_>, it: &Considered<'_>, now: Timestamp) -> Option<SetChange> {
    let next = u32::try_from(it.next).unwrap_or(u32::MAX);
    let Some(set) = it.live_set() else {
        let backing_off = it
            .memory
            .and_then(|memory| memory.internal.next_attempt_time.as_ref())
            .is_some_and(|time| now < time.0);
        let wait = it.refused_since().is_some() && backing_off;
        return (next > 0 && !wait).then_some(SetChange::Create { replicas: next });
    };
    if set.deleting {
        return None;
    }
    let idle = next < set.replicas && it.perhaps_ready() < it.placed();
    let recorded = it
        .memory
        .and_then(|memory| memory.internal.template.as_ref());
    let written = TemplateRecord::new(snapshot.desired_spec_hash, set.spec_hash);
    if recorded != Some(&written) || !it.member.is_marked() {
        // Without a record it isn't known who wrote it: overwritten all the same, without blaming anybody.
        let drifted = recorded.is_some_and(|recorded| recorded.desired == written.desired);
        return Some(SetChange::Overwrite {
            seen: set.into(),
            // What doesn't run is given up by a write of its own, which fails if it runs by then.
            replicas: if idle { set.replicas } else { next },
            drifted,
        });
    }
    if next == set.replicas {
        return it
            .member
            .view
            .has_unlabeled_pods()
            .then(|| SetChange::LabelPods { seen: set.into() });
    }
    Some(SetChange::Scale {
        // That they don't run is known from the status alone: they may run by now.
        seen: Precondition {
            resource_version: idle.then(|| set.resource_version.clone()),
            ..set.into()
        },
        from: set.replicas,
        to: next,
    })
}
