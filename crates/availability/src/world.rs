//! Members in memory, for tests: plans are carried out on their objects as API servers do it.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{AvailabilitySet, AvailabilitySetStatus, finalizers, selector};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    observed::{Node, Observed, Pod, Seen},
    own::Request,
    plan::{FinalizerChange, Input, Plan, plan},
};

/// The objects of one kind, by name.
type Objects = BTreeMap<String, Value>;

/// One member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) nodes: Objects,
    pub(crate) pods: Objects,
    pub(crate) budgets: Objects,
    pub(crate) sets: Objects,
    pub(crate) is_away: bool,
}

pub(crate) struct World {
    pub(crate) set: AvailabilitySet,
    pub(crate) members: BTreeMap<String, Member>,
    /// Whether the object has disappeared.
    pub(crate) is_gone: bool,
    /// The reasons of all events.
    pub(crate) events: Vec<&'static str>,
    version: u64,
}

impl World {
    /// The members `eu` and `us`, each with the nodes `n1` to `n3`, and one pod of a ReplicaSet on each of them.
    pub(crate) fn new(budget: &Value) -> Self {
        let mut this = Self::empty(budget);
        for member in ["eu", "us"] {
            for number in 1..=3 {
                this.put_pod(
                    member,
                    &format!("web-{number}"),
                    &format!("n{number}"),
                    None,
                );
            }
        }
        this
    }

