//! The table of what is decided, by rule.

use fedrs_api::MigratedRecord;
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A request of a person, made at second 0, with these fields in its spec and its status.
fn request(spec: &Value, status: &Value) -> RequestObject {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
        "metadata": { "name": "one", "namespace": "shop", "uid": "r", "creationTimestamp": at(0) },
        "spec": { "podName": "web-1" },
        "status": { "phase": "WaitingForBudget", "replicaSet": "web-5d", "podUid": "p", "node": "n1", "native": {} },
    });
    for (part, fields) in [("spec", spec), ("status", status)] {
        for (name, value) in fields.as_object().unwrap() {
            object[part][name] = value.clone();
        }
    }
    serde_json::from_value(object).unwrap()
}

fn available() -> PodFacts {
    PodFacts {
        node: "n1".to_owned(),
        is_available: true,
        ..PodFacts::default()
    }
}

/// A Deployment whose three pods are available.
fn workload() -> Workload {
    Workload {
        name: "web-5d".to_owned(),
        version: "7".to_owned(),
        deployment: Some("web".to_owned()),
        is_observed: true,
        replicas: 3,
        created: 3,
        available: 3,
        ..Workload::default()
    }
}

const NEXT: Line = Line {
    is_next: true,
    moves: false,
    last: MigratedRecord {
        any: None,
        compaction: None,
    },
};

/// What is done at second 1000 about a request of a person, and `PHASE REASON` afterwards.
fn decided(
    request: &RequestObject,
    of: (Option<&PodFacts>, Option<&Workload>),
    policy: Option<&Chosen>,
    line: Line,
) -> String {
    decided_by(Asker::Request, request, of, policy, line)
}

fn decided_by(
    asker: Asker,
    request: &RequestObject,
    (pod, workload): (Option<&PodFacts>, Option<&Workload>),
    policy: Option<&Chosen>,
    line: Line,
) -> String {
    let case = Case {
        request,
        pod,
        workload,
        policy,
        line,
        asker,
        deadline: Duration::from_secs(604_800),
    };
    let (step, status) = match step(&case, at(1000)) {
        Step::Tell(status) => ("tell", status),
        Step::Begin(status) => ("begin", status),
        Step::Remove(status) => ("remove", status),
    };
    let forced = if status.forced { " forced" } else { "" };
    let phase = status.phase.unwrap();
    let decided = format!("{step}: {phase} {}", status.reason);
    format!("{}{forced}", decided.trim_end())
}

#[test]
fn m1_m5_m10_what_holds_up_a_pod_that_is_available() {
    let (pod, full) = (available(), workload());
    let hourly = Chosen::by(json!({ "maxUnavailable": 1 }));
    let moves = Line {
        moves: true,
        ..NEXT
    };
    let behind = Line {
        is_next: false,
        ..NEXT
    };
    let rolling = Workload {
        is_rolling: true,
        ..workload()
    };
    let unobserved = Workload {
        is_observed: false,
        ..workload()
    };
    let short = Workload {
        available: 2,
        ..workload()
    };
    let any = json!({});
    let node = json!({ "cause": "Node" });
    let begin = "begin: Evicting";
    let queued = "tell: WaitingForBudget Queued";
    let rollout = "tell: WaitingForBudget Rollout";
    let limited = "tell: WaitingForBudget MaxUnavailable";
    for (rule, spec, workload, policy, line, expected) in [
        ("M5", &any, &full, None, NEXT, begin),
        ("M5", &any, &full, Some(&hourly), NEXT, begin),
        // One after the other.
        ("M5", &any, &full, None, moves, queued),
        ("M5", &any, &full, None, behind, queued),
        ("M5", &node, &full, None, moves, queued),
        ("M1", &any, &rolling, None, NEXT, rollout),
        ("M1", &any, &unobserved, None, NEXT, rollout),
        ("M1", &node, &rolling, None, NEXT, begin),
        ("M10", &any, &short, Some(&hourly), NEXT, limited),
        ("M10", &any, &short, None, NEXT, begin),
    ] {
        let request = request(spec, &any);
        let decided = decided(&request, (Some(&pod), Some(workload)), policy, line);
        assert_eq!(decided, expected, "{rule}: {spec} {workload:?} {line:?}");
    }
}

