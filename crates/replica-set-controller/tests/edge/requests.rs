//! The requests that carry out a plan, and what each is conditional on (L12, L17, C1, C6).

use std::{collections::BTreeMap, sync::Arc};

use replica_set_controller::{
    Action, CompleteTemplate, CreateReason, Gate, ObservedPod, Patch, Pod, RemovalRank,
    RemoveReason, Request, Requests, Start, Verb,
};
use serde_json::{Value, json};

use crate::fixtures::{set, set_with};

const PODS: &str = "/api/v1/namespaces/shop/pods";
const POD: &str = "/api/v1/namespaces/shop/pods/web-a";

/// The request for what `action` does to a pod of version 7.
fn request(action: impl for<'a> FnOnce(&'a Pod<'a>) -> Action<'a>) -> Request {
    let resizes = json!({
        "main": { "requests": { "cpu": "2" } },
        "proxy": { "limits": { "memory": "1Gi" }, "isSidecar": true },
    });
    let record = json!({ "at": "2027-01-15T08:30:00Z", "containers": {}, "resizes": resizes });
    let pod = json!({
        "metadata": {
            "name": "web-a", "namespace": "shop", "uid": "a", "resourceVersion": "7",
            "creationTimestamp": "2027-01-15T08:00:00Z",
            "labels": { "app": "web" },
            "annotations": { "fedrs.dev/in-place-update": record.to_string() },
            "ownerReferences": [{ "uid": "set", "controller": true }],
            "finalizers": ["example.com/other", "fedrs.dev/shutdown"],
        },
        "spec": { "tolerations": [{ "key": "gpu" }] },
        "status": { "containerStatuses": [{ "name": "main", "containerID": "c-1" }] },
    });
    let set = set();
    let template = CompleteTemplate::of(&set);
    let pod: ObservedPod = serde_json::from_value(pod).unwrap();
    let pods = BTreeMap::from([("a".to_owned(), Arc::new(pod))]);
    let requests = Requests {
        set: &set,
        template: &template,
        pods: &pods,
        shard_label: Some("shard"),
        adds_finalizer: true,
        now: "2027-01-15T09:00:00Z".parse().unwrap(),
    };
    let facts = pods["a"].facts(&set, |_| None).unwrap();
    requests.of(&[action(&facts)]).pop().flatten().unwrap()
}

/// The request that opens the gate of a pod whose gate is like this.
fn gate_opened(gate: Gate) -> Request {
    request(|pod| {
        let pod = Box::leak(Box::new(Pod {
            name: "web-a",
            uid: "a",
            gate,
            ..*pod
        }));
        Action::OpenGate { pod }
    })
}

fn preconditions(request: &Request) -> Value {
    let part = match request.verb {
        Verb::Delete => &request.body["preconditions"],
        _ => &request.body["metadata"],
    };
    json!([part["uid"], part["resourceVersion"]])
}

/// What one plan creates shares the slots evenly, as if each had been created after the other.
#[test]
fn l1_the_pods_of_one_plan_share_the_slots() {
    let constraint = json!({ "antiaffinity": [{ "key": "rack", "maxPods": 2 }] });
    let set = set_with(&json!({ "constraints": constraint }), &json!({}));
    let template = CompleteTemplate::of(&set);
    let requests = Requests {
        set: &set,
        template: &template,
        pods: &BTreeMap::new(),
        shard_label: None,
        adds_finalizer: false,
        now: "2027-01-15T09:00:00Z".parse().unwrap(),
    };
    let create = |name: &str| Action::Create {
        name: name.to_owned(),
        prefers: None,
        shard: None,
        start: Start::AtOnce,
        reason: CreateReason::Missing,
    };
    let sent = requests.of(&["a", "b", "c", "d"].map(create));
    let label = &template.slots[0].label;
    let slots = sent.iter().flatten();
    let slots: Vec<_> = slots
        .map(|sent| &sent.body["metadata"]["labels"][label])
        .collect();
    assert_eq!(slots, ["0", "1", "0", "1"]);
}

