//! What Maintenances ask for, and whether they have begun, over time.

use std::collections::BTreeMap;

use fedrs_api::{MaintenanceMark, annotations};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sim_cluster::{Change, Object};
use tokio::time::Instant;

use crate::{history::History, sim_federation::EPOCH};

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
pub(super) enum State {
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
        // The controller records that it has begun, whatever its clock says later.
        seen.has_begun |= object["status"]["started"].is_string();
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
    pub(super) fn was(
        &self,
        uid: &str,
        since: Instant,
        is_so: impl Fn(&State, Begun) -> bool,
    ) -> bool {
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
pub(super) struct Begun {
    pub(super) perhaps: bool,
    pub(super) surely: bool,
}

/// The mark that a node has.
pub(crate) fn mark_of(node: &Value) -> Option<MaintenanceMark> {
    let annotation = &node["metadata"]["annotations"][annotations::MAINTENANCE];
    MaintenanceMark::parse(annotation.as_str()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::Duration;

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
}
