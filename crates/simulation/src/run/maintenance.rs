//! Maintenances in a run, and how the run of them ends: the nodes that match have their marks, and at the end none has.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use sim_cluster::{NodeSpec, Object, kinds};
use tokio::time::{Duration, Instant};

use super::runner::Runner;
use crate::{
    checks::{Invariant, Observed, is_closed_node, mark_of, matches_node},
    plan::{Action, Fault, NodeWork, Plan},
    sim_federation::HOST,
    trace::Topic,
};

/// The collection of Maintenances.
const MAINTENANCES: &str = "/apis/fedrs.dev/v1alpha1/maintenances";
/// The collection of nodes.
const NODES: &str = "/api/v1/nodes";
/// How many pods a node can run that comes back.
const PODS: u32 = 20;
/// By this time a controller leads, reaches all members that answer, and has noticed that the host was restored.
const KNOWN_AFTER: Duration = Duration::from_secs(330);
/// By this time the marks are right: clusters that failed to answer are asked again, and other Maintenances give way.
const MARKED_WITHIN: Duration = Duration::from_secs(120);
/// For so long no mark is written any more.
const QUIET_FOR: Duration = Duration::from_secs(60);
/// By this time no node is marked any more: the next look is 10 s later at most, and that of one that waited for another, too.
const UNMARKED_WITHIN: Duration = Duration::from_secs(30);
/// How often nodes are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// A node: its member, and its name.
type NodeId = (String, String);

impl Runner {
    /// Carries out a step of a plan.
    pub(super) async fn work(&mut self, work: &NodeWork) {
        let path = |name: &str| format!("{MAINTENANCES}/{name}");
        let name_of = |member: &str, node: u32| format!("{member}-node-{node}");
        match work {
            NodeWork::Create { maintenance, spec } => {
                let object = json!({
                    "apiVersion": "fedrs.dev/v1alpha1",
                    "kind": "Maintenance",
                    "metadata": { "name": maintenance },
                    "spec": spec,
                });
                if self
                    .request(HOST, Method::POST, MAINTENANCES, &object)
                    .await
                {
                    self.count("Maintenances");
                }
            }
            NodeWork::Edit { maintenance, spec } => {
                let patch = json!({ "spec": spec });
                self.patch(HOST, &path(maintenance), &patch).await;
            }
            NodeWork::Delete { maintenance } => {
                let path = path(maintenance);
                self.request(HOST, Method::DELETE, &path, &Value::Null)
                    .await;
            }
            NodeWork::EditNode {
                member,
                node,
                patch,
            } => {
                let path = format!("{NODES}/{}", name_of(member, *node));
                self.patch(member, &path, patch).await;
            }
            NodeWork::NodeObject {
                member,
                node,
                exists: true,
            } => {
                let spec = NodeSpec::new(name_of(member, *node)).pods(PODS);
                // It exists if it was restored.
                let _ = self.federation.member(member).add_node(&spec);
            }
            NodeWork::NodeObject { member, node, .. } => {
                let path = format!("{NODES}/{}", name_of(member, *node));
                self.request(member, Method::DELETE, &path, &Value::Null)
                    .await;
                self.count("deleted nodes");
            }
        }
    }

    /// The faults of the host and of the core have ended: the marks become right, stay so, and disappear when all Maintenances end.
    pub(super) async fn settle_maintenances(&mut self, core: &[String], plan: &Plan) {
        let creates = |action: &Action| matches!(action, Action::Work(NodeWork::Create { .. }));
        if !plan.steps.iter().any(|step| creates(&step.action)) {
            return;
        }
        self.wait_until(Instant::now() + KNOWN_AFTER).await;
        let marks_are_right = |runner: &Self| Wanted::of(runner, core).wrong_mark(runner);
        if !self.reach(MARKED_WITHIN, marks_are_right).await {
            return;
        }
        self.recorder.trace(Topic::Phase, "the marks are right");
        let wanted = Wanted::of(self, core);
        let before = self.recorder.writes();
        self.wait_until(Instant::now() + QUIET_FOR).await;
        let is_of_core = |what: &&String| {
            let mut members = core.iter();
            members.any(|member| what.contains(&format!(" {member} {NODES}/")))
        };
        let written = self.recorder.writes_after(before);
        if let Some(write) = written.iter().find(is_of_core)
            && Wanted::of(self, core).nodes == wanted.nodes
        {
            let text = format!("a mark is written where all are right: {write}");
            return self.fail(Invariant::Settled, text);
        }
        self.end_maintenances().await;
        let none_is_left = |runner: &Self| wanted.left(runner);
        if self.reach(UNMARKED_WITHIN, none_is_left).await {
            self.recorder.trace(Topic::Phase, "no node is marked");
            self.open_nodes(core).await;
        }
    }

    /// Waits until `wrong` has nothing to say. Whether it is so in time.
    pub(super) async fn reach(
        &mut self,
        within: Duration,
        wrong: impl Fn(&Self) -> Option<String>,
    ) -> bool {
        let deadline = Instant::now() + within;
        while let Some(text) = wrong(self) {
            if Instant::now() >= deadline {
                let seconds = within.as_secs();
                let text = format!("not within {seconds} s: {text}");
                self.fail(Invariant::Reached, text);
                return false;
            }
            self.wait_until(Instant::now() + LOOK).await;
        }
        true
    }

    /// Each Maintenance is deleted, or ended.
    async fn end_maintenances(&mut self) {
        for (place, object) in maintenances(self).iter().enumerate() {
            let maintenance = crate::name_of(object);
            let work = if place % 2 == 0 {
                NodeWork::Delete { maintenance }
            } else {
                let spec = json!({ "ended": true });
                NodeWork::Edit { maintenance, spec }
            };
            self.recorder.trace(Topic::Step, work.to_string());
            self.work(&work).await;
        }
    }