#[test]
fn m14_the_last_migrations_hold_it_up_by_the_policy() {
    let (pod, full) = (available(), workload());
    let hourly = Chosen::by(json!({}));
    let daily = json!({ "minSecondsBetween": { "hardware": 0, "compaction": 86400 } });
    let daily = Chosen::by(daily);
    let any = json!({});
    let compaction = json!({ "cause": "Compaction" });
    let begin = "begin: Evicting";
    let too_soon = "tell: WaitingForBudget TooSoon";
    for (spec, policy, last, expected) in [
        (&any, Some(&hourly), (-2599, None), too_soon),
        (&any, Some(&hourly), (-2600, None), begin),
        (&any, None, (999, None), begin),
        // Of another clock.
        (&any, Some(&hourly), (9000, None), too_soon),
        (&compaction, Some(&daily), (0, Some(-85_399)), too_soon),
        (&compaction, Some(&daily), (0, Some(-85_400)), begin),
        (&any, Some(&daily), (0, Some(-85_399)), begin),
    ] {
        let (any, of_compaction) = last;
        let line = Line {
            last: MigratedRecord {
                any: Some(at(any)),
                compaction: of_compaction.map(at),
            },
            ..NEXT
        };
        let request = request(spec, &json!({}));
        let decided = decided(&request, (Some(&pod), Some(&full)), policy, line);
        assert_eq!(decided, expected, "{spec} {last:?}");
    }
}

#[test]
fn m15_nothing_holds_up_what_is_overdue_or_not_available() {
    let hourly = Chosen::by(json!({ "maxUnavailable": 1, "deadlineSeconds": 2000 }));
    let held = Line {
        is_next: false,
        moves: true,
        last: MigratedRecord {
            any: Some(at(999)),
            compaction: None,
        },
    };
    let rolling = Workload {
        is_rolling: true,
        available: 0,
        ..workload()
    };
    let unready = PodFacts {
        is_available: false,
        ..available()
    };
    let overdue = json!({ "deadline": at(1000) });
    let later = json!({ "deadline": at(1001) });
    for (pod, spec, expected) in [
        (&available(), &overdue, "begin: Evicting forced"),
        (&available(), &later, "tell: WaitingForBudget Queued"),
        (&unready, &later, "begin: Evicting"),
        (&unready, &overdue, "begin: Evicting forced"),
    ] {
        let request = request(spec, &json!({}));
        let of = (Some(pod), Some(&rolling));
        assert_eq!(decided(&request, of, Some(&hourly), held), expected);
    }
    // Its deadline passes while the API server rejects the eviction that has begun.
    let begun = json!({ "phase": "Evicting", "deadline": at(1000) });
    let begun = request(&json!({}), &begun);
    let of = (Some(&available()), Some(&rolling));
    let decided = decided(&begun, of, Some(&hourly), held);
    assert_eq!(decided, "begin: Evicting forced");
}

#[test]
fn m15_the_first_of_all_deadlines_holds() {
    let short = Chosen::by(json!({ "deadlineSeconds": 60 }));
    for (spec, policy, expected) in [
        (json!({}), None, 604_800),
        (json!({}), Some(&short), 60),
        (json!({ "deadline": at(30) }), Some(&short), 30),
        (json!({ "deadline": at(90) }), Some(&short), 60),
    ] {
        let request = request(&spec, &json!({}));
        let case = Case {
            request: &request,
            pod: Some(&available()),
            workload: Some(&workload()),
            policy,
            line: NEXT,
            asker: Asker::Request,
            deadline: Duration::from_secs(604_800),
        };
        let status = introduced(&case, ("web-5d", "p"), at(0));
        assert_eq!(status.deadline, Some(Time(at(expected))), "{spec}");
    }
}