    /// The same without pods.
    pub(crate) fn empty(budget: &Value) -> Self {
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "AvailabilitySet",
            "metadata": { "name": "web", "namespace": "shop", "uid": "own", "generation": 1 },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "budget": budget },
        });
        let mut this = Self {
            set: serde_json::from_value(object).unwrap(),
            members: BTreeMap::new(),
            is_gone: false,
            events: Vec::new(),
            version: 0,
        };
        for member in ["eu", "us"] {
            this.members.insert(member.to_owned(), Member::default());
            for number in 1..=3 {
                let name = format!("n{number}");
                let labels = json!({
                    "topology.kubernetes.io/rack": format!("r{number}"),
                    "topology.kubernetes.io/zone": format!("{member}-a"),
                });
                let node = json!({
                    "metadata": { "name": name, "labels": labels },
                    "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
                });
                this.member(member).nodes.insert(name, node);
            }
        }
        this
    }

    pub(crate) fn member(&mut self, name: &str) -> &mut Member {
        self.members.get_mut(name).unwrap()
    }

    /// A ready pod, of a LocalReplicaSet if it has one.
    pub(crate) fn put_pod(&mut self, member: &str, name: &str, node: &str, set: Option<&str>) {
        let owners = set.map(|set| {
            json!([{ "apiVersion": "fedrs.dev/v1alpha1", "kind": "LocalReplicaSet", "name": set, "controller": true }])
        });
        let pod = json!({
            "metadata": { "name": name, "labels": { "app": "web" }, "ownerReferences": owners },
            "spec": { "nodeName": node },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        self.member(member).pods.insert(name.to_owned(), pod);
    }

    /// A LocalReplicaSet with a pod on each node, whose controller has seen what it says now.
    pub(crate) fn put_local_set(&mut self, member: &str, name: &str) {
        for number in 1..=3 {
            self.put_pod(
                member,
                &format!("{name}-{number}"),
                &format!("n{number}"),
                Some(name),
            );
        }
        let set = json!({
            "metadata": { "name": name, "uid": name, "resourceVersion": "1" },
            "spec": { "replicas": 3, "template": { "metadata": { "labels": { "app": "web" } } } },
            "status": { "updatedReplicas": 3, "evictable": 1 },
        });
        self.member(member).sets.insert(name.to_owned(), set);
    }

    pub(crate) fn set_ready(&mut self, member: &str, pod: &str, is_ready: bool) {
        let pod = self.member(member).pods.get_mut(pod).unwrap();
        let status = if is_ready { "True" } else { "False" };
        pod["status"]["conditions"][0]["status"] = json!(status);
    }

    fn observe(&self, member: &Member) -> Observed {
        let selector = &self.set.spec.selector;
        let mut pods: Vec<Pod> = all(&member.pods);
        pods.retain(|pod| selector::matches(selector, &pod.metadata.labels));
        let nodes: Vec<Node> = all(&member.nodes);
        let nodes = nodes
            .into_iter()
            .map(|node| (node.metadata.name.clone(), node));
        Observed {
            sets: all(&member.sets),
            budgets: all(&member.budgets),
            pods,
            nodes: Arc::new(nodes.collect()),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        let seen = self.members.iter().map(|(name, member)| {
            let seen = if member.is_away {
                Seen::Away("no answer".to_owned())
            } else {
                Seen::Observed(self.observe(member))
            };
            (name.clone(), seen)
        });
        plan(&Input {
            set: &self.set,
            federation: "f",
            seen: &seen.collect(),
            rejected: &BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
        })
    }

    /// Carries out one plan. Returns whether anything was written.
    pub(crate) fn step(&mut self) -> bool {
        let plan = self.plan();
        let has_status = self.set.status.as_ref() != Some(&plan.status);
        let writes = plan.finalizer.is_some() || has_status || !plan.requests.is_empty();
        if plan.finalizer == Some(FinalizerChange::Add) {
            self.set.metadata.finalizers = Some(vec![finalizers::AVAILABILITY_SET.to_owned()]);
        }
        if has_status {
            self.events
                .extend(plan.events.iter().map(|event| event.reason));
        }
        self.set.status = Some(plan.status);
        for (member, requests) in plan.requests {
            for request in requests {
                self.send(&member, request);
            }
        }
        if plan.finalizer == Some(FinalizerChange::Remove) {
            self.set.metadata.finalizers = None;
            self.is_gone = true;
        }
        writes
    }

    fn send(&mut self, member: &str, request: Request) {
        self.version += 1;
        let version = json!(self.version.to_string());
        let member = self.member(member);
        let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        match request {
            Request::Create { mut body, .. } => {
                body["metadata"]["uid"] = version.clone();
                body["metadata"]["resourceVersion"] = version;
                body["metadata"]["generation"] = json!(1);
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                assert!(member.budgets.insert(name, body).is_none());
            }
            Request::Patch { path, body } => {
                let budget = member.budgets.get_mut(&name(&path)).unwrap();
                for operation in body.as_array().unwrap() {
                    let path = operation["path"].as_str().unwrap();
                    if operation["op"] == "test" {
                        assert_eq!(budget.pointer(path), Some(&operation["value"]));
                    } else {
                        let (parent, field) = path.rsplit_once('/').unwrap();
                        budget.pointer_mut(parent).unwrap()[field.replace("~1", "/")] =
                            operation["value"].clone();
                    }
                }
                budget["metadata"]["resourceVersion"] = version;
                let generation = budget["metadata"]["generation"].as_i64().unwrap();
                budget["metadata"]["generation"] = json!(generation + 1);
            }
            Request::MergePatch { path, body } => {
                let set = member.sets.get_mut(&name(&path)).unwrap();
                let meta = &body["metadata"];
                assert_eq!(meta["resourceVersion"], set["metadata"]["resourceVersion"]);
                for (key, value) in meta["annotations"].as_object().unwrap() {
                    set["metadata"]["annotations"][key] = value.clone();
                    if value.is_null() {
                        set["metadata"]["annotations"] = Value::Null;
                    }
                }
                set["metadata"]["resourceVersion"] = version;
            }
            Request::Delete { path, body } => {
                let gone = member.budgets.remove(&name(&path)).unwrap();
                let preconditions = &body["preconditions"];
                assert_eq!(preconditions["uid"], gone["metadata"]["uid"]);
            }
        }
    }

    /// The controllers of the members have observed what is written.
    pub(crate) fn observe_all(&mut self) {
        for member in self.members.values_mut() {
            let pods: Vec<Pod> = all(&member.pods);
            for budget in member.budgets.values_mut() {
                let status = json!({
                    "observedGeneration": budget["metadata"]["generation"],
                    "expectedPods": pods.len(), "disruptionsAllowed": 1,
                });
                budget["status"] = status;
            }
            for set in member.sets.values_mut() {
                let annotation = &set["metadata"]["annotations"]["availability.fedrs.dev/web"];
                let Some(limit) = annotation.as_str().map(str::to_owned) else {
                    continue;
                };
                let limit: Value = serde_json::from_str(&limit).unwrap();
                set["status"]["evictable"] = limit["maxUnavailable"].clone();
                set["status"]["limits"] =
                    json!([{ "availabilitySet": "web", "revision": limit["revision"] }]);
            }
        }
    }

    /// Steps until nothing is written, while members observe everything at once.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20 {
            let has_written = self.step();
            self.observe_all();
            if self.is_gone || !has_written {
                return;
            }
        }
        panic!("it never settles: {:?}", self.plan());
    }

    pub(crate) fn status(&self) -> AvailabilitySetStatus {
        self.set.status.clone().unwrap_or_default()
    }

    /// A condition as `STATUS REASON: MESSAGE`; empty if it is absent.
    pub(crate) fn condition(&self, type_: &str) -> String {
        let status = self.status();
        let of_type = status.conditions.iter().find(|of| of.type_ == type_);
        of_type.map_or_else(String::new, |of| {
            format!("{} {}: {}", of.status, of.reason, of.message)
        })
    }

    /// What is written in a member: `maxUnavailable` of the PodDisruptionBudget.
    pub(crate) fn lent(&self, member: &str) -> Value {
        let budget = self.members[member].budgets.get("avset-web");
        budget.map_or(Value::Null, |budget| {
            budget["spec"]["maxUnavailable"].clone()
        })
    }

    /// What is written on a LocalReplicaSet.
    pub(crate) fn limit(&self, member: &str, set: &str) -> Value {
        let set = &self.members[member].sets[set];
        let annotation = &set["metadata"]["annotations"]["availability.fedrs.dev/web"];
        let limit = annotation.as_str().map(serde_json::from_str::<Value>);
        limit.map_or(Value::Null, |limit| {
            limit.unwrap()["maxUnavailable"].clone()
        })
    }
}

fn all<T: DeserializeOwned>(objects: &Objects) -> Vec<T> {
    let objects = objects.values().cloned();
    objects
        .map(|object| serde_json::from_value(object).unwrap())
        .collect()
}
