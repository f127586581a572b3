//! Members in memory, for tests: plans are carried out on their objects as API servers do it.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{AvailabilitySet, AvailabilitySetStatus, DisruptionLimit, finalizers, selector};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    carriers,
    federated_set::FederatedSet,
    neighbours::{AllNeighbours, Neighbours},
    observed::{Budget, Node, Observed, Pod, Seen},
    own::{Own, Request, with_disabled},
    plan::{FinalizerChange, Input, Plan, plan},
};

/// The objects of one kind, by name.
type Objects = BTreeMap<String, Value>;

/// Where requests to the host are sent.
pub(crate) const HOST: &str = "host";

/// One member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) nodes: Objects,
    pub(crate) pods: Objects,
    pub(crate) budgets: Objects,
    pub(crate) sets: Objects,
    /// Pods that controllers have not created yet.
    pub(crate) missing: Objects,
    pub(crate) is_away: bool,
}

pub(crate) struct World {
    /// The set that is looked at.
    pub(crate) set: AvailabilitySet,
    /// The other ones of the namespace, by name.
    pub(crate) others: BTreeMap<String, AvailabilitySet>,
    pub(crate) members: BTreeMap<String, Member>,
    /// The FederatedDeployments of the host.
    pub(crate) deployments: Objects,
    /// The members that rejected the last request, and why.
    pub(crate) rejected: BTreeMap<String, String>,
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
        let mut this = Self {
            set: set("web", &json!({ "app": "web" }), budget),
            others: BTreeMap::new(),
            members: BTreeMap::new(),
            deployments: Objects::new(),
            rejected: BTreeMap::new(),
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
        self.put_pod_with(member, name, node, (&json!({ "app": "web" }), set));
    }