#[test]
fn m15_the_deadline_of_the_node_counts_as_long_as_it_asks() {
    let short = Chosen::by(json!({ "deadlineSeconds": 60 }));
    let recorded = json!({ "deadline": at(20) });
    for (asker, spec, policy, status, expected) in [
        (Asker::Node(Some(at(30))), json!({}), None, json!({}), 30),
        (
            Asker::Node(Some(at(30))),
            json!({}),
            None,
            recorded.clone(),
            30,
        ),
        (
            Asker::Node(Some(at(90))),
            json!({}),
            Some(&short),
            json!({}),
            60,
        ),
        (
            Asker::Node(Some(at(90))),
            json!({ "deadline": at(50) }),
            None,
            json!({}),
            50,
        ),
        (
            Asker::Node(None),
            json!({}),
            None,
            recorded.clone(),
            604_800,
        ),
        // Nobody knows what the node says.
        (Asker::LostNode, json!({}), None, recorded.clone(), 20),
        (Asker::LostNode, json!({}), None, json!({}), 604_800),
        (Asker::Request, json!({}), None, recorded.clone(), 604_800),
    ] {
        let mut request = request(&spec, &status);
        if status.get("deadline").is_none() {
            request.0.status = None;
        }
        let case = Case {
            request: &request,
            pod: Some(&available()),
            workload: Some(&workload()),
            policy,
            line: NEXT,
            asker,
            deadline: Duration::from_secs(604_800),
        };
        let status = introduced(&case, ("web-5d", "p"), at(0));
        assert_eq!(
            status.deadline,
            Some(Time(at(expected))),
            "{asker:?} {spec}"
        );
    }
}

#[test]
fn m1_m15_of_a_mark_what_is_not_supported_waits_until_the_deadline() {
    let (pod, full) = (available(), workload());
    let unready = PodFacts {
        is_available: false,
        ..available()
    };
    let behind = Line {
        is_next: false,
        moves: true,
        ..NEXT
    };
    let (copy, moves) = (
        Chosen::by(json!({ "method": "Copy" })),
        Chosen::by(json!({})),
    );
    let marked = |deadline: i64| Asker::Node(Some(at(deadline)));
    let (any, cancel) = (json!({}), json!({ "cancel": true }));
    let parked = "tell: WaitingForBudget PolicyNotSupported";
    for (asker, spec, pod, policy, line, expected) in [
        (marked(1001), &any, &pod, &copy, NEXT, parked),
        // It is no matter of turns.
        (marked(1001), &any, &pod, &copy, behind, parked),
        // Its containers may run.
        (marked(1001), &any, &unready, &copy, NEXT, parked),
        (Asker::LostNode, &any, &pod, &copy, NEXT, parked),
        (
            marked(1000),
            &any,
            &pod,
            &copy,
            behind,
            "begin: Evicting forced",
        ),
        (marked(1001), &any, &pod, &moves, NEXT, "begin: Evicting"),
        (marked(1001), &cancel, &pod, &copy, NEXT, "tell: Cancelled"),
        (Asker::Nobody, &any, &pod, &copy, NEXT, "tell: Cancelled"),
        (Asker::Nobody, &any, &pod, &moves, NEXT, "tell: Cancelled"),
        (
            Asker::Request,
            &any,
            &pod,
            &copy,
            NEXT,
            "tell: Cancelled PolicyNotSupported",
        ),
    ] {
        let before = json!({ "reason": "PolicyNotSupported", "until": at(1001), "message": "x" });
        let request = request(spec, &before);
        let of = (Some(pod), Some(&full));
        let decided = decided_by(asker, &request, of, Some(policy), line);
        assert_eq!(decided, expected, "{asker:?} {spec} {line:?}");
    }
    // What has begun is completed, also if the mark is gone.
    let begun = request(&any, &json!({ "phase": "Evicting" }));
    let of = (Some(&pod), Some(&full));
    let decided = decided_by(Asker::Nobody, &begun, of, Some(&copy), NEXT);
    assert_eq!(decided, "remove: Evicting");
}

#[test]
fn m15_it_says_until_when_it_waits_and_what_to_do() {
    let case = Case {
        request: &request(&json!({}), &json!({})),
        pod: Some(&available()),
        workload: Some(&workload()),
        policy: Some(&Chosen::by(json!({ "method": "Manual" }))),
        line: NEXT,
        asker: Asker::Node(Some(at(50))),
        deadline: Duration::from_secs(604_800),
    };
    let status = introduced(&case, ("web-5d", "p"), at(0));
    assert_eq!(status.phase, Some(Phase::WaitingForBudget));
    assert_eq!(status.until, Some(Time(at(50))));
    assert_eq!(
        status.message,
        "MigrationPolicy all: method: Manual is not supported for pods of ReplicaSets: the pod stays until its deadline, and is deleted \
         then; change the policy, or remove the pod"
    );
}

