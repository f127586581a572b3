//! What members show, against mutated bytes: pods, local sets and Deployments, nodes and their Leases.

use std::{fmt::Debug, path::Path};

use jiff::Timestamp;
use mutations::fuzz;
use reflector::ResourceVersion;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cluster_info::NodeObject,
    deployment::DeploymentObject,
    node_leases::LeaseObject,
    nodes::NodeTable,
    pod::{PodObject, PodState},
    pod_table::PodTable,
    workload::WorkloadState,
    workload_table::WorkloadTable,
};

/// Checks each mutated object that can be read, with its JSON.
fn fuzz_objects<T: DeserializeOwned + Debug>(corpus: &str, check: impl Fn(T, &Value)) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(corpus);
    fuzz(&directory, |bytes| {
        let read = serde_json::from_slice::<T>(bytes);
        // What is not read may be anything.
        let Ok(json) = serde_json::from_slice::<Value>(bytes) else {
            return;
        };
        // Repeated members are refused, or the last one counts.
        if json.to_string().len() != bytes.trim_ascii().len() {
            return;
        }
        // The checks compare with this JSON: it has to say what was read.
        let of_value = serde_json::from_value::<T>(json.clone());
        assert_eq!(read.is_ok(), of_value.is_ok(), "{read:?} {of_value:?}");
        if let (Ok(read), Ok(of_value)) = (read, of_value) {
            assert_eq!(format!("{read:?}"), format!("{of_value:?}"));
            // Types are read from lists, too.
            let parts = ["metadata", "spec", "status"].map(|part| json[part].is_array());
            if json.is_object() && !parts.contains(&true) {
                check(read, &json);
            }
        }
    });
}

fn object<T: DeserializeOwned>(corpus: &str, uid: &str) -> T {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(corpus);
    let text = std::fs::read_to_string(directory.join("usual.json")).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["metadata"]["uid"] = uid.into();
    value["metadata"]["name"] = uid.into();
    serde_json::from_value(value).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// The state of a pod by its JSON.
fn expected_state(pod: &Value) -> Option<&'static str> {
    let status = &pod["status"];
    if ["Succeeded", "Failed"]
        .iter()
        .any(|phase| status["phase"] == *phase)
    {
        return None;
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Some("Terminating");
    }
    let has = |kind: &str| {
        let conditions = status["conditions"].as_array();
        conditions.is_some_and(|all| {
            all.iter()
                .any(|condition| condition["type"] == kind && condition["status"] == "True")
        })
    };
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    Some(
        if !(1..=253).contains(&node.len()) && !has("PodScheduled") {
            "Unscheduled"
        } else if has("Ready") {
            if pod["metadata"]["annotations"]["fedrs.dev/draining"].is_string() {
                "Draining"
            } else {
                "Ready"
            }
        } else {
            "NotReady"
        },
    )
}

#[test]
fn s2_any_pod_is_refused_or_counts_as_what_it_is_and_leaves_nothing_behind() {
    fuzz_objects("pods", |pod: PodObject, json| {
        let state = pod
            .state(|since| since.unwrap_or(now()))
            .map(|state| match state {
                PodState::Terminating => "Terminating",
                PodState::Unscheduled(_) => "Unscheduled",
                PodState::NotReady => "NotReady",
                PodState::Ready => "Ready",
                PodState::Draining => "Draining",
            });
        assert_eq!(state, expected_state(json), "{json}");
        let mut table = PodTable::default();
        let other: PodObject = object("pods", "other");
        let owner = other.metadata.owner_references.controller.unwrap();
        table.apply(other, now());
        let counts = |table: &PodTable| {
            let counts = table.counts(owner);
            (table.len(), counts.active, counts.ready, counts.unscheduled)
        };
        let before = counts(&table);
        let (uid, version) = (pod.metadata.uid, pod.metadata.resource_version.clone());
        table.apply(pod, now());
        table.delete(uid, &version);
        if json["metadata"]["uid"] != "other" {
            assert_eq!(counts(&table), before);
        }
    });
}

#[test]
fn s2_any_local_set_is_refused_or_read_as_it_is() {
    fuzz_objects("replicasets", |set: WorkloadState, json| {
        let replicas = json["spec"].get("replicas").map_or(Some(1), Value::as_u64);
        assert_eq!(Some(u64::from(set.replicas)), replicas);
        let status = &json["status"];
        for (field, count) in [
            ("replicas", set.status_replicas),
            ("readyReplicas", set.ready_replicas),
            ("availableReplicas", set.available_replicas),
        ] {
            assert_eq!(u64::from(count), status[field].as_u64().unwrap_or_default());
        }
        let is_deleted = !json["metadata"]["deletionTimestamp"].is_null();
        assert_eq!(set.deletion.is_some(), is_deleted);
        let mut table = WorkloadTable::default();
        let key = set.key.clone();
        table.apply(set.clone());
        assert_eq!(table.get(&key), Some(&set));
        table.observe_write(set.clone());
        table.observe_deletion(&key, set.id());
        assert_eq!(table.len(), 0);
    });
}

#[test]
fn s2_any_deployment_is_refused_or_read_as_it_is() {
    fuzz_objects("deployments", |object: DeploymentObject, json| {
        let state = WorkloadState::from(object);
        let spec = &json["spec"];
        let replicas = spec.get("replicas").map_or(Some(1), Value::as_u64);
        assert_eq!(Some(u64::from(state.replicas)), replicas);
        let deployment = state.deployment.as_deref().unwrap();
        assert_eq!(deployment.paused, spec["paused"] == true);
        let status = &json["status"];
        for (field, count) in [
            ("replicas", state.status_replicas),
            ("updatedReplicas", deployment.updated_replicas),
            ("readyReplicas", state.ready_replicas),
            ("availableReplicas", state.available_replicas),
        ] {
            assert_eq!(u64::from(count), status[field].as_u64().unwrap_or_default());
        }
        let strategy = deployment.strategy;
        assert!(strategy.max_unavailable > 0 || strategy.max_surge > 0 || state.replicas == 0);
        let rolling = &spec["strategy"]["rollingUpdate"];
        if strategy.is_fixed {
            assert_eq!(u64::from(strategy.max_surge), rolling["maxSurge"]);
        }
        let mut table = WorkloadTable::default();
        let key = state.key.clone();
        table.apply(state.clone());
        assert_eq!(table.get(&key), Some(&state));
        table.observe_deletion(&key, state.id());
        assert_eq!(table.len(), 0);
    });
}

/// Sets and pods that name any owners leave nothing behind.
#[test]
fn s2_any_owner_of_a_set_is_forgotten_with_it() {
    fuzz_objects("replicasets", |set: WorkloadState, _| {
        let mut table = WorkloadTable::default();
        table.apply(set.clone());
        if let Some(owner) = &set.owned_by {
            assert!(table.owned_by(owner.uid).eq([&set]));
        }
        table.delete(&set.key, set.id(), ResourceVersion::default());
        assert!(table.owns_nothing());
    });
}

#[test]
fn s2_any_node_is_refused_or_counts_and_leaves_nothing_behind() {
    fuzz_objects("nodes", |node: NodeObject, json| {
        let mut table = NodeTable::default();
        table.apply(&object::<NodeObject>("nodes", "other"), now());
        let before = table.info();
        table.apply(&node, now());
        table.begin_confirmation();
        table.delete(&node.metadata.name);
        table.end_confirmation();
        if json["metadata"]["name"] != "other" {
            assert_eq!(table.info(), before);
        }
    });
}

#[test]
fn s2_any_lease_is_refused_or_read() {
    fuzz_objects("leases", |_: LeaseObject, _| {});
}
