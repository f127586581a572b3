//! What is lent to rollouts of FederatedDeployments, and that evictions and rollouts together stay within the budget (A1, M16).

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{own::Request, world::World};

/// 3 pods in each of `eu` and `us`, of the FederatedDeployment `web`.
fn world(budget: u64) -> World {
    let mut world = World::new(&json!(budget));
    world.deployments.insert("web".to_owned(), deployment(6));
    world
}

/// Which has so many updated replicas.
fn deployment(updated: u64) -> Value {
    json!({
        "metadata": { "name": "web", "uid": "1", "resourceVersion": "1" },
        "spec": {
            "replicas": 6,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } } },
        },
        "status": { "updateRevision": "web-2", "updatedReplicas": updated, "rollout": rollout(0) },
    })
}

/// A rollout that has lent so many pods to a member.
fn rollout(lent: u64) -> Value {
    let loan = json!({ "strategy": { "unavailable": lent, "surge": 0 }, "revision": "web-2", "generation": 1 });
    let loans = if lent == 0 {
        json!({})
    } else {
        json!({ "eu": loan })
    };
    json!({ "record": json!({ "revision": "web-2", "loans": loans }).to_string() })
}

/// What the annotation of the FederatedDeployment says.
fn limit(world: &World) -> Value {
    let annotation =
        &world.deployments["web"]["metadata"]["annotations"]["availability.fedrs.dev/web"];
    let limit = annotation.as_str().map(serde_json::from_str);
    limit.map_or(Value::Null, Result::unwrap)
}

fn lent(world: &World) -> [Value; 3] {
    [
        world.lent("eu"),
        world.lent("us"),
        limit(world)["maxUnavailable"].clone(),
    ]
}

impl World {
    fn status_of_rollout(&mut self, field: &str, value: Value) {
        self.deployments.get_mut("web").unwrap()["status"][field] = value;
    }
}

#[test]
fn a1_a_rollout_gets_a_part_of_the_budget_while_pods_wait_for_it() {
    let mut world = world(2);
    world.settle();
    assert_eq!(lent(&world), [json!(1), json!(1), json!(0)]);
    world.status_of_rollout("updatedReplicas", json!(0));
    world.settle();
    assert_eq!(lent(&world), [json!(0), json!(0), json!(2)]);
    let rollouts = json!(world.status().rollouts);
    let kind = "FederatedDeployment";
    assert_eq!(
        rollouts,
        json!([{ "kind": kind, "name": "web", "maxUnavailable": 2, "revision": 2 }])
    );
    // Pods on a node that is cordoned wait, too.
    let spec = json!({ "unschedulable": true });
    world.member("eu").nodes.get_mut("n1").unwrap()["spec"] = spec;
    world.settle();
    assert_eq!(lent(&world), [json!(1), json!(0), json!(1)]);
}

#[test]
fn a1_what_a_rollout_may_still_use_is_lent_to_nobody_else() {
    let mut world = world(2);
    world.status_of_rollout("rollout", rollout(2));
    world.settle();
    assert_eq!(lent(&world), [json!(0), json!(0), json!(0)]);
    assert_eq!(world.status().rollouts[0].max_unavailable, 2);
    world.status_of_rollout("rollout", json!({ "record": "nonsense" }));
    world.settle();
    assert_eq!(world.status().rollouts[0].max_unavailable, 6);
    world.status_of_rollout("rollout", rollout(0));
    world.settle();
    assert_eq!(lent(&world), [json!(1), json!(1), json!(0)]);
}

/// They are what was lent for.
#[test]
fn a1_pods_that_are_being_updated_use_the_loan_of_the_rollout() {
    let mut world = world(2);
    world.status_of_rollout("updatedReplicas", json!(0));
    world.settle();
    world.status_of_rollout("rollout", rollout(2));
    for pod in ["web-1", "web-2"] {
        world.set_ready("eu", pod, false);
    }
    world.settle();
    assert_eq!(lent(&world), [json!(0), json!(0), json!(2)]);
    assert_eq!(world.status().unreachable, 2);
    assert!(world.condition("Available").starts_with("True"));
    // A third one has failed.
    world.set_ready("us", "web-1", false);
    world.settle();
    assert_eq!(lent(&world), [json!(0), json!(0), json!(0)]);
    assert_eq!(world.status().rollouts[0].max_unavailable, 2);
    assert!(world.condition("Available").starts_with("False"));
}

