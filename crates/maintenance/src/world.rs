//! Members in memory, for tests: plans are carried out on their nodes as an API server does it.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{Maintenance, finalizers};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    goal::Goal,
    observed::{Node, Observed, Pod, Request},
    plan::{FinalizerChange, Input, Plan, plan},
};

/// When tests begin.
pub(crate) const START: &str = "2027-01-15T08:00:00Z";

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A Maintenance as an API server returns it.
pub(crate) fn maintenance(spec: &Value) -> Maintenance {
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "Maintenance",
        "metadata": { "name": "rack-7", "uid": "own", "generation": 1 }, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// The nodes and pods of one member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) nodes: BTreeMap<String, Value>,
    /// By namespace and name: the node.
    pub(crate) pods: BTreeMap<(String, String), String>,
    pub(crate) requests: Vec<Value>,
    /// Whether it has no CRD of these.
    pub(crate) lacks_requests: bool,
    pub(crate) is_unreachable: bool,
    /// Whether it rejects patches.
    pub(crate) rejects: bool,
}

pub(crate) struct World {
    pub(crate) maintenance: Maintenance,
    pub(crate) members: BTreeMap<String, Member>,
    pub(crate) rejected: BTreeMap<String, String>,
    pub(crate) now: Timestamp,
    /// Whether the object has disappeared.
    pub(crate) is_gone: bool,
    /// The reasons of all events.
    pub(crate) events: Vec<&'static str>,
    version: u64,
}

impl World {
    /// The members `eu` and `us`, each with the nodes `n1` and `n2` of rack `r7` and `n3` of rack `r8`.
    pub(crate) fn new(spec: &Value) -> Self {
        let mut this = Self {
            maintenance: maintenance(spec),
            members: BTreeMap::new(),
            rejected: BTreeMap::new(),
            now: time(START),
            is_gone: false,
            events: Vec::new(),
            version: 1,
        };
        for name in ["eu", "us"] {
            this.members.insert(name.to_owned(), Member::default());
            for (node, rack) in [("n1", "r7"), ("n2", "r7"), ("n3", "r8")] {
                this.put_node(name, node, &json!({ "rack": rack }), false);
            }
        }
        this
    }

    pub(crate) fn member(&mut self, name: &str) -> &mut Member {
        self.members.get_mut(name).unwrap()
    }

    pub(crate) fn put_node(&mut self, member: &str, name: &str, labels: &Value, cordoned: bool) {
        let version = self.version.to_string();
        let node = json!({
            "metadata": {
                "name": name, "uid": format!("{member}-{name}"), "resourceVersion": version,
                "labels": labels, "annotations": {},
            },
            "spec": { "unschedulable": cordoned },
        });
        self.member(member).nodes.insert(name.to_owned(), node);
    }

    /// Changes a node by a merge patch, as a person does.
    pub(crate) fn edit(&mut self, member: &str, node: &str, patch: &Value) {
        self.version += 1;
        let version = self.version;
        let node = self.member(member).nodes.get_mut(node).unwrap();
        merge(node, patch);
        node["metadata"]["resourceVersion"] = json!(version.to_string());
    }

    pub(crate) fn node(&self, member: &str, node: &str) -> Node {
        serde_json::from_value(self.members[member].nodes[node].clone()).unwrap()
    }

    pub(crate) fn put_pod(&mut self, member: &str, name: &str, node: &str) {
        let id = ("shop".to_owned(), name.to_owned());
        self.member(member).pods.insert(id, node.to_owned());
    }

