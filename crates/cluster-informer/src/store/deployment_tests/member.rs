//! A member whose watches are played to a store, and the objects in it.

use serde_json::{Value, json};

use super::super::*;
use crate::{deployment::DeploymentObject, replica_set::ReplicaSetObject, workload::WorkloadView};

/// A member, whose objects get a version with each change.
pub(super) struct Member {
    pub(super) store: MemberStore,
    pub(super) version: u64,
}

impl Member {
    /// A member whose watches have listed nothing.
    pub(super) fn new() -> Self {
        let clock: Clock = Arc::new(|| Timestamp::from_second(1_000_000).unwrap());
        let member = Self {
            store: MemberStore::new(clock, Duration::from_secs(30)),
            version: 10,
        };
        for watch in Watch::ALL {
            member.list(watch, || {});
        }
        member
    }

    pub(super) fn list(&self, watch: Watch, objects: impl FnOnce()) -> Vec<KeyedChange> {
        self.store.begin_list(watch);
        objects();
        let version = ResourceVersion::parse(&self.version.to_string());
        self.store.end_list(watch, version)
    }

    /// The watch of its kind shows the object, which gets a new version.
    pub(super) fn show(&mut self, mut object: Value) -> Vec<String> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.repeat(object)
    }

    pub(super) fn repeat(&self, object: Value) -> Vec<String> {
        texts(match object["kind"].as_str() {
            Some("Deployment") => {
                let object: DeploymentObject = serde_json::from_value(object).unwrap();
                self.store.apply_workload(object.into())
            }
            Some("ReplicaSet") => {
                let object: ReplicaSetObject = serde_json::from_value(object).unwrap();
                self.store.apply_workload(object.into())
            }
            _ => self
                .store
                .apply_pod(serde_json::from_value(object).unwrap()),
        })
    }

    /// The watch of the ReplicaSets shows that one was deleted.
    pub(super) fn delete_set(&mut self, name: &str) -> Vec<String> {
        self.version += 1;
        let version = ResourceVersion::parse(&self.version.to_string());
        let key = WorkloadKey::new("default", name);
        texts(self.store.delete_workload(&key, Uid::of(name), version))
    }

    pub(super) fn view(&self, name: &str) -> WorkloadView {
        self.store.workload(&deployment_key(name))
    }

    pub(super) fn active(&self, name: &str) -> u32 {
        self.view(name).pods.active
    }

    pub(super) fn fail(&self, watch: Watch, code: u16) {
        let error = Error {
            verb: reflector::Verb::List,
            path: "/".into(),
            kind: ErrorKind::Status {
                code,
                reason: "Reason".to_owned(),
                message: "message".to_owned(),
                version_too_large: false,
            },
        };
        self.store.record_failure(watch, &error);
    }
}

pub(super) fn texts(changes: Vec<KeyedChange>) -> Vec<String> {
    let texts = changes.into_iter();
    texts
        .map(|(key, change)| format!("{key} {change:?}"))
        .collect()
}

pub(super) fn deployment_key(name: &str) -> WorkloadKey {
    WorkloadKey::of_kind(LocalKind::Deployment, "default", name)
}

pub(super) fn labels() -> Value {
    json!({ "fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web" })
}

/// A Deployment of this name and uid, whose template has our labels, with `replicas` pods of one template.
pub(super) fn deployment(name: &str, uid: &str, replicas: u32) -> Value {
    json!({
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": "default", "uid": uid, "generation": 1, "labels": labels() },
        "spec": { "replicas": replicas, "selector": {}, "template": { "metadata": { "labels": labels() } } },
        "status": { "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas },
    })
}

/// A ReplicaSet of this name and uid with `replicas` pods, which the Deployment `owner`, by name and uid, controls.
pub(super) fn set(name: &str, owner: Option<(&str, &str)>, replicas: u32) -> Value {
    let owner = owner.map(|(name, uid)| {
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid, "controller": true })
    });
    json!({
        "kind": "ReplicaSet",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "generation": 1, "labels": labels(),
            "ownerReferences": owner.into_iter().collect::<Vec<_>>(),
        },
        "spec": { "replicas": replicas, "selector": {}, "template": { "metadata": { "labels": labels() } } },
        "status": { "observedGeneration": 1, "replicas": replicas, "fullyLabeledReplicas": replicas },
    })
}

/// A pod of the ReplicaSet with this uid.
pub(super) fn pod(uid: &str, set: &str) -> Value {
    json!({
        "kind": "Pod",
        "metadata": {
            "name": uid, "namespace": "default", "uid": uid, "labels": labels(),
            "ownerReferences": [{ "uid": set, "controller": true }],
        },
        "spec": { "nodeName": "n" },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

pub(super) fn with_template(mut pod: Value, hash: u32) -> Value {
    pod["metadata"]["annotations"] = json!({ "fedrs.dev/template-hash": format!("{hash:08x}") });
    pod
}

pub(super) fn unscheduled(mut pod: Value) -> Value {
    pod["spec"] = json!({});
    pod["status"] = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "message": "no room" }] });
    pod
}
