//! `fedrs plan` predicts what the controller does.
//!
//! `FEDRS_SEEDS=500` runs more seeds than by default, `FEDRS_SEED=17` only that one.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't go on ends"
)]

use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

use federation_controller::{
    config::Config,
    forecast::{End, Forecast, Question, WhatIf, forecast},
};
use fedrs_api::{FederatedReplicaSet, FederatedReplicaSetStatus, MemberCluster, ValidFrs};
use fedrs_tests::{MEMBERS_PATH, SimFederation, SimFederationSpec, SimMemberSpec, even, frs};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Verb};

/// Seeds by default: they take some seconds.
const SEEDS: u64 = 12;
/// Longer than the longest backoff and the longest wait.
const SETTLED_AFTER: Duration = Duration::from_secs(900);

/// Desired replicas by cluster.
type Desired = BTreeMap<String, i32>;

fn seeds() -> RangeInclusive<u64> {
    let number = |name| {
        let value = std::env::var(name).ok();
        value.map(|value| value.parse::<u64>().unwrap())
    };
    match number("FEDRS_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("FEDRS_SEEDS").unwrap_or(SEEDS),
    }
}

/// A change that a user may plan, and then make.
#[derive(Clone, Debug, Default)]
struct Change {
    what_if: WhatIf,
    replicas: Option<u32>,
    placement: Option<Value>,
}

impl Change {
    fn lose(name: &str) -> Self {
        let mut change = Self::default();
        change.what_if.lost.insert(name.to_owned());
        change
    }

    fn random(random: &mut StdRng, members: &[String]) -> Self {
        let mut change = Self::default();
        // A loss takes time: other changes by the user happen before it, and not at once as in a plan.
        let loses = random.random_bool(0.4);
        let mut shuffled = members.to_vec();
        // The last one stays as it is: without any other member nothing moves.
        shuffled.rotate_left(random.random_range(0..members.len()));
        for name in &shuffled[1..] {
            match (random.random_range(0..6), loses) {
                (0..3, true) => change.what_if.lost.insert(name.clone()),
                (0..2, false) => change.what_if.drained.insert(name.clone()),
                (3, _) => change.what_if.cordoned.insert(name.clone()),
                _ => false,
            };
        }
        if !loses && random.random_bool(0.4) {
            change.replicas = Some(random.random_range(0..40));
        }
        if !loses && random.random_bool(0.3) {
            change.placement = Some(placement(random, members));
        }
        change
    }

    /// Makes the change.
    async fn apply(&self, federation: &SimFederation) {
        for name in &self.what_if.lost {
            federation.member(name).faults().set_unreachable(true);
        }
        let switches = [
            ("unschedulable", &self.what_if.cordoned),
            ("drain", &self.what_if.drained),
        ];
        for (switch, names) in switches {
            for name in names {
                let path = format!("{MEMBERS_PATH}/{name}");
                let on = json!({ "spec": { switch: true } });
                federation.on_host("PATCH", &path, &on).await.unwrap();
            }
        }
        let mut spec = json!({});
        if let Some(replicas) = self.replicas {
            spec["replicas"] = replicas.into();
        }
        if let Some(placement) = &self.placement {
            spec["placement"] = placement.clone();
        }
        federation.patch("web", &json!({ "spec": spec })).await;
    }
}

fn placement(random: &mut StdRng, members: &[String]) -> Value {
    let mut clusters = json!({});
    if random.random_bool(0.8) {
        clusters["*"] = json!({ "weight": 1 });
    }
    for name in members {
        if random.random_bool(0.5) {
            let min = random.random_range(0..4);
            clusters[name] = json!({ "weight": random.random_range(0..4), "minReplicas": min });
            if random.random_bool(0.4) {
                clusters[name]["maxReplicas"] = (min + random.random_range(0..12)).into();
            }
        }
    }
    json!({ "rebalance": random.random_bool(0.5), "clusters": clusters })
}

/// The plan, from the objects that a user may read on the host.
async fn plan(federation: &SimFederation, change: &Change) -> Forecast {
    plan_in(federation, change, None).await
}