/// Of a broken revision, or for any other reason: without the rollout they would stay so. Nothing else is lost meanwhile.
#[test]
fn a1_a_rollout_replaces_pods_that_are_unavailable_anyway() {
    for (broken, expected) in [(1, 2), (2, 2), (3, 2)] {
        let mut world = world(2);
        world.settle();
        for pod in 1..=broken {
            world.set_ready("eu", &format!("web-{pod}"), false);
        }
        world.settle();
        world.status_of_rollout("updatedReplicas", json!(0));
        let eu = json!({ "name": "eu", "desiredReplicas": 3, "availableReplicas": 3 - broken });
        world.status_of_rollout("clusters", json!([eu]));
        world.settle();
        assert_eq!(
            lent(&world),
            [json!(0), json!(0), json!(expected)],
            "{broken}"
        );
        assert_eq!(world.status().unreachable, broken);
    }
}

/// Its controller does not count them, and would make others unavailable.
#[test]
fn a1_no_rollout_replaces_pods_that_its_controller_does_not_miss() {
    let mut world = world(2);
    for pod in ["web-1", "web-2"] {
        world.set_ready("eu", pod, false);
    }
    world.status_of_rollout("updatedReplicas", json!(0));
    world.settle();
    assert_eq!(lent(&world)[2], 0);
}

#[test]
fn m16_a_rollout_has_the_turn_alone() {
    let mut world = world(2);
    world.set.spec.one_cluster_at_a_time = true;
    world.settle();
    world.status_of_rollout("updatedReplicas", json!(0));
    world.settle();
    assert_eq!(lent(&world), [json!(0), json!(0), json!(2)]);
    assert_eq!(limit(&world)["oneClusterAtATime"], true);
}

#[test]
fn a1_the_loan_ends_with_the_set_and_with_what_it_selects() {
    for end in ["labels", "kind", "set"] {
        let mut world = world(2);
        world.settle();
        let spec = &mut world.deployments.get_mut("web").unwrap()["spec"];
        match end {
            "labels" => spec["template"]["metadata"]["labels"] = json!({ "app": "other" }),
            "kind" => spec["localKind"] = json!("LocalReplicaSet"),
            _ => {
                let now = json!("2027-01-15T08:00:00Z");
                world.set.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
            }
        }
        world.settle();
        assert_eq!(limit(&world), Value::Null, "{end}");
        assert_eq!(world.is_gone, end == "set");
        assert!(world.is_gone || world.status().rollouts.is_empty(), "{end}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The controller looks, its requests arrive at once, and members observe them.
    Round,
    /// The controller looks. Its requests arrive later, or never.
    Look,
    Arrive(usize),
    /// Members have observed what is written there.
    Observe,
    /// A pod is evicted.
    Evict(bool, usize),
    /// The controller of the rollout reads the FederatedDeployment and the members.
    Read,
    /// It writes how many pods it has seen to be available.
    Publish,
    /// It records, for the version that it has read, that so much is lent to `eu`: within the limit, or what was lent is smaller.
    Lend(u64),
    /// A pod of `eu` is updated within what is recorded.
    Update(usize),
    /// A pod fails by itself.
    Fail(bool, usize),
    /// A pod is available again.
    Recover(bool, usize),
    Cordon(bool, bool),
    Wanted(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Round),
        3 => Just(Event::Look),
        3 => (0_usize..4).prop_map(Event::Arrive),
        4 => Just(Event::Observe),
        4 => (any::<bool>(), 1_usize..4).prop_map(|(eu, pod)| Event::Evict(eu, pod)),
        4 => Just(Event::Read),
        3 => Just(Event::Publish),
        1 => (any::<bool>(), 1_usize..4).prop_map(|(eu, pod)| Event::Fail(eu, pod)),
        6 => (0_u64..4).prop_map(Event::Lend),
        4 => (1_usize..4).prop_map(Event::Update),
        4 => (any::<bool>(), 1_usize..4).prop_map(|(eu, pod)| Event::Recover(eu, pod)),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(eu, on)| Event::Cordon(eu, on)),
        2 => (0_u64..7).prop_map(Event::Wanted),
    ]
}

/// The world, and the controller of the rollout.
struct Run {
    world: World,
    on_their_way: Vec<(String, Request)>,
    /// The version that it has read, and the limit there.
    read: (Value, u64),
    /// How many pods it has seen to be unavailable in `eu` and `us`.
    seen: [u64; 2],
    recorded: u64,
    /// The pods that have failed by themselves.
    failed: BTreeSet<(bool, usize)>,
}

impl Run {
    fn unavailable(&self, member: &str) -> u64 {
        let pods = self.world.members[member].pods.values();
        let lost = pods.filter(|pod| pod["status"]["conditions"][0]["status"] != "True");
        lost.count() as u64
    }