#[test]
fn m1_what_is_refused_or_cancelled_before_it_has_begun() {
    let (pod, full) = (available(), workload());
    let copy = Chosen::by(json!({ "method": "Copy" }));
    let removed = PodFacts {
        is_removed: true,
        ..available()
    };
    let foreign = PodFacts {
        is_foreign: true,
        ..available()
    };
    let (any, cancel) = (json!({}), json!({ "cancel": true }));
    let refused = "tell: Cancelled PolicyNotSupported";
    let cancelled = "tell: Cancelled";
    for (pod, spec, policy, expected) in [
        (Some(&pod), &any, Some(&copy), refused),
        (Some(&pod), &cancel, None, cancelled),
        (Some(&removed), &any, None, cancelled),
        (Some(&foreign), &any, None, cancelled),
        (None, &any, None, cancelled),
    ] {
        let request = request(spec, &any);
        let of = (pod, Some(&full));
        assert_eq!(decided(&request, of, policy, NEXT), expected);
    }
    let decided = decided(&request(&any, &any), (Some(&pod), None), None, NEXT);
    assert_eq!(decided, cancelled, "its ReplicaSet is gone");
}

#[test]
fn m5_what_has_begun_is_completed() {
    let pod = available();
    let removed = PodFacts {
        is_removed: true,
        ..available()
    };
    let lost = PodFacts {
        is_lost: true,
        ..removed.clone()
    };
    let full = workload();
    let as_it_was = Workload {
        version: "6".to_owned(),
        ..workload()
    };
    let fewer = Workload {
        created: 2,
        available: 2,
        ..workload()
    };
    let starting = Workload {
        available: 2,
        ..workload()
    };
    for (phase, pod, workload, expected) in [
        // It was stopped between the status and the eviction.
        ("Evicting", Some(&pod), Some(&full), "remove: Evicting"),
        ("Evicting", Some(&removed), Some(&full), "tell: Evicting"),
        // The first look at a ReplicaSet proves nothing: its status may be from before.
        ("Evicting", None, Some(&full), "tell: Starting"),
        ("Evicting", None, Some(&fewer), "tell: Placing"),
        ("Evicting", Some(&lost), Some(&full), "tell: Starting"),
        ("Placing", None, Some(&starting), "tell: Starting"),
        ("Starting", None, Some(&as_it_was), "tell: Starting"),
        ("Starting", None, Some(&full), "tell: Done"),
        ("Starting", Some(&lost), Some(&full), "tell: Done"),
        ("Starting", None, None, "tell: Done"),
    ] {
        let native = json!({ "disruptedAt": at(900), "replicaSetVersion": "6" });
        let status = json!({ "phase": phase, "native": native });
        // It is not cancelled any more.
        let request = request(&json!({ "cancel": true }), &status);
        let decided = decided(&request, (pod, workload), None, NEXT);
        assert_eq!(decided, expected, "{phase} {pod:?} {workload:?}");
    }
    let forced = json!({ "phase": "Starting", "forced": true });
    let forced = request(&json!({}), &forced);
    let decided = decided(&forced, (None, Some(&full)), None, NEXT);
    assert_eq!(decided, "tell: Forced forced");
}

#[test]
fn m14_only_an_eviction_that_was_accepted_of_a_pod_that_was_available_counts() {
    let request = request(&json!({}), &json!({}));
    let (pod, full) = (available(), workload());
    let unready = PodFacts {
        is_available: false,
        ..available()
    };
    for (pod, is_counted) in [(&pod, true), (&unready, false)] {
        let case = Case {
            request: &request,
            pod: Some(pod),
            workload: Some(&full),
            policy: None,
            line: NEXT,
            asker: Asker::Request,
            deadline: Duration::from_secs(604_800),
        };
        let Step::Begin(begun) = step(&case, at(1000)) else {
            panic!("nothing holds it up");
        };
        let counted = |status: &Status| status.native.clone().unwrap().disrupted_at;
        assert_eq!(counted(&begun).is_some(), is_counted);
        let back = rejected(begun, true, "no".to_owned(), at(1001));
        assert_eq!(counted(&back), None);
        assert_eq!(back.phase, Some(Phase::WaitingForBudget));
        assert_eq!((&*back.reason, &*back.message), ("Budget", "no"));
    }
}