/// The same, if the namespace of the set has these `labels`.
async fn plan_in(
    federation: &SimFederation,
    change: &Change,
    labels: Option<&BTreeMap<String, String>>,
) -> Forecast {
    let object: FederatedReplicaSet = serde_json::from_value(federation.frs("web").await).unwrap();
    let mut changed = object.clone();
    if let Some(replicas) = change.replicas {
        changed.spec.replicas = replicas.try_into().unwrap();
    }
    if let Some(placement) = &change.placement {
        changed.spec.placement = Some(merged(&object, placement));
    }
    let list = federation.on_host("GET", MEMBERS_PATH, &Value::Null).await;
    let members: Vec<MemberCluster> =
        serde_json::from_value(list.unwrap()["items"].clone()).unwrap();
    forecast(&Question {
        frs: &ValidFrs::check(&changed).unwrap(),
        status: &object.status.unwrap_or_default(),
        new_template: false,
        members: &members,
        namespace_labels: labels,
        what_if: &change.what_if,
        settings: &Config::default(),
        now: federation.now(),
    })
}

/// Plans `change`, makes it, and compares the result with the plan.
async fn planned_as_it_happens(federation: &SimFederation, change: &Change) -> Forecast {
    let planned = plan(federation, change).await;
    change.apply(federation).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    assert_eq!(desired(&planned.status), desired(&status(federation).await));
    planned
}

/// The placement of `object` after a merge patch.
fn merged(object: &FederatedReplicaSet, patch: &Value) -> fedrs_api::Placement {
    let mut placement = serde_json::to_value(&object.spec.placement).unwrap();
    placement["rebalance"] = patch["rebalance"].clone();
    for (name, entry) in patch["clusters"].as_object().unwrap() {
        for (field, value) in entry.as_object().unwrap() {
            placement["clusters"][name][field] = value.clone();
        }
    }
    serde_json::from_value(placement).unwrap()
}

async fn status(federation: &SimFederation) -> FederatedReplicaSetStatus {
    serde_json::from_value(federation.frs("web").await["status"].clone()).unwrap()
}

fn desired(status: &FederatedReplicaSetStatus) -> Desired {
    let clusters = status.clusters.iter();
    let desired = clusters.map(|cluster| (cluster.name.clone(), cluster.desired_replicas));
    desired.filter(|(_, replicas)| *replicas > 0).collect()
}

/// Replicas that each member runs at most.
fn limits(spec: &SimFederationSpec) -> BTreeMap<String, i32> {
    let limit = |member: &SimMemberSpec| {
        let pods = u32::try_from(member.nodes).unwrap() * member.pods_per_node;
        (member.name.clone(), i32::try_from(pods).unwrap())
    };
    spec.members.iter().map(limit).collect()
}

/// Whether the plan relies on capacity that a cluster does not have, without having shown that.
fn counts_on_hidden_limits(planned: &Desired, limits: &BTreeMap<String, i32>) -> bool {
    planned
        .iter()
        .any(|(name, replicas)| *replicas > limits[name])
}

