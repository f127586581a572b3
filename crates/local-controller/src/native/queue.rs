//! Which request is looked at next, and whose turn it is. Pure.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use fedrs_api::{MigratedRecord, MigrationCause, MigrationRequestStatus as Status};
use jiff::Timestamp;

use crate::migration_object::RequestObject;

/// Requests that are introduced in one round: each costs up to three reads and a write.
pub(super) const INTRODUCED: usize = 20;
/// Requests of known workloads that are looked at in one round.
pub(super) const LOOKS: usize = 20;
/// The time between two looks at a pod that is being replaced: one round.
const REPLACED: Duration = Duration::from_secs(1);
/// The time between two looks at a pod that waits, or whose look has failed: how often a PodDisruptionBudget is asked again.
const WAITS: Duration = Duration::from_secs(10);
/// The same if it is known until when it waits: policies may change.
const WAITS_UNTIL: Duration = Duration::from_secs(60);

/// The place of a request among those of its workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Whether it is the first of those that have not begun.
    pub(super) is_next: bool,
    /// Whether another pod that was available moves.
    pub(super) moves: bool,
    /// When the last ones began (M14).
    pub(super) last: MigratedRecord,
}

/// The place of `request` among those of its workload, with those that have ended.
pub(super) fn line(request: &RequestObject, of_workload: &[Arc<RequestObject>]) -> Line {
    let others = of_workload.iter().filter(|of| of.uid() != request.uid());
    let mut open = others.filter(|of| of.ended().is_none());
    let is_before = |other: &RequestObject| {
        waits(other) && !other.is_parked() && urgency(other) < urgency(request)
    };
    let is_next = !open.clone().any(|other| is_before(other));
    let disrupted = |of: &RequestObject| {
        let native = of.status()?.native.as_ref()?;
        Some(native.disrupted_at.as_ref()?.0)
    };
    let all = of_workload.iter();
    let compactions = all.clone().filter(|of| of.is_compaction());
    Line {
        is_next,
        moves: open.any(|other| disrupted(other).is_some()),
        last: MigratedRecord {
            any: all.filter_map(|of| disrupted(of)).max(),
            compaction: compactions.filter_map(|of| disrupted(of)).max(),
        },
    }
}

/// Whether it waits for its turn.
fn waits(request: &RequestObject) -> bool {
    let has_begun = request.status().is_some_and(Status::has_begun);
    !has_begun && !request.is_cancelled()
}

/// Those of which one is looked at, as the others wait for it: those of a workload, and apart from these, those of a ReplicaSet whose policy
/// is not supported.
fn place(request: &RequestObject) -> Option<(&str, String)> {
    let workload = request.workload()?;
    let set = request.status().filter(|_| request.is_parked());
    let set = set.map(|status| format!("parked/{}", status.replica_set));
    Some((request.id().0, set.unwrap_or(workload)))
}

/// The order of requests: involuntary ones first, then the one whose deadline is nearest.
fn urgency(request: &RequestObject) -> (bool, Timestamp, Timestamp, &str) {
    let spec = &request.0.spec;
    let known = request.status().and_then(|status| status.deadline.as_ref());
    let deadline = known.or(spec.deadline.as_ref());
    let deadline = deadline.map_or(Timestamp::MAX, |deadline| deadline.0);
    let is_voluntary = spec.cause != MigrationCause::Node;
    (is_voluntary, deadline, request.created(), request.uid())
}

/// When each request is looked at again, by its uid: at once, if that is not known.
#[derive(Debug, Default)]
pub(super) struct Pace(HashMap<String, Timestamp>);

impl Pace {
    /// Forgets all but these.
    pub(super) fn keep(&mut self, open: &[Arc<RequestObject>]) {
        let open: HashSet<&str> = open.iter().map(|request| request.uid()).collect();
        self.0.retain(|uid, _| open.contains(&**uid));
    }

