//! What the controller changes in nodes: the marks of Maintenances, and nothing else (M9, M15).
//!
//! A write is conditional on the node being as it was seen, so what was decided of the node is checked against what it was. Only
//! the Maintenance may be older.

use std::collections::BTreeMap;

use fedrs_api::{MaintenanceMark, annotations};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sim_cluster::{Change, Object};
use tokio::time::{Duration, Instant};

use super::observed::Observed;
use crate::{history::History, sim_federation::EPOCH};

/// The value of the label that a mark has.
const EVICTS: &str = "Maintenance";
/// The most calls, one after the other, between a look at a Maintenance, or an AvailabilitySet, and its last write: four lists, the
/// finalizer, the status, and two requests.
const CALLS_OF_A_LOOK: u32 = 8;

/// The clocks start as long before the run at most: clusters are installed and joined meanwhile.
const INSTALLATION: SignedDuration = SignedDuration::from_secs(1);

/// All Maintenances that have been on the host, over time, by uid.
pub(crate) struct Maintenances {
    seen: BTreeMap<String, Seen>,
    /// When the run began.
    start: Instant,
    /// By how many seconds the clock of the controller's machine was moved.
    stepped: History<i64>,
}

struct Seen {
    states: History<State>,
    /// Whether it has marked a node: then it does not begin anew.
    has_begun: bool,
}

/// What a Maintenance asks for.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The object does not exist.
    Absent,
    /// It has ended, or is being deleted.
    Over,
    /// Nodes are marked from its start on.
    Spec(Value),
}

impl State {
    fn of(object: &Value) -> Self {
        let is_deleted = object["metadata"].get("deletionTimestamp").is_some();
        if is_deleted || object["spec"]["ended"] == true {
            Self::Over
        } else {
            Self::Spec(object["spec"].clone())
        }
    }
}

impl Maintenances {
    pub(super) fn new() -> Self {
        Self {
            seen: BTreeMap::new(),
            start: Instant::now(),
            stepped: History::starting(0),
        }
    }

    /// Records a change of a Maintenance.
    pub(super) fn changed(&mut self, change: &Change) {
        if let Some(old) = &change.old {
            self.put(old, State::Absent);
        }
        if let Some(new) = &change.new {
            self.put(new, State::of(new));
        }
    }

    /// Records that the host has these Maintenances, and no others.
    pub(super) fn restored(&mut self, objects: &[Object]) {
        for seen in self.seen.values_mut() {
            seen.states.put(State::Absent);
        }
        for object in objects {
            self.put(object, State::of(object));
        }
    }

    fn put(&mut self, object: &Value, state: State) {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let seen = self.seen.entry(uid.to_owned()).or_insert_with(|| Seen {
            states: History::starting(State::Absent),
            has_begun: false,
        });
        seen.states.put(state);
    }

    /// Records that a node has got this mark, if it has.
    pub(super) fn marked(&mut self, node: &Object) {
        let mark = mark_of(node);
        if let Some(seen) = mark.and_then(|mark| self.seen.get_mut(&mark.uid)) {
            seen.has_begun = true;
        }
    }

    /// Records that the clock of the controller's machine moves.
    pub(super) fn clock_steps(&mut self, seconds: i64) {
        self.stepped.put(self.stepped.now() + seconds);
    }

    /// Whether what `is_so` says of a spec and of whether it has begun was so at a time since then.
    fn was(&self, uid: &str, since: Instant, is_so: impl Fn(&State, Begun) -> bool) -> bool {
        let Some(seen) = self.seen.get(uid) else {
            return false;
        };
        let mut states = seen.states.since(since);
        states.any(|state| is_so(state, self.begun(state, seen, since)))
    }

    /// Whether a Maintenance has begun by any, and by all, of the times that the controller may have read since then.
    fn begun(&self, state: &State, seen: &Seen, since: Instant) -> Begun {
        let start = match state {
            State::Spec(spec) => spec["startTime"].as_str(),
            State::Absent | State::Over => None,
        };
        let Some(start) = start.and_then(|start| start.parse::<Timestamp>().ok()) else {
            return Begun {
                perhaps: true,
                surely: true,
            };
        };
        let read = |at: Instant, stepped: i64| {
            let passed = SignedDuration::try_from(at.duration_since(self.start));
            let start = Timestamp::from_second(EPOCH + stepped).unwrap_or_default();
            start + passed.unwrap_or_default()
        };
        let steps: Vec<_> = self.stepped.since(since).copied().collect();
        let mut latest = steps.iter().map(|step| read(Instant::now(), *step));
        let mut earliest = steps.iter().map(|step| read(since, *step));
        Begun {
            perhaps: seen.has_begun || latest.any(|now| now + INSTALLATION >= start),
            surely: earliest.all(|now| now >= start),
        }
    }
}