#[test]
fn m6_a_pod_that_moves_stays_in_its_shard() {
    let request = request(|_| Action::Create {
        name: "web-b".to_owned(),
        prefers: None,
        shard: Some("7".to_owned()),
        start: Start::AtOnce,
        reason: CreateReason::Recreated,
    });
    assert_eq!(request.body["metadata"]["labels"]["shard"], "7");
}

/// Finalizers of others stay.
#[test]
fn m11_pods_get_and_lose_the_finalizer() {
    let created = request(|_| Action::Create {
        name: "web-b".to_owned(),
        prefers: None,
        shard: None,
        start: Start::AtOnce,
        reason: CreateReason::Missing,
    });
    let ours = json!(["fedrs.dev/shutdown"]);
    assert_eq!(created.body["metadata"]["finalizers"], ours);
    let added = request(|pod| Action::AddFinalizer { pod });
    assert_eq!(added.body["metadata"]["finalizers"], ours);
    for request in [
        request(|pod| Action::RemoveFinalizer { pod }),
        request(|pod| Action::Release { pod }),
    ] {
        let removed = &request.body["metadata"]["$deleteFromPrimitiveList/finalizers"];
        assert_eq!(*removed, ours);
        assert_eq!((request.verb, &*request.path), (Verb::Patch, POD));
        assert_eq!(preconditions(&request), json!(["a", "7"]));
    }
}

/// Kubernetes' scheduler leaves it alone until somebody removes the gate.
#[test]
fn m12_a_pod_that_a_person_starts_has_the_scheduling_gate() {
    for (start, gates) in [
        (Start::Gated, json!([{ "name": "fedrs.dev/start" }])),
        (Start::Held, Value::Null),
        (Start::AtOnce, Value::Null),
    ] {
        let request = request(|_| Action::Create {
            name: "web-b".to_owned(),
            prefers: None,
            shard: None,
            start,
            reason: CreateReason::Recreated,
        });
        assert_eq!(request.body["spec"]["schedulingGates"], gates);
    }
}

#[test]
fn l13_a_pod_is_created_by_its_name() {
    let request = request(|_| Action::Create {
        name: "web-b".to_owned(),
        prefers: None,
        shard: None,
        start: Start::AtOnce,
        reason: CreateReason::Missing,
    });
    assert_eq!((request.verb, &*request.path), (Verb::Create, PODS));
    assert_eq!(request.body["metadata"]["name"], "web-b");
}

/// One that is replaced must not have been updated in the meantime, and a surplus must not have left the set.
#[test]
fn l17_a_pod_is_deleted_gracefully_and_by_its_uid() {
    let surplus = RemoveReason::Surplus {
        rank: RemovalRank::MarkedRemove,
    };
    for reason in [
        surplus,
        RemoveReason::Recreated { fields: &[] },
        RemoveReason::Evicted { by: None },
    ] {
        let request = request(|pod| Action::Remove { pod, reason });
        assert_eq!((request.verb, &*request.path), (Verb::Delete, POD));
        assert_eq!(preconditions(&request), json!(["a", "7"]));
        assert_eq!(request.body["gracePeriodSeconds"], Value::Null);
    }
    let forced = request(|pod| Action::ForceRemove {
        pod,
        since: pod.created,
    });
    assert_eq!(forced.body["gracePeriodSeconds"], 0);
    assert_eq!(preconditions(&forced), json!(["a", null]));
}

#[test]
fn c1_c6_pods_are_adopted_and_released() {
    let adopted = request(|pod| Action::Adopt { pod });
    let owner = &adopted.body["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["uid"], &owner["controller"]),
        (&json!("set"), &json!(true))
    );
    let released = request(|pod| Action::Release { pod });
    let owners = &released.body["metadata"]["ownerReferences"];
    assert_eq!(*owners, json!([{ "$patch": "delete", "uid": "set" }]));
    for request in [adopted, released] {
        assert_eq!((request.verb, &*request.path), (Verb::Patch, POD));
        assert_eq!(preconditions(&request), json!(["a", "7"]));
    }
}

