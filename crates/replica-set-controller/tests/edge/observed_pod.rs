//! What a pod object says (L12, L16 to L18, C1, C6, C8).

use jiff::Timestamp;
use replica_set_controller::{
    Eviction, Gate, Guard, InPlace, Life, NodeState, ObservedPod, Owner, Pod, Readiness, Resize,
    ResizeWait,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::set;

fn at(time: &str) -> Timestamp {
    format!("2027-01-15T{time}Z").parse().unwrap()
}

/// A ready pod on a ready node; `changes` are values by their paths, null removes one.
fn object(changes: &[(&str, Value)]) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "web-a", "namespace": "shop", "uid": "a", "resourceVersion": "7",
            "creationTimestamp": "2027-01-15T08:00:00Z",
            "labels": { "app": "web", "controller-revision-hash": "0000000a" },
            "annotations": {},
            "ownerReferences": [{ "uid": "set", "controller": true }],
        },
        "spec": {
            "nodeName": "node-1",
            "readinessGates": [{ "conditionType": "fedrs.dev/InPlaceUpdate" }],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                { "type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:00:30Z" },
                { "type": "fedrs.dev/InPlaceUpdate", "status": "True" },
            ],
            "containerStatuses": [{ "name": "main", "containerID": "c-1", "restartCount": 2 }],
        },
    });
    for (path, value) in changes {
        let (parent, name) = path.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value.clone(),
            parent => parent[name] = value.clone(),
        }
    }
    object
}

fn with_facts<T>(changes: &[(&str, Value)], of: impl FnOnce(Option<Pod<'_>>) -> T) -> T {
    let pod: ObservedPod = serde_json::from_value(object(changes)).unwrap();
    let nodes = |name: &str| match name {
        "node-1" => Some(NodeState {
            is_ready: true,
            is_cordoned: false,
            not_ready_since: None,
            eviction: None,
            mark: None,
            deadline: None,
            absence: None,
        }),
        "leaving" => Some(NodeState {
            is_ready: true,
            is_cordoned: false,
            not_ready_since: None,
            eviction: Some(Eviction::Voluntary),
            mark: None,
            deadline: None,
            absence: None,
        }),
        "dead" => Some(NodeState {
            is_ready: false,
            is_cordoned: true,
            not_ready_since: None,
            eviction: Some(Eviction::Involuntary),
            mark: None,
            deadline: None,
            absence: None,
        }),
        _ => None,
    };
    of(pod.facts(&set(), nodes))
}

#[test]
fn a_ready_pod() {
    with_facts(&[], |pod| {
        let pod = pod.unwrap();
        assert_eq!((pod.name, pod.uid, pod.revision), ("web-a", "a", Some(10)));
        assert_eq!(pod.owner, Owner::Set);
        assert_eq!(pod.node.unwrap().name, "node-1");
        let since = at("08:00:30");
        assert_eq!(pod.life, Life::Live(Readiness::Ready { since }));
        assert_eq!((pod.eviction, pod.restarts), (None, 2));
        assert_eq!((pod.gate, pod.in_place), (Gate::Open, InPlace::Settled));
    });
}

#[rstest]
#[case::c1_it_can_be_adopted("/metadata/ownerReferences", Value::Null, Some(Owner::Nobody))]
#[case::c1_an_owner_that_is_no_controller("/metadata/ownerReferences", json!([{ "uid": "x" }]), Some(Owner::Nobody))]
#[case::c1_of_another_controller("/metadata/ownerReferences", json!([{ "uid": "x", "controller": true }]), None)]
#[case::c6_it_does_not_match_any_more("/metadata/labels", json!({ "app": "x" }), Some(Owner::SetWithoutMatch))]
#[case::c6_without_labels("/metadata/labels", Value::Null, Some(Owner::SetWithoutMatch))]
fn whose_pod_it_is(#[case] path: &str, #[case] value: Value, #[case] expected: Option<Owner>) {
    with_facts(&[(path, value)], |pod| {
        assert_eq!(pod.map(|pod| pod.owner), expected);
    });
}

/// Also one that was released: its own anti-affinity keeps pods of its slot off its node.
#[rstest]
#[case::of_the_set(&[], true)]
#[case::released(&[("/metadata/ownerReferences", Value::Null), ("/metadata/labels", json!({ "app": "other" }))], true)]
#[case::of_another_set(&[("/metadata/ownerReferences/0/uid", json!("x"))], false)]
#[case::of_another_kind(&[("/metadata/ownerReferences/0/kind", json!("ReplicaSet"))], false)]
#[case::being_removed(&[("/metadata/deletionTimestamp", json!("2027-01-15T08:00:00Z"))], false)]
#[case::terminated(&[("/status/phase", json!("Failed"))], false)]
fn l1_pods_use_slots_until_they_are_removed(
    #[case] changes: &[(&str, Value)],
    #[case] expected: bool,
) {
    let owner = json!([{
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "LocalReplicaSet", "uid": "set", "controller": true,
    }]);
    let changes = [&[("/metadata/ownerReferences", owner)], changes].concat();
    let pod: ObservedPod = serde_json::from_value(object(&changes)).unwrap();
    assert_eq!(pod.labels_with_slots(&set()).is_some(), expected);
}

fn not_ready(since: Timestamp, failure: Option<&str>) -> Life<'_> {
    Life::Live(Readiness::NotReady { since, failure })
}