#[derive(Clone, Copy)]
struct Begun {
    perhaps: bool,
    surely: bool,
}

/// The mark that a node has.
pub(crate) fn mark_of(node: &Value) -> Option<MaintenanceMark> {
    let annotation = &node["metadata"]["annotations"][annotations::MAINTENANCE];
    MaintenanceMark::parse(annotation.as_str()?)
}

/// Whether nodes with these labels are among those of a Maintenance. Plans have no expressions.
pub(crate) fn matches(spec: &Value, member: &str, labels: &Value) -> bool {
    let clusters = spec["clusters"].as_array();
    let is_named = clusters.is_none_or(|names| names.iter().any(|name| name == member));
    let wanted = spec["nodeSelector"]["matchLabels"].as_object();
    let mut wanted = wanted.into_iter().flatten();
    is_named && wanted.all(|(key, value)| labels[key] == *value)
}

/// Whether a node is cordoned, and asks its pods to leave.
pub(crate) fn is_closed(node: &Value) -> bool {
    let label = &node["metadata"]["labels"][annotations::EVICT];
    node["spec"]["unschedulable"] == true && label.is_string() && label != "false"
}

/// Checks a change that the controller made to a node.
pub(super) fn of_node(observed: &Observed, member: &str, change: &Change) -> Option<String> {
    let what = format!("Node {} in {member}", change.name);
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return Some(format!("{what}: created or deleted"));
    };
    if others(old) != others(new) {
        return Some(format!("{what}: changed in more than its mark"));
    }
    let wrong = match (mark_of(old), mark_of(new)) {
        (None, None) => Some("changed without a mark".to_owned()),
        (before, Some(mark)) => wrong_mark(observed, member, (old, before.as_ref()), (new, &mark)),
        (Some(before), None) => wrong_removal(observed, member, (old, &before), new),
    };
    wrong.map(|wrong| format!("{what}: {wrong}"))
}

fn wrong_mark(
    observed: &Observed,
    member: &str,
    (old, before): (&Value, Option<&MaintenanceMark>),
    (new, mark): (&Value, &MaintenanceMark),
) -> Option<String> {
    let name = &mark.name;
    if let Some(other) = before.filter(|before| before.uid != mark.uid) {
        return Some(format!("{name} takes the mark of {}", other.name));
    }
    if !is_closed(new) {
        return Some(format!("marked by {name}, and not cordoned or emptied"));
    }
    let label = label(old).filter(|label| *label != "false");
    if label.is_some_and(|label| self::label(new) != Some(label)) {
        return Some(format!("{name} replaces a label that others have set"));
    }
    let was_cordoned = before.map_or(is_cordoned(old), |before| before.was_cordoned);
    if mark.was_cordoned != was_cordoned {
        return Some(format!("{name} forgets that cordoned was {was_cordoned}"));
    }
    let labels = &old["metadata"]["labels"];
    let may = observed.was_maintenance(&mark.uid, |state, begun| match state {
        State::Spec(spec) => begun.perhaps && matches(spec, member, labels),
        State::Absent | State::Over => false,
    });
    (!may).then(|| format!("marked by {name}, whose nodes have not had its labels {labels}"))
}

fn wrong_removal(
    observed: &Observed,
    member: &str,
    (old, before): (&Value, &MaintenanceMark),
    new: &Value,
) -> Option<String> {
    let name = &before.name;
    let is_cordoned_now = is_cordoned(new);
    if is_cordoned_now != (is_cordoned(old) && before.was_cordoned) {
        let was = before.was_cordoned;
        return Some(format!(
            "{name} leaves it cordoned {is_cordoned_now}, and cordoned was {was}"
        ));
    }
    if label(new) != label(old).filter(|label| *label != EVICTS) {
        return Some(format!("{name} leaves or takes a label that it should not"));
    }
    let labels = &old["metadata"]["labels"];
    let may = observed.was_maintenance(&before.uid, |state, begun| match state {
        State::Spec(spec) => !begun.surely || !matches(spec, member, labels),
        State::Absent => false,
        State::Over => true,
    });
    (!may).then(|| format!("loses the mark of {name}, which goes on, with labels {labels}"))
}