    fn apply(&mut self, event: Event) {
        let member = |eu: bool| if eu { "eu" } else { "us" };
        match event {
            Event::Round => {
                for (member, request) in self.world.look().1 {
                    self.world.send(&member, request);
                }
                self.world.observe_all();
            }
            Event::Look => self.on_their_way.extend(self.world.look().1),
            Event::Arrive(which) if which < self.on_their_way.len() => {
                let (member, request) = self.on_their_way.remove(which);
                self.world.send(&member, request);
            }
            Event::Observe => self.world.observe_all(),
            Event::Evict(eu, pod) => self.evict(member(eu), &format!("web-{pod}")),
            Event::Read => {
                let version = &self.world.deployments["web"]["metadata"]["resourceVersion"];
                let lent = limit(&self.world)["maxUnavailable"].as_u64();
                self.read = (version.clone(), lent.unwrap_or(0));
                self.seen = ["eu", "us"].map(|member| self.unavailable(member));
            }
            Event::Publish => {
                let clusters = ["eu", "us"].into_iter().zip(self.seen);
                let clusters = clusters.map(|(name, lost)| {
                    json!({ "name": name, "desiredReplicas": 3, "availableReplicas": 3 - lost })
                });
                let clusters = clusters.collect();
                self.write_status("clusters", clusters);
            }
            Event::Lend(lent) => self.lend(lent),
            Event::Update(pod) if self.unavailable("eu") < self.recorded => {
                self.world.set_ready("eu", &format!("web-{pod}"), false);
            }
            Event::Arrive(_) | Event::Update(_) => {}
            Event::Fail(eu, pod) => {
                let (member, name) = (member(eu), format!("web-{pod}"));
                if self.is_ready(member, &name) {
                    self.failed.insert((eu, pod));
                    self.world.set_ready(member, &name, false);
                }
            }
            Event::Recover(eu, pod) => {
                self.failed.remove(&(eu, pod));
                self.world
                    .set_ready(member(eu), &format!("web-{pod}"), true);
            }
            Event::Cordon(eu, on) => {
                let node = self.world.member(member(eu)).nodes.get_mut("n1");
                node.unwrap()["spec"] = json!({ "unschedulable": on });
            }
            Event::Wanted(wanted) => {
                self.world
                    .status_of_rollout("updatedReplicas", json!(6 - wanted));
            }
        }
    }

    /// What is lent gets smaller only once it can't be used any more. It grows within the limit, of which pods that are unavailable use
    /// some: those of `eu` may be replaced with it.
    fn lend(&mut self, lent: u64) {
        let [eu, us] = self.seen;
        let has_room = lent <= eu || lent.max(eu) + us <= self.read.1;
        let is_loan = lent <= self.read.1 && lent > self.recorded && has_room;
        let is_recall = lent < self.recorded && self.unavailable("eu") <= lent;
        if (is_loan || is_recall) && self.write_status("rollout", rollout(lent)) {
            self.recorded = lent;
        }
    }

    /// Writes to the status, if the version is still that which was read.
    fn write_status(&mut self, field: &str, value: Value) -> bool {
        let object = self.world.deployments.get_mut("web").unwrap();
        let version = &mut object["metadata"]["resourceVersion"];
        if self.read.0 != *version {
            return false;
        }
        *version = json!(format!("{version}+").replace('"', ""));
        self.read.0 = version.clone();
        self.world.status_of_rollout(field, value);
        true
    }

    fn is_ready(&self, member: &str, pod: &str) -> bool {
        self.world.members[member].pods[pod]["status"]["conditions"][0]["status"] == "True"
    }

    /// As the API server evicts, by what its disruption controller has counted last.
    fn evict(&mut self, member: &str, pod: &str) {
        let is_ready = self.is_ready(member, pod);
        let of_member = self.world.member(member);
        let Some(budget) = of_member.budgets.get_mut("avset-web") else {
            return;
        };
        let observed = budget["status"]["observedGeneration"] == budget["metadata"]["generation"];
        let allowed = budget["status"]["disruptionsAllowed"].as_u64();
        let allowed = allowed.filter(|_| observed).unwrap_or(0);
        if allowed > 0 && is_ready {
            budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
            self.world.set_ready(member, pod, false);
        }
    }
}

proptest! {
    #[test]
    fn a1_rollouts_and_evictions_together_stay_within_the_budget(
        budget in 1_u64..4,
        events in prop::collection::vec(event(), 0..120),
    ) {
        let mut world = world(budget);
        world.settle();
        let mut run = Run { world, on_their_way: Vec::new(), read: (Value::Null, 0), seen: [0; 2], recorded: 0, failed: BTreeSet::new() };
        for event in events {
            run.apply(event);
            let unavailable = run.unavailable("eu") + run.unavailable("us") - run.failed.len() as u64;
            prop_assert!(unavailable <= budget, "{unavailable} after {event:?}: {:?}", lent(&run.world));
        }
    }
}