    /// `request` was looked at; this is its status.
    pub(super) fn looked(
        &mut self,
        request: &RequestObject,
        status: Option<&Status>,
        now: Timestamp,
    ) {
        let after = |pause: Duration| now.checked_add(pause).unwrap_or(Timestamp::MAX);
        let is_replaced = |status: &&Status| status.has_begun() && status.reason.is_empty();
        let next = match status {
            Some(status) if is_replaced(&status) => after(REPLACED),
            Some(Status {
                until: Some(until), ..
            }) => after(WAITS_UNTIL).min(until.0),
            _ => after(WAITS),
        };
        let deadline = status.and_then(|status| status.deadline.as_ref());
        let deadline = deadline.map(|deadline| deadline.0).filter(|of| *of > now);
        let next = deadline.map_or(next, |deadline| next.min(deadline));
        self.0.insert(request.uid().to_owned(), next);
    }

    fn is_due(&self, request: &RequestObject, now: Timestamp) -> bool {
        self.of(request).is_none_or(|next| next <= now)
    }

    fn of(&self, request: &RequestObject) -> Option<Timestamp> {
        self.0.get(request.uid()).copied()
    }
}

/// The requests whose workloads are not known and that are looked at now, the most urgent first.
pub(super) fn unknown(
    open: &[Arc<RequestObject>],
    pace: &Pace,
    now: Timestamp,
) -> Vec<Arc<RequestObject>> {
    let unknown = open.iter().filter(|of| of.workload().is_none());
    let mut due: Vec<_> = unknown.filter(|of| pace.is_due(of, now)).collect();
    due.sort_by_key(|request| urgency(request));
    due.into_iter().take(INTRODUCED).map(Arc::clone).collect()
}