    /// The plan, by what answers.
    pub(crate) fn plan(&self) -> Plan {
        let members: BTreeSet<String> = self.members.keys().cloned().collect();
        let goal = Goal::of(&self.maintenance, &members, self.now);
        let scopes = goal.scopes(&self.maintenance, &members);
        let selector = &self.maintenance.spec.node_selector;
        let observe = |(name, scope): (&String, &crate::goal::Scope)| {
            let member = &self.members[name];
            if member.is_unreachable {
                return (name.clone(), Err("no answer".to_owned()));
            }
            let nodes = member.nodes.keys().map(|node| self.node(name, node));
            let nodes = nodes.filter(|node| {
                let is_labeled = node.metadata.labels.contains_key("fedrs.dev/evict");
                let is_found = is_labeled || node.spec.unschedulable;
                (scope.matching && node.is_selected(selector)) || (scope.marked && is_found)
            });
            let mut observed = Observed {
                nodes: nodes.map(|node| (node.name().to_owned(), node)).collect(),
                ..Observed::default()
            };
            if scope.pods {
                for node in observed.nodes.values() {
                    let pods = member.pods.iter().filter(|(_, on)| *on == node.name());
                    let left = pods.filter_map(|(id, _)| pod(id).left());
                    observed.pods.insert(node.name().to_owned(), left.collect());
                }
                let requests = member.requests.iter().cloned();
                let requests = requests.map(|request| serde_json::from_value(request).unwrap());
                observed.requests = requests.collect::<Vec<Request>>();
                let has_pods = observed.pods.values().any(|pods| !pods.is_empty());
                observed.lacks_requests = has_pods && member.lacks_requests;
            }
            (name.clone(), Ok(observed))
        };
        let observed = scopes.iter().map(observe).collect();
        plan(&Input {
            maintenance: &self.maintenance,
            members: &members,
            observed: &observed,
            rejected: &self.rejected,
            now: self.now,
        })
    }

    /// Carries out one plan. Returns whether anything was written.
    pub(crate) fn step(&mut self) -> bool {
        let plan = self.plan();
        let has_status = self.maintenance.status.as_ref() != Some(&plan.status);
        let writes = plan.finalizer.is_some() || has_status || !plan.patches.is_empty();
        if plan.finalizer == Some(FinalizerChange::Add) {
            self.maintenance.metadata.finalizers = Some(vec![finalizers::MAINTENANCE.to_owned()]);
        }
        if has_status {
            self.events
                .extend(plan.events.iter().map(|event| event.reason));
        }
        self.maintenance.status = Some(plan.status);
        self.rejected.clear();
        for (cluster, patches) in plan.patches {
            if self.members[&cluster].rejects {
                self.rejected.insert(cluster, "forbidden".to_owned());
                continue;
            }
            for patch in patches {
                let seen = self.members[&cluster].nodes[&patch.node].clone();
                for field in ["uid", "resourceVersion"] {
                    assert_eq!(patch.body["metadata"][field], seen["metadata"][field]);
                }
                self.edit(&cluster, &patch.node, &patch.body);
            }
        }
        if plan.finalizer == Some(FinalizerChange::Remove) {
            self.maintenance.metadata.finalizers = None;
            self.is_gone = self.maintenance.metadata.deletion_timestamp.is_some();
        }
        writes
    }

    /// Steps until nothing is written.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20 {
            if !self.step() {
                return;
            }
        }
        panic!("it never settles: {:?}", self.plan());
    }

    pub(crate) fn later(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(crate) fn delete(&mut self) {
        self.maintenance.metadata.deletion_timestamp =
            serde_json::from_value(json!(START)).unwrap();
    }

    /// A condition as `STATUS REASON: MESSAGE`; empty if it is absent.
    pub(crate) fn condition(&self, type_: &str) -> String {
        let status = self.maintenance.status.clone().unwrap_or_default();
        let of_type = status.conditions.iter().find(|of| of.type_ == type_);
        of_type.map_or_else(String::new, |of| {
            format!("{} {}: {}", of.status, of.reason, of.message)
        })
    }

    pub(crate) fn phase(&self) -> String {
        let status = self.maintenance.status.clone().unwrap_or_default();
        status
            .phase
            .map_or_else(String::new, |phase| phase.to_string())
    }

    /// The nodes with a mark of a Maintenance of this uid, as `member/node`.
    pub(crate) fn marked(&self, uid: &str) -> Vec<String> {
        let mut marked = Vec::new();
        for (name, member) in &self.members {
            let nodes = member.nodes.keys();
            let nodes = nodes.filter(|node| self.node(name, node).mark_of(uid).is_some());
            marked.extend(nodes.map(|node| format!("{name}/{node}")));
        }
        marked
    }
}

fn pod((namespace, name): &(String, String)) -> Pod {
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
    });
    let metadata = json!({ "namespace": namespace, "name": name, "ownerReferences": [owner] });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn merge(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut object[key], value);
        }
    }
}