#[test]
fn l12_the_gate_is_a_condition_of_the_status() {
    let closed = request(|pod| Action::CloseGate { pod });
    let drained = request(|pod| Action::Drain { pod });
    let opened = gate_opened(Gate::Closed);
    let of_a_new_pod = gate_opened(Gate::Unset);
    let (version, none) = (json!("7"), Value::Null);
    for (request, status, reason, version) in [
        (closed, "False", "Updating", &version),
        (drained, "False", "Draining", &version),
        (opened, "True", "UpToDate", &version),
        // The scheduler and the kubelet write at the same time.
        (of_a_new_pod, "True", "UpToDate", &none),
    ] {
        assert_eq!(request.path, format!("{POD}/status"));
        let condition = &request.body["status"]["conditions"][0];
        assert_eq!(condition["type"], "fedrs.dev/InPlaceUpdate");
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!(status), &json!(reason))
        );
        assert_eq!(condition["lastTransitionTime"], "2027-01-15T09:00:00Z");
        assert_eq!(preconditions(&request), json!(["a", version]));
    }
}

/// So that clients do not have to leave it again while its gate is closed.
#[test]
fn l17_a_patch_records_that_clients_have_left() {
    let since = "2027-01-15T08:59:00Z";
    let patch: &'static Patch = Box::leak(Box::default());
    for (gate, expected) in [
        (Gate::Closed, Value::Null),
        (
            Gate::Draining {
                since: since.parse().unwrap(),
            },
            json!(since),
        ),
    ] {
        let request = request(|pod| {
            let pod = Box::leak(Box::new(Pod {
                name: "web-a",
                uid: "a",
                gate,
                ..*pod
            }));
            Action::Patch { pod, patch }
        });
        let annotations = &request.body["metadata"]["annotations"];
        let record = annotations["fedrs.dev/in-place-update"].as_str().unwrap();
        let record: Value = serde_json::from_str(record).unwrap();
        assert_eq!(record["drained"], expected);
    }
}

/// What was recorded when the pod was patched, and nothing else.
#[test]
fn l12_a_resize_names_the_resources_of_its_record() {
    let request = request(|pod| Action::Resize { pod });
    assert_eq!(request.path, format!("{POD}/resize"));
    assert_eq!(preconditions(&request), json!(["a", "7"]));
    assert_eq!(
        request.body["spec"],
        json!({
            "containers": [{ "name": "main", "resources": { "requests": { "cpu": "2" } } }],
            "initContainers": [{ "name": "proxy", "resources": { "limits": { "memory": "1Gi" } } }],
        })
    );
}

#[test]
fn l12_a_pod_is_patched_together_with_its_hash_and_what_is_waited_for() {
    let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let patch = Patch {
        images: one("main", "main:2"),
        sidecar_images: one("proxy", "proxy:2"),
        resizes: BTreeMap::new(),
        labels: [("tier".to_owned(), None)].into(),
        annotations: [("note".to_owned(), Some("x".to_owned()))].into(),
        tolerations: vec![json!({ "key": "arm" })],
    };
    let patch: &'static Patch = Box::leak(Box::new(patch));
    let request = request(|pod| Action::Patch { pod, patch });
    assert_eq!(preconditions(&request), json!(["a", "7"]));
    let Request { body, .. } = request;
    let spec = &body["spec"];
    assert_eq!(
        spec["containers"],
        json!([{ "name": "main", "image": "main:2" }])
    );
    assert_eq!(
        spec["initContainers"],
        json!([{ "name": "proxy", "image": "proxy:2" }])
    );
    assert_eq!(
        spec["tolerations"],
        json!([{ "key": "gpu" }, { "key": "arm" }])
    );
    let (labels, annotations) = (
        &body["metadata"]["labels"],
        &body["metadata"]["annotations"],
    );
    assert_eq!(labels["tier"], Value::Null, "it is removed");
    let hash = CompleteTemplate::of(&set()).hash;
    assert_eq!(labels["controller-revision-hash"], format!("{hash:08x}"));
    assert_eq!(annotations["note"], "x");
    let record: Value =
        serde_json::from_str(annotations["fedrs.dev/in-place-update"].as_str().unwrap()).unwrap();
    assert_eq!(
        record["containers"],
        json!({ "main": "c-1", "proxy": null })
    );
}