    /// The same with other labels.
    pub(crate) fn put_pod_with(
        &mut self,
        member: &str,
        name: &str,
        node: &str,
        (labels, set): (&Value, Option<&str>),
    ) {
        let owners = set.map(|set| {
            json!([{ "apiVersion": "fedrs.dev/v1alpha1", "kind": "LocalReplicaSet", "name": set, "controller": true }])
        });
        let pod = json!({
            "metadata": { "name": name, "labels": labels, "ownerReferences": owners },
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

    /// Adds a set to the namespace.
    pub(crate) fn add(&mut self, set: AvailabilitySet) {
        self.others.insert(set.metadata.name.clone().unwrap(), set);
    }

    /// From now on, the set of this name is looked at.
    pub(crate) fn turn_to(&mut self, name: &str) {
        if let Some(set) = self.others.remove(name) {
            let before = std::mem::replace(&mut self.set, set);
            self.add(before);
        }
    }

    fn neighbours(&self) -> Arc<Neighbours> {
        let all = AllNeighbours::default();
        self.others
            .values()
            .chain([&self.set])
            .for_each(|set| all.put(set));
        all.of("shop")
    }

    fn observe(&self, member: &Member, neighbours: &Neighbours) -> Observed {
        let selector = &self.set.spec.selector;
        let select = |selector: &_| {
            let mut pods: Vec<Pod> = all(&member.pods);
            pods.retain(|pod| selector::matches(selector, &pod.metadata.labels));
            pods
        };
        let pods = select(selector);
        let budgets: Vec<Budget> = all(&member.budgets);
        let own = Own::of(&self.set, "f", neighbours);
        let covering = carriers::covering(&budgets, &own, selector);
        let covering = covering.and_then(|budget| budget.spec.selector.as_ref());
        let covering = covering.map_or_else(Vec::new, |wide| select(&with_disabled(wide)));
        let nodes: Vec<Node> = all(&member.nodes);
        let nodes = nodes
            .into_iter()
            .map(|node| (node.metadata.name.clone(), node));
        Observed {
            sets: all(&member.sets),
            budgets,
            pods,
            covering,
            nodes: Arc::new(nodes.collect()),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        let neighbours = self.neighbours();
        let seen = self.members.iter().map(|(name, member)| {
            let seen = if member.is_away {
                Seen::Away("no answer".to_owned())
            } else {
                Seen::Observed(self.observe(member, &neighbours))
            };
            (name.clone(), seen)
        });
        plan(&Input {
            set: &self.set,
            federation: "f",
            neighbours: &neighbours,
            deployments: &all::<FederatedSet>(&self.deployments),
            seen: &seen.collect(),
            rejected: &self.rejected,
            has_host_rejected: false,
            now: Timestamp::UNIX_EPOCH,
        })
    }

    /// Carries out one plan. Returns whether anything was written.
    pub(crate) fn step(&mut self) -> bool {
        let (has_written, requests) = self.look();
        let has_requests = !requests.is_empty();
        for (member, request) in requests {
            assert!(self.send(&member, request), "it names what it replaces");
        }
        has_written || has_requests
    }

    /// Carries out one plan on the host. Returns whether anything was written, and the requests to members.
    pub(crate) fn look(&mut self) -> (bool, Vec<(String, Request)>) {
        let plan = self.plan();
        let has_status = self.set.status.as_ref() != Some(&plan.status);
        if plan.finalizer == Some(FinalizerChange::Add) {
            self.set.metadata.finalizers = Some(vec![finalizers::AVAILABILITY_SET.to_owned()]);
        }
        if has_status {
            self.events
                .extend(plan.events.iter().map(|event| event.reason));
        }
        self.set.status = Some(plan.status);
        if plan.finalizer == Some(FinalizerChange::Remove) {
            self.set.metadata.finalizers = None;
            self.is_gone = true;
        }
        let of_member = |(member, requests): (String, Vec<Request>)| {
            requests
                .into_iter()
                .map(move |request| (member.clone(), request))
        };
        let to_host = (HOST.to_owned(), plan.host_requests);
        let all = plan.requests.into_iter().chain([to_host]);
        let requests = all.flat_map(of_member).collect();
        (plan.finalizer.is_some() || has_status, requests)
    }

    /// A request arrives. Returns whether what it names was there.
    pub(crate) fn send(&mut self, member: &str, request: Request) -> bool {
        self.version += 1;
        let version = json!(self.version.to_string());
        if member == HOST {
            let Request::MergePatch { path, body } = request else {
                panic!("only annotations of FederatedDeployments are changed: {request:?}");
            };
            let name = path.rsplit('/').next().unwrap();
            return self
                .deployments
                .get_mut(name)
                .is_some_and(|set| annotate(set, &body, version));
        }
        let member = self.member(member);
        let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        match request {
            Request::Create { mut body, .. } => {
                body["metadata"]["uid"] = version.clone();
                body["metadata"]["resourceVersion"] = version;
                body["metadata"]["generation"] = json!(1);
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                let is_new = !member.budgets.contains_key(&name);
                member.budgets.entry(name).or_insert(body);
                is_new
            }
            Request::Patch { path, body } => {
                let Some(before) = member.budgets.get_mut(&name(&path)) else {
                    return false;
                };
                let Some(mut after) = patched(before, &body) else {
                    return false;
                };
                after["metadata"]["resourceVersion"] = version;
                if after["spec"] != before["spec"] {
                    let generation = before["metadata"]["generation"].as_i64().unwrap();
                    after["metadata"]["generation"] = json!(generation + 1);
                }
                *before = after;
                true
            }
            Request::MergePatch { path, body } => {
                let set = member.sets.get_mut(&name(&path)).unwrap();
                assert!(annotate(set, &body, version), "it names what it replaces");
                true
            }
            Request::Delete { path, body } => {
                let name = name(&path);
                let preconditions = body["preconditions"].as_object().unwrap();
                let is_it = member.budgets.get(&name).is_some_and(|budget| {
                    let mut preconditions = preconditions.iter();
                    preconditions.all(|(field, value)| budget["metadata"][field] == *value)
                });
                is_it && member.budgets.remove(&name).is_some()
            }
        }
    }

    /// The controllers of the members have observed what is written.
    pub(crate) fn observe_all(&mut self) {
        for member in self.members.values_mut() {
            member.observe_budgets();
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

    /// Steps until nothing is written, while members observe everything at once. The other sets have their turns, too.
    pub(crate) fn settle(&mut self) {
        let main = self.set.metadata.name.clone().unwrap();
        for _ in 0..30 {
            let mut has_written = false;
            let others: Vec<_> = self.others.keys().cloned().collect();
            for name in [main.clone()].into_iter().chain(others) {
                self.turn_to(&name);
                has_written |= self.step();
                self.observe_all();
                if self.is_gone && name == main {
                    return;
                }
                if std::mem::take(&mut self.is_gone) {
                    self.turn_to(&main);
                    self.others.remove(&name);
                }
            }
            self.turn_to(&main);
            if !has_written {
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

    /// All PodDisruptionBudgets of a member, with the loans on them: `avset-web=1 (front=1, web=2)`.
    pub(crate) fn budgets(&self, member: &str) -> String {
        let budgets = self.members[member].budgets.iter().map(|(name, budget)| {
            let annotations = serde_json::from_value(budget["metadata"]["annotations"].clone());
            let loans = DisruptionLimit::all(Some(&annotations.unwrap_or_default())).into_iter();
            let loans = loans.map(|(set, limit)| format!("{set}={}", limit.max_unavailable));
            let loans = loans.collect::<Vec<_>>().join(", ");
            format!("{name}={} ({loans})", budget["spec"]["maxUnavailable"])
        });
        budgets.collect::<Vec<_>>().join("; ")
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

/// Changes the annotations of an object. Returns whether it was the one that the patch names.
fn annotate(set: &mut Value, patch: &Value, version: Value) -> bool {
    let meta = &patch["metadata"];
    if meta["resourceVersion"] != set["metadata"]["resourceVersion"] {
        return false;
    }
    for (key, value) in meta["annotations"].as_object().unwrap() {
        set["metadata"]["annotations"][key] = value.clone();
        if value.is_null() {
            set["metadata"]["annotations"] = Value::Null;
        }
    }
    set["metadata"]["resourceVersion"] = version;
    true
}

impl Member {
    /// What the disruption controller has to say of PodDisruptionBudgets.
    pub(crate) fn observe_budgets(&mut self) {
        let Self { pods, missing, .. } = self;
        for budget in self.budgets.values_mut() {
            let decoded: Budget = serde_json::from_value(budget.clone()).unwrap();
            let matching = |objects: &Objects| {
                let mut pods: Vec<Pod> = all(objects);
                pods.retain(|pod| decoded.matches_any(&[pod]));
                pods
            };
            let (there, missing) = (matching(pods), matching(missing));
            let before = budget["status"]["disruptedPods"].as_object().cloned();
            let mut disrupted = before.unwrap_or_default();
            disrupted.retain(|name, _| pods.contains_key(name));
            let healthy = there.iter().filter(|pod| {
                let name = &pod.metadata.name;
                let is_ready = pods[name]["status"]["conditions"][0]["status"] == "True";
                is_ready && !disrupted.contains_key(name)
            });
            let expected = there.len() + missing.len();
            let most = budget["spec"]["maxUnavailable"].as_u64();
            let least = budget["spec"]["minAvailable"].as_u64();
            let desired = most.map_or(least.unwrap_or_default(), |most| {
                (expected as u64).saturating_sub(most)
            });
            let allowed = (healthy.count() as u64).saturating_sub(desired);
            budget["status"] = json!({
                "observedGeneration": budget["metadata"]["generation"],
                "expectedPods": expected, "disruptionsAllowed": allowed, "disruptedPods": disrupted,
            });
        }
    }
}

/// An AvailabilitySet.
pub(crate) fn set(name: &str, labels: &Value, budget: &Value) -> AvailabilitySet {
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "AvailabilitySet",
        "metadata": { "name": name, "namespace": "shop", "uid": "own", "generation": 1 },
        "spec": { "selector": { "matchLabels": labels }, "budget": budget },
    });
    serde_json::from_value(object).unwrap()
}

/// What a JSON patch makes of an object; `None` if a test fails.
fn patched(object: &Value, patch: &Value) -> Option<Value> {
    let mut object = object.clone();
    for operation in patch.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        let (parent, field) = path.rsplit_once('/').unwrap();
        let field = field.replace("~1", "/");
        match operation["op"].as_str().unwrap() {
            "test" => (object.pointer(path) == Some(&operation["value"])).then_some(())?,
            "remove" => {
                let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
                parent.remove(&field).unwrap();
            }
            _ => object.pointer_mut(parent).unwrap()[field] = operation["value"].clone(),
        }
    }
    Some(object)
}

fn all<T: DeserializeOwned>(objects: &Objects) -> Vec<T> {
    let objects = objects.values().cloned();
    objects
        .map(|object| serde_json::from_value(object).unwrap())
        .collect()
}