fn waiting(reason: &str) -> Value {
    json!([{ "name": "main", "state": { "waiting": { "reason": reason } } }])
}

#[test]
fn l16_a_pod_that_is_not_ready_says_whether_it_will_be() {
    let condition = json!([{ "type": "Ready", "status": "False", "lastTransitionTime": "2027-01-15T08:01:00Z" }]);
    let unschedulable =
        json!([{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }]);
    let gated = json!([{ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" }]);
    let (created, since) = (at("08:00:00"), at("08:01:00"));
    for (conditions, statuses, expected) in [
        (Value::Null, Value::Null, not_ready(created, None)),
        (condition.clone(), Value::Null, not_ready(since, None)),
        (
            condition.clone(),
            waiting("ContainerCreating"),
            not_ready(since, None),
        ),
        (
            condition.clone(),
            waiting("CrashLoopBackOff"),
            not_ready(since, Some("CrashLoopBackOff")),
        ),
        (
            condition.clone(),
            waiting("CreateContainerConfigError"),
            not_ready(since, Some("CreateContainerConfigError")),
        ),
        (
            condition,
            waiting("ErrImagePull"),
            not_ready(since, Some("ErrImagePull")),
        ),
        (
            unschedulable,
            Value::Null,
            not_ready(created, Some("Unschedulable")),
        ),
        (gated, Value::Null, not_ready(created, None)),
    ] {
        let changes = [
            ("/status/conditions", conditions),
            ("/status/containerStatuses", statuses),
        ];
        with_facts(&changes, |pod| assert_eq!(pod.unwrap().life, expected));
    }
}

#[test]
fn l17_c8_a_pod_that_ends() {
    for phase in ["Succeeded", "Failed"] {
        with_facts(&[("/status/phase", json!(phase))], |pod| {
            assert_eq!(pod.unwrap().life, Life::Terminated);
        });
    }
    let changes = [
        ("/metadata/deletionTimestamp", json!("2027-01-15T09:00:30Z")),
        ("/metadata/deletionGracePeriodSeconds", json!(30)),
    ];
    with_facts(&changes, |pod| {
        let since = Some(at("09:00:00"));
        assert_eq!(pod.unwrap().life, Life::Terminating { since });
    });
}

#[rstest]
#[case(&[("/metadata/annotations", json!({ "fedrs.dev/evict": "true" }))], Some(Eviction::Voluntary))]
#[case(&[("/metadata/annotations", json!({ "fedrs.dev/evict": "Involuntary" }))], Some(Eviction::Involuntary))]
#[case(&[("/metadata/annotations", json!({ "fedrs.dev/evict": "false" }))], None)]
#[case(&[("/metadata/labels", json!({ "app": "web", "fedrs.dev/evict": "" }))], Some(Eviction::Voluntary))]
#[case(&[("/spec/nodeName", json!("leaving"))], Some(Eviction::Voluntary))]
#[case(&[("/spec/nodeName", json!("dead"))], Some(Eviction::Involuntary))]
#[case::the_node_was_deleted(&[("/spec/nodeName", json!("gone"))], Some(Eviction::Involuntary))]
#[case::without_a_node(&[("/spec/nodeName", json!(""))], None)]
fn l18_who_asks_to_move_it(#[case] changes: &[(&str, Value)], #[case] expected: Option<Eviction>) {
    with_facts(changes, |pod| assert_eq!(pod.unwrap().eviction, expected));
}

#[rstest]
#[case("/spec/readinessGates", Value::Null, Gate::Absent)]
#[case("/status/conditions", json!([]), Gate::Unset)]
#[case("/status/conditions", json!([{ "type": "fedrs.dev/InPlaceUpdate", "status": "False" }]), Gate::Closed)]
fn l12_the_gate(#[case] path: &str, #[case] value: Value, #[case] expected: Gate) {
    with_facts(&[(path, value)], |pod| {
        assert_eq!(pod.unwrap().gate, expected);
    });
}

/// Clients leave a pod until it is patched: once it is, its gate stays closed for another reason.
#[rstest]
#[case::leaving("Draining", Value::Null, Gate::Draining { since: at("08:04:00") })]
#[case::patched("Draining", json!("2027-01-15T08:04:00Z"), Gate::Closed)]
#[case::patched_the_time_before("Draining", json!("2027-01-15T07:00:00Z"), Gate::Draining { since: at("08:04:00") })]
#[case::updating("Updating", Value::Null, Gate::Closed)]
fn l17_the_gate_says_since_when_clients_leave_it(
    #[case] reason: &str,
    #[case] drained: Value,
    #[case] expected: Gate,
) {
    let mut record = json!({ "at": "2027-01-15T08:05:00Z", "containers": {} });
    record["drained"] = drained;
    let annotations = json!({ "fedrs.dev/in-place-update": record.to_string() });
    let condition = json!({
        "type": "fedrs.dev/InPlaceUpdate", "status": "False", "reason": reason,
        "lastTransitionTime": "2027-01-15T08:04:00Z",
    });
    let changes = [
        ("/metadata/annotations", annotations),
        ("/status/conditions", json!([condition])),
    ];
    with_facts(&changes, |pod| assert_eq!(pod.unwrap().gate, expected));
}

/// The kubelet has restarted a container if its id is another one, and the status is about the patched pod.
/// Neither the phase nor a removal by force says that containers have stopped; nor does a status from before the removal.
#[rstest]
#[case::no_finalizer(json!([]), Some(0), json!({ "main": "terminated" }), json!({}), Guard::Absent)]
#[case::runs(json!(["fedrs.dev/shutdown"]), None, json!({ "main": "running" }), json!({}), Guard::Holding)]
#[case::has_crashed_before(json!(["fedrs.dev/shutdown"]), Some(30), json!({ "main": "terminated" }), json!({}), Guard::Holding)]
#[case::deleted_by_force(json!(["fedrs.dev/shutdown"]), Some(0), json!({ "main": "running" }), json!({}), Guard::Unproved)]
#[case::never_reported(json!(["fedrs.dev/shutdown"]), Some(0), json!({}), json!({}), Guard::Unproved)]
#[case::waits(json!(["fedrs.dev/shutdown"]), Some(0), json!({ "main": "waiting" }), json!({}), Guard::Unproved)]
#[case::sidecar_runs(json!(["fedrs.dev/shutdown"]), Some(0), json!({ "main": "terminated" }), json!({ "proxy": "running" }), Guard::Unproved)]
#[case::stopped(json!(["x", "fedrs.dev/shutdown"]), Some(0), json!({ "main": "terminated" }), json!({ "proxy": "terminated" }), Guard::Stopped)]
fn m11_the_status_of_each_container_proves_that_it_has_stopped(
    #[case] finalizers: Value,
    #[case] grace: Option<i64>,
    #[case] states: Value,
    #[case] init_states: Value,
    #[case] expected: Guard,
) {
    let statuses = |states: &Value| {
        let states = states.as_object().unwrap().iter();
        let statuses = states.map(|(name, state)| {
            let state = state.as_str().unwrap();
            json!({ "name": name, "state": { (state): {} } })
        });
        Value::Array(statuses.collect())
    };
    let changes = [
        ("/metadata/finalizers", finalizers),
        (
            "/metadata/deletionTimestamp",
            grace.map_or(Value::Null, |_| json!("2027-01-15T09:00:00Z")),
        ),
        ("/metadata/deletionGracePeriodSeconds", json!(grace)),
        ("/status/phase", json!("Failed")),
        ("/spec/containers", json!([{ "name": "main" }])),
        ("/spec/initContainers", json!([{ "name": "proxy" }])),
        ("/status/containerStatuses", statuses(&states)),
        ("/status/initContainerStatuses", statuses(&init_states)),
    ];
    with_facts(&changes, |pod| assert_eq!(pod.unwrap().guard, expected));
    // Nothing runs of a pod that has no node, and none binds it any more.
    let without_node = [changes.to_vec(), vec![("/spec/nodeName", Value::Null)]].concat();
    with_facts(&without_node, |pod| {
        let is_removed = grace.is_some() && expected != Guard::Absent;
        let expected = if is_removed { Guard::Stopped } else { expected };
        assert_eq!(pod.unwrap().guard, expected);
    });
}

#[test]
fn l12_the_restart_is_waited_for() {
    let record = |id: &str| {
        let record = json!({ "at": "2027-01-15T08:05:00Z", "containers": { "main": id } });
        json!({ "fedrs.dev/in-place-update": record.to_string() })
    };
    let restarting = InPlace::Restarting {
        since: at("08:05:00"),
    };
    for (annotations, generation, observed, expected) in [
        (record("c-0"), Value::Null, Value::Null, InPlace::Settled),
        (record("c-1"), Value::Null, Value::Null, restarting),
        (record("c-0"), json!(2), json!(1), restarting),
        (record("c-0"), json!(2), json!(2), InPlace::Settled),
        (
            json!({ "fedrs.dev/in-place-update": "nonsense" }),
            Value::Null,
            Value::Null,
            InPlace::Settled,
        ),
    ] {
        let changes = [
            ("/metadata/annotations", annotations),
            ("/metadata/generation", generation),
            ("/status/observedGeneration", observed),
        ];
        with_facts(&changes, |pod| assert_eq!(pod.unwrap().in_place, expected));
    }
}

/// What the spec, the status and the conditions say of a pod that was patched to get two CPUs.
#[test]
fn l12_the_resize_is_waited_for() {
    let resizes = json!({ "main": { "requests": { "cpu": "2" } } });
    let record = json!({ "at": "2027-01-15T08:05:00Z", "containers": {}, "resizes": resizes });
    let annotations = json!({ "fedrs.dev/in-place-update": record.to_string() });
    let since = at("08:05:00");
    let (one, two) = (json!("1"), json!("2"));
    let none = json!([]);
    let pending = json!([{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }]);
    let ended = json!([{ "type": "PodResizePending", "status": "False", "reason": "Deferred" }]);
    let wait = ResizeWait::Kubelet;
    for (wanted, has, conditions, expected) in [
        (&one, &one, &none, Resize::Due { since }),
        (&two, &one, &none, Resize::Pending { since, wait }),
        (&two, &two, &none, Resize::Settled),
        (&two, &one, &pending, Resize::Infeasible),
        (&two, &two, &ended, Resize::Settled),
    ] {
        let resources = |cpu: &Value| json!({ "requests": { "cpu": cpu } });
        let container = json!({ "name": "main", "resources": resources(wanted) });
        let status = json!({ "name": "main", "resources": resources(has) });
        let changes = [
            ("/metadata/annotations", annotations.clone()),
            ("/spec/containers", json!([container])),
            ("/status/containerStatuses", json!([status])),
            ("/status/conditions", conditions.clone()),
        ];
        with_facts(&changes, |pod| {
            let pod = pod.unwrap();
            assert_eq!((pod.resize, pod.is_resizable), (expected, true));
        });
    }
    with_facts(&[], |pod| assert!(!pod.unwrap().is_resizable));
}

#[test]
fn a_pod_without_a_spec_and_a_status_can_be_read() {
    let mut bare = object(&[]);
    let fields = bare.as_object_mut().unwrap();
    fields.remove("spec");
    fields.insert("status".to_owned(), Value::Null);
    let pod: ObservedPod = serde_json::from_value(bare).unwrap();
    let facts = pod.facts(&set(), |_| None).unwrap();
    assert_eq!(facts.life, not_ready(at("08:00:00"), None));
    assert_eq!((facts.node, facts.gate), (None, Gate::Absent));
}