/// The requests of known workloads that are looked at now: of each workload the next one, and those that need not wait for their turn, also
/// by what `out_of_turn` says, by uid. Those that were not looked at for the longest time come first.
pub(super) fn looks(
    open: &[Arc<RequestObject>],
    out_of_turn: &HashSet<String>,
    pace: &Pace,
    now: Timestamp,
) -> Vec<Arc<RequestObject>> {
    let mut due = Vec::new();
    let mut next: BTreeMap<(&str, String), &Arc<RequestObject>> = BTreeMap::new();
    for request in open {
        let Some(place) = place(request) else {
            continue;
        };
        let deadline = request.status().and_then(|of| of.deadline.as_ref());
        let is_overdue = deadline.is_some_and(|deadline| deadline.0 <= now);
        if !waits(request) || is_overdue || out_of_turn.contains(request.uid()) {
            due.push(request);
            continue;
        }
        let first = next.entry(place).or_insert(request);
        if urgency(request) < urgency(first) {
            *first = request;
        }
    }
    due.extend(next.into_values());
    due.retain(|request| pace.is_due(request, now));
    due.sort_by_key(|request| (pace.of(request), urgency(request)));
    due.into_iter().take(LOOKS).map(Arc::clone).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn request(uid: &str, spec: &Value, status: &Value) -> Arc<RequestObject> {
        let mut object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
            "metadata": { "name": uid, "namespace": "shop", "uid": uid, "creationTimestamp": at(0) },
            "spec": { "podName": "web-1" },
            "status": status,
        });
        for (name, value) in spec.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        Arc::new(serde_json::from_value(object).unwrap())
    }

    /// A request for a pod of the Deployment `name`.
    fn of(name: &str, uid: &str, spec: &Value, phase: &str) -> Arc<RequestObject> {
        let native = json!({ "deployment": name });
        let deadline = spec.get("deadline").cloned().unwrap_or(json!(at(9_000)));
        let status =
            json!({ "phase": phase, "replicaSet": "set", "native": native, "deadline": deadline });
        request(uid, spec, &status)
    }

    fn uids(requests: &[Arc<RequestObject>]) -> Vec<&str> {
        requests.iter().map(|request| request.uid()).collect()
    }

    const WAITS: &str = "WaitingForBudget";

    #[test]
    fn m15_the_most_urgent_is_the_next() {
        let requests = [
            of("web", "a", &json!({}), WAITS),
            of("web", "b", &json!({ "deadline": at(500) }), WAITS),
            of(
                "web",
                "c",
                &json!({ "cause": "Node", "cancel": true }),
                WAITS,
            ),
            of("web", "d", &json!({ "cause": "Node" }), "Starting"),
            of("web", "e", &json!({ "cause": "Compaction" }), WAITS),
        ];
        let next = requests.iter().map(|of| line(of, &requests).is_next);
        // Those that have begun or end need no turn.
        assert_eq!(next.collect::<Vec<_>>(), [false, true, true, true, false]);
        let none = HashSet::new();
        let looks = looks(&requests, &none, &Pace::default(), at(10));
        assert_eq!(uids(&looks), ["c", "d", "b"]);
    }

    /// A request for a pod of a ReplicaSet of the Deployment `web` whose policy is not supported.
    fn parked(uid: &str, set: &str, spec: &Value) -> Arc<RequestObject> {
        let status = json!({
            "phase": WAITS, "reason": "PolicyNotSupported", "replicaSet": set,
            "native": { "deployment": "web" }, "deadline": at(100), "until": at(100),
        });
        request(uid, spec, &status)
    }

    #[test]
    fn m1_what_waits_for_its_policy_holds_up_no_other_one() {
        let requests = [
            parked("a", "web-1", &json!({})),
            parked("b", "web-1", &json!({})),
            parked("c", "web-2", &json!({})),
            parked("d", "web-1", &json!({ "cancel": true })),
            of("web", "e", &json!({ "deadline": at(200) }), WAITS),
            of("web", "f", &json!({ "deadline": at(300) }), WAITS),
        ];
        assert!(line(&requests[4], &requests).is_next);
        assert!(!line(&requests[5], &requests).is_next);
        let (none, pace) = (HashSet::new(), Pace::default());
        // One for each ReplicaSet finds out whether the policy has changed.
        assert_eq!(
            uids(&looks(&requests, &none, &pace, at(10))),
            ["a", "c", "d", "e"]
        );
        let late = looks(&requests, &none, &pace, at(100));
        assert_eq!(uids(&late), ["a", "b", "c", "d", "e"]);
        let news = HashSet::from(["b".to_owned()]);
        assert_eq!(
            uids(&looks(&requests, &news, &pace, at(10))),
            ["a", "b", "c", "d", "e"]
        );
    }

    #[test]
    fn m14_the_last_ones_count_also_if_they_have_ended() {
        let ended = |uid: &str, cause: &str, at_second: i64| {
            let native = json!({ "deployment": "web", "disruptedAt": at(at_second) });
            let history = json!([{ "phase": "Done", "at": at(at_second + 9) }]);
            let status = json!({ "phase": "Done", "native": native, "history": history });
            request(uid, &json!({ "cause": cause }), &status)
        };
        let requests = [
            ended("a", "Person", 300),
            ended("b", "Compaction", 100),
            ended("c", "Node", 200),
            of("web", "d", &json!({}), WAITS),
        ];
        let line = line(&requests[3], &requests);
        let last = MigratedRecord {
            any: Some(at(300)),
            compaction: Some(at(100)),
        };
        assert_eq!((line.last, line.moves, line.is_next), (last, false, true));
    }

    #[test]
    fn m5_ten_thousand_requests_of_three_hundred_workloads_are_some_looks_a_round() {
        let requests: Vec<_> = (0..10_000)
            .map(|number| {
                let name = format!("web-{}", number % 300);
                of(&name, &format!("{number:05}"), &json!({}), WAITS)
            })
            .collect();
        let mut pace = Pace::default();
        let mut seen = HashSet::new();
        for round in 0..15 {
            let now = at(round / 10);
            let looks = looks(&requests, &HashSet::new(), &pace, now);
            assert_eq!(looks.len(), LOOKS, "{round}");
            for request in looks {
                pace.looked(&request, request.status(), now);
                seen.insert(request.workload());
            }
        }
        assert_eq!(seen.len(), 300, "each has its turn");
        let later = looks(&requests, &HashSet::new(), &pace, at(9));
        assert_eq!(later.len(), 0);
        let unknown = unknown(&requests, &pace, at(9));
        assert!(unknown.is_empty(), "all are known");
    }

    #[test]
    fn m15_a_request_is_looked_at_when_its_deadline_passes() {
        let soon = of("web", "a", &json!({ "deadline": at(5) }), WAITS);
        let requests = [soon, of("web", "b", &json!({ "deadline": at(6) }), WAITS)];
        let mut pace = Pace::default();
        for request in &requests {
            pace.looked(request, request.status(), at(0));
        }
        let none = HashSet::new();
        for (now, expected) in [(4, vec![]), (5, vec!["a"]), (6, vec!["a", "b"])] {
            assert_eq!(uids(&looks(&requests, &none, &pace, at(now))), expected);
        }
    }
}