    /// Administrators uncordon all nodes, and remove what marks without a Maintenance have left.
    async fn open_nodes(&self, core: &[String]) {
        let patch = json!({
            "metadata": {
                "labels": { fedrs_api::annotations::EVICT: null },
                "annotations": { fedrs_api::annotations::MAINTENANCE: null },
            },
            "spec": { "unschedulable": null },
        });
        for (member, node) in nodes(self, core).keys() {
            self.patch(member, &format!("{NODES}/{node}"), &patch).await;
        }
    }
}

/// Which nodes of the core have to have marks.
struct Wanted {
    /// Of each node, the uids of the Maintenances whose mark it may have; empty if it may have none.
    nodes: BTreeMap<NodeId, BTreeSet<String>>,
    /// The uids of all Maintenances.
    known: BTreeSet<String>,
    /// Those that change nothing, as they name a cluster that is no member.
    frozen: BTreeSet<String>,
}

impl Wanted {
    fn of(runner: &Runner, core: &[String]) -> Self {
        let objects = maintenances(runner);
        let members = runner.federation.member_names();
        let is_member = |name: &Value| {
            let name = name.as_str().unwrap_or_default().to_owned();
            members.contains(&name) && !runner.has(&name, Fault::NoKubeconfig)
        };
        let is_frozen = |object: &&Object| {
            let clusters = object["spec"]["clusters"].as_array();
            let mut clusters = clusters.into_iter().flatten();
            !is_over(object) && !clusters.all(is_member)
        };
        let now = runner.federation.machine_time();
        let mut wanted = Self {
            nodes: BTreeMap::new(),
            known: objects.iter().map(uid).collect(),
            frozen: objects.iter().filter(is_frozen).map(uid).collect(),
        };
        for (id, node) in nodes(runner, core) {
            let asks = |object: &&Object| {
                let labels = &node["metadata"]["labels"];
                is_active(object, now) && matches_node(&object["spec"], &id.0, labels)
            };
            let asking = objects.iter().filter(asks).map(uid).collect();
            wanted.nodes.insert(id, asking);
        }
        wanted
    }

    /// A node whose mark is not as it has to be.
    fn wrong_mark(&self, runner: &Runner) -> Option<String> {
        self.nodes.iter().find_map(|(id, asking)| {
            let (member, name) = id;
            let node = node(runner, id)?;
            let mark = mark_of(&node);
            let of = mark.as_ref().map(|mark| mark.uid.as_str());
            let is_frozen = |uid: &str| self.frozen.contains(uid);
            if asking.iter().any(|uid| is_frozen(uid)) || of.is_some_and(is_frozen) {
                return None;
            }
            let text = match of {
                None if asking.is_empty() => return None,
                None => "has no mark",
                Some(uid) if asking.contains(uid) => {
                    if is_closed_node(&node) {
                        return None;
                    }
                    "has a mark, and is not cordoned or emptied"
                }
                Some(_) => {
                    let is_forgotten = |observed: &mut Observed| observed.was_unreliable(member);
                    if is_hidden(&node) || runner.recorder.observe(is_forgotten) {
                        return None;
                    }
                    "has a mark that it should not have"
                }
            };
            Some(format!(
                "{name} in {member} {text}: {mark:?}, {asking:?} ask"
            ))
        })
    }

    /// A node that was marked, and still is.
    fn left(&self, runner: &Runner) -> Option<String> {
        let mut asked = self.nodes.iter().filter(|(_, asking)| !asking.is_empty());
        asked.find_map(|(id, _)| {
            let (member, name) = id;
            let node = node(runner, id)?;
            let mark = mark_of(&node)?;
            let is_left = self.known.contains(&mark.uid) && !is_hidden(&node);
            is_left.then(|| format!("{name} in {member} has the mark of {} left", mark.name))
        })
    }
}

fn maintenances(runner: &Runner) -> Vec<Object> {
    let host = runner.federation.cluster(HOST).api();
    let kind = host.kind_of("fedrs.dev/v1alpha1", "Maintenance");
    kind.map(|kind| host.list(&kind, None)).unwrap_or_default()
}

/// The nodes of these members.
fn nodes(runner: &Runner, members: &[String]) -> BTreeMap<NodeId, Object> {
    let of_member = |member: &String| {
        let nodes = runner.federation.member(member).api();
        let nodes = nodes.list(&kinds::NODES, None).into_iter();
        let member = member.clone();
        nodes.map(move |node| ((member.clone(), crate::name_of(&node)), node))
    };
    members.iter().flat_map(of_member).collect()
}

fn node(runner: &Runner, (member, name): &NodeId) -> Option<Object> {
    let api = runner.federation.member(member).api();
    api.get(&kinds::NODES, "", name).ok()
}

/// Whether somebody has left nothing of a mark but its annotation: by that, no list finds it. The controller never does, as the checks
/// of its writes show.
fn is_hidden(node: &Value) -> bool {
    let label = &node["metadata"]["labels"][fedrs_api::annotations::EVICT];
    !label.is_string() && node["spec"]["unschedulable"] != true
}

fn uid(object: &Object) -> String {
    let uid = object["metadata"]["uid"].as_str();
    uid.unwrap_or_default().to_owned()
}

fn is_over(object: &Value) -> bool {
    object["spec"]["ended"] == true || object["metadata"].get("deletionTimestamp").is_some()
}

/// Whether a Maintenance has begun, by the clock of the controller, and is not over.
fn is_active(object: &Value, now: Timestamp) -> bool {
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let start = time(&object["spec"]["startTime"]);
    let begun = time(&object["status"]["started"]).unwrap_or(now).max(now);
    !is_over(object) && start.is_none_or(|start| begun >= start)
}