impl Observed {
    /// Whether what `is_so` says was so of a Maintenance when it was decided what to do with its nodes.
    fn was_maintenance(&self, uid: &str, is_so: impl Fn(&State, Begun) -> bool) -> bool {
        let since = self.host_belief(self.longest_look());
        self.maintenances.was(uid, since, is_so)
    }

    /// The longest time between a look at a Maintenance, or an AvailabilitySet, and its last write.
    pub(super) fn longest_look(&self) -> Duration {
        self.config().call_timeout * CALLS_OF_A_LOOK
    }
}

fn is_cordoned(node: &Value) -> bool {
    node["spec"]["unschedulable"] == true
}

fn label(node: &Value) -> Option<&str> {
    node["metadata"]["labels"][annotations::EVICT].as_str()
}

/// A node without what a mark consists of.
fn others(node: &Object) -> Value {
    let mut node = Value::clone(node);
    let fields = [
        ("/metadata", "resourceVersion"),
        ("/metadata", "managedFields"),
        ("/metadata/labels", annotations::EVICT),
        ("/metadata/annotations", annotations::MAINTENANCE),
        ("/spec", "unschedulable"),
    ];
    for (parent, field) in fields {
        let parent = node.pointer_mut(parent).and_then(Value::as_object_mut);
        parent.map(|parent| parent.remove(field));
    }
    if let Some(metadata) = node["metadata"].as_object_mut() {
        metadata.retain(|_, value| *value != json!({}));
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn maintenance(spec: &Value) -> Value {
        json!({ "metadata": { "name": "power", "uid": "u" }, "spec": spec })
    }

    fn asks(of: &Maintenances, since: Instant) -> bool {
        of.was("u", since, |state, begun| {
            matches!(state, State::Spec(_)) && begun.perhaps
        })
    }

    #[tokio::test(start_paused = true)]
    async fn m9_a_maintenance_asks_from_its_start_on_by_the_clock_of_the_controller() {
        let mut all = Maintenances::new();
        let start = Timestamp::from_second(EPOCH + 120).unwrap() + INSTALLATION;
        let object = maintenance(&json!({ "startTime": start.to_string() }));
        all.put(&object, State::of(&object));
        let now = Instant::now();
        assert!(!asks(&all, now));
        all.clock_steps(60);
        assert!(!asks(&all, now));
        tokio::time::advance(MINUTE).await;
        assert!(asks(&all, now));
        all.clock_steps(-60);
        assert!(asks(&all, now), "it may have read the clock before");
        tokio::time::advance(MINUTE / 2).await;
        assert!(!asks(&all, Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn m9_what_is_over_asks_for_as_long_as_it_may_be_believed() {
        let mut all = Maintenances::new();
        let object = maintenance(&json!({ "nodeSelector": {} }));
        all.put(&object, State::of(&object));
        tokio::time::advance(MINUTE).await;
        let ended = maintenance(&json!({ "nodeSelector": {}, "ended": true }));
        all.put(&ended, State::of(&ended));
        let now = Instant::now();
        assert!(asks(&all, now - MINUTE));
        assert!(!asks(&all, now));
    }

    #[test]
    fn m9_nodes_match_by_cluster_and_labels() {
        let spec =
            json!({ "clusters": ["m1"], "nodeSelector": { "matchLabels": { "rack": "r1" } } });
        let labels = json!({ "rack": "r1", "zone": "a" });
        for (spec, member, labels, expected) in [
            (&spec, "m1", &labels, true),
            (&spec, "m2", &labels, false),
            (&spec, "m1", &json!({ "rack": "r2" }), false),
            (&json!({ "nodeSelector": {} }), "m2", &Value::Null, true),
        ] {
            assert_eq!(matches(spec, member, labels), expected, "{member} {labels}");
        }
    }
}