#[test]
fn f20_a_plan_is_what_the_controller_then_does() {
    let (mut compared, mut changed) = (0, 0);
    for seed in seeds() {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(async {
                let mut random = StdRng::seed_from_u64(seed);
                let spec = SimFederationSpec {
                    members: (0..random.random_range(2..=4))
                        .map(|number| SimMemberSpec {
                            name: format!("m{number}"),
                            nodes: 1,
                            pods_per_node: *[4, 8, 100, 100].choose(&mut random).unwrap(),
                        })
                        .collect(),
                    seed,
                    ..SimFederationSpec::default()
                };
                let limits = limits(&spec);
                let names: Vec<_> = limits.keys().cloned().collect();
                let federation = SimFederation::start(spec).await;
                let placement = placement(&mut random, &names);
                let replicas = random.random_range(0..30);
                federation.create(&frs("web", replicas, &placement)).await;
                tokio::time::sleep(SETTLED_AFTER).await;

                let before = status(&federation).await;
                let unchanged = plan(&federation, &Change::default()).await;
                let context = format!("FEDRS_SEED={seed}: {replicas} {placement} {limits:?}");
                assert_eq!(desired(&unchanged.status), desired(&before), "{context}");
                assert_eq!(unchanged.status.unplaced_replicas, before.unplaced_replicas);
                assert_eq!(
                    (unchanged.steps, unchanged.end),
                    (0, End::AtRest),
                    "{context}"
                );

                let change = Change::random(&mut random, &names);
                let context = format!("{context}\n{:?}\n{change:?}", desired(&before));
                let planned = plan(&federation, &change).await;
                assert_eq!(planned.end, End::AtRest, "{context}");
                change.apply(&federation).await;
                let milliseconds = random.random_range(100..20_000);
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                let halfway = plan(&federation, &Change::default()).await;
                tokio::time::sleep(SETTLED_AFTER).await;
                let after = status(&federation).await;
                if counts_on_hidden_limits(&desired(&planned.status), &limits) {
                    return;
                }
                compared += 1;
                changed += u32::from(desired(&after) != desired(&before));
                let unplaced = |status: &FederatedReplicaSetStatus| status.unplaced_replicas;
                assert_eq!(
                    (desired(&planned.status), unplaced(&planned.status)),
                    (desired(&after), unplaced(&after)),
                    "{context}\n{}",
                    federation.describe().await
                );
                if change.what_if.lost.is_empty() {
                    assert_eq!(
                        desired(&halfway.status),
                        desired(&after),
                        "after {milliseconds} ms: {context}\n{}",
                        federation.describe().await
                    );
                }
            });
    }
    println!("{compared} compared, {changed} changed");
    let all = seeds().count() as u64;
    assert!(all < 10 || compared > all / 2 && u64::from(changed) > all / 3);
}

#[tokio::test(start_paused = true)]
async fn f33_a_loss_is_planned_as_it_happens() {
    let federation = SimFederation::running(12).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    let planned = planned_as_it_happens(&federation, &Change::lose("c")).await;
    assert_eq!(planned.steps, 1, "lost replicas leave room for all at once");
    assert_eq!(desired(&planned.status).values().sum::<i32>(), 12);
}

#[tokio::test(start_paused = true)]
async fn f20_a_drain_is_planned_in_as_many_steps_as_its_surge_allows() {
    let federation = SimFederation::running(12).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    let mut change = Change::default();
    change.what_if.drained.insert("c".to_owned());
    let planned = planned_as_it_happens(&federation, &change).await;
    assert_eq!(
        (planned.steps, planned.surge),
        (2, 3),
        "three of four, then the last"
    );
}

#[tokio::test(start_paused = true)]
async fn f33_a_plan_knows_the_settings_of_the_set() {
    let federation = SimFederation::running(12).await;
    let rescheduling = json!({ "lostGracePeriodSeconds": "Never", "maxMoveSurge": 1 });
    let patch = json!({ "spec": { "rescheduling": rescheduling } });
    federation.patch("web", &patch).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    let mut change = Change::default();
    change.what_if.drained.insert("c".to_owned());
    let planned = plan(&federation, &change).await;
    assert_eq!((planned.steps, planned.surge), (4, 1), "one after another");
    let before = desired(&status(&federation).await);
    let change = Change::lose("c");
    let planned = plan(&federation, &change).await;
    change.apply(&federation).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    assert_eq!(desired(&planned.status), before, "it is never lost");
    assert_eq!(desired(&status(&federation).await), before);
}

#[tokio::test(start_paused = true)]
async fn f33_a_plan_knows_for_which_sets_a_member_is_lost() {
    for (grace, left) in [(json!(45), None), (json!("Never"), Some(&4))] {
        let federation = SimFederation::running(12).await;
        let rescheduling = json!({ "lostGracePeriodSeconds": grace });
        let patch = json!({ "spec": { "rescheduling": rescheduling } });
        federation.patch("web", &patch).await;
        tokio::time::sleep(SETTLED_AFTER).await;
        federation.member("c").faults().set_unreachable(true);
        // Lost for the one and not for others, then for others and not for the other.
        for seconds in [62, 600] {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let seen = desired(&status(&federation).await);
            assert_eq!(seen.get("c"), left, "{grace}");
            let planned = plan(&federation, &Change::default()).await;
            assert_eq!(desired(&planned.status), seen, "{grace}");
            let change = Change {
                replicas: Some(18),
                ..Change::default()
            };
            let planned = plan(&federation, &change).await;
            assert_eq!(desired(&planned.status).get("c"), left, "{grace}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s1_a_plan_knows_which_members_select_the_namespace() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let selector = json!({ "selector": { "matchLabels": { "team": "shop" } } });
    let patch = json!({ "spec": { "namespaces": selector } });
    // The controller creates the MemberCluster.
    tokio::time::sleep(SETTLED_AFTER).await;
    federation.patch_member("c", &patch).await;
    federation.create(&frs("web", 12, &even(true))).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    let labels = BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
    let none = BTreeMap::new();
    for (labels, expected) in [(Some(&labels), Some(&4)), (Some(&none), None), (None, None)] {
        let planned = plan_in(&federation, &Change::default(), labels).await;
        assert_eq!(desired(&planned.status).get("c"), expected, "{labels:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn f28_a_member_that_rejects_the_set_gets_nothing_in_a_plan() {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    let refused = RequestMatcher::all()
        .verb(Verb::Create)
        .resource("replicasets");
    let status_403 = sim_cluster::Status::new(403, "Forbidden", "not here");
    federation
        .member("a")
        .faults()
        .refuse(refused, u32::MAX, status_403);
    federation.start_controller().await;
    federation.create(&frs("web", 12, &even(true))).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    let before = desired(&status(&federation).await);
    assert_eq!(before.get("b"), Some(&6));
    assert_eq!(
        desired(&plan(&federation, &Change::default()).await.status),
        before
    );
    let mut change = Change::default();
    change.what_if.drained.insert("c".to_owned());
    planned_as_it_happens(&federation, &change).await;
}

#[tokio::test(start_paused = true)]
async fn f20_a_cluster_of_two_names_counts_once_in_a_plan() {
    let mut federation = SimFederation::running(12).await;
    federation.add_member_as("c2", "c").await;
    tokio::time::sleep(SETTLED_AFTER).await;
    let before = desired(&status(&federation).await);
    assert_eq!(
        desired(&plan(&federation, &Change::default()).await.status),
        before
    );
    let mut change = Change::default();
    change.what_if.drained.insert("b".to_owned());
    planned_as_it_happens(&federation, &change).await;
}

#[tokio::test(start_paused = true)]
async fn f33_a_loss_of_all_members_moves_nothing() {
    let federation = SimFederation::running(12).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    let mut change = Change::default();
    change.what_if.lost.extend(federation.member_names());
    let planned = plan(&federation, &change).await;
    assert_eq!((planned.end, planned.steps), (End::Disconnected, 0));
    assert_eq!(
        desired(&planned.status),
        desired(&status(&federation).await)
    );
}

#[tokio::test(start_paused = true)]
async fn f39_a_member_of_unknown_state_keeps_its_replicas_in_a_plan() {
    let federation = SimFederation::running(12).await;
    tokio::time::sleep(SETTLED_AFTER).await;
    let before = desired(&status(&federation).await);
    federation.member("c").faults().set_unreachable(true);
    // Unreachable, and not lost yet.
    tokio::time::sleep(Duration::from_secs(45)).await;
    let planned = plan(&federation, &Change::default()).await;
    assert_eq!(desired(&planned.status), before);
    let mut change = Change::default();
    change.what_if.drained.insert("b".to_owned());
    let planned = plan(&federation, &change).await;
    let expected = Desired::from([("a".to_owned(), 8), ("c".to_owned(), 4)]);
    assert_eq!(desired(&planned.status), expected);
}

#[tokio::test(start_paused = true)]
async fn f3_a_set_that_no_controller_has_seen_is_planned_from_nothing() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut stopped = federation;
    stopped.stop_controller().await;
    stopped.create(&frs("web", 6, &even(false))).await;
    let planned = plan(&stopped, &Change::default()).await;
    assert_eq!(
        desired(&planned.status).into_values().collect::<Vec<_>>(),
        [2, 2, 2]
    );
    assert_eq!(planned.steps, 1);
}
