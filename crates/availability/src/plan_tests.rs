//! What an AvailabilitySet says, and what is written in members.

use fedrs_api::DomainType;
use rstest::rstest;
use serde_json::{Value, json};

use crate::world::World;

fn settled(budget: &Value) -> World {
    let mut world = World::new(budget);
    world.settle();
    world
}

#[test]
fn a1_the_status_counts_the_pods_of_all_members() {
    let mut world = settled(&json!(1));
    let status = world.status();
    let counts = [
        status.pods,
        status.available,
        status.unreachable,
        status.budget,
        status.budget_left,
    ];
    assert_eq!(counts, [6, 6, 0, 1, 1]);
    assert_eq!(
        world.condition("Available"),
        "True WithinBudget: 0 of 6 pods unreachable, with a budget of 1"
    );
    world.set_ready("eu", "web-1", false);
    world.member("us").nodes.get_mut("n2").unwrap()["status"] = Value::Null;
    world.settle();
    assert_eq!(
        world.condition("Available"),
        "False BudgetExceeded: 2 of 6 pods unreachable, with a budget of 1"
    );
    assert_eq!(world.status().budget_left, 0);
    assert_eq!([world.lent("eu"), world.lent("us")], [0, 0]);
    world.set_ready("eu", "web-1", true);
    world.settle();
    assert_eq!(world.events, ["BudgetExceeded", "Available"]);
}

#[rstest]
#[case::too_few(2, json!(1), "False TooFewPods: 2 pods that count: at least 3 are needed")]
#[case::enough(3, json!(1), "True CanBeAvailable: 3 pods with a budget of 1")]
#[case::budget(21, json!(1), "False BudgetTooSmall: a budget of 1 is below 5% of 21 pods: 2 would do, or 5%")]
#[case::percent(21, json!("5%"), "True CanBeAvailable: 21 pods with a budget of 2")]
fn a1_the_condition_names_the_number_that_would_do(
    #[case] pods: usize,
    #[case] budget: Value,
    #[case] expected: &str,
) {
    let mut world = World::empty(&budget);
    for pod in 0..pods {
        world.put_pod("eu", &format!("web-{pod}"), "n1", None);
    }
    world.settle();
    assert_eq!(world.condition("Satisfiable"), expected);
    let is_satisfiable = expected.starts_with("True");
    assert_eq!(
        world.condition("Available").starts_with("True"),
        is_satisfiable
    );
    // Nothing of a set that can't be available may be evicted.
    assert_eq!(world.lent("eu") == 0, !is_satisfiable);
}

#[test]
fn a1_pods_that_are_disabled_have_ended_or_are_being_removed_do_not_count() {
    let mut world = World::new(&json!(1));
    let pods = &mut world.member("eu").pods;
    pods.get_mut("web-1").unwrap()["metadata"]["labels"]["fedrs.dev/enabled"] = json!("false");
    pods.get_mut("web-2").unwrap()["status"]["phase"] = json!("Succeeded");
    pods.get_mut("web-3").unwrap()["metadata"]["deletionTimestamp"] = json!("now");
    assert_eq!(world.plan().status.pods, 3);
}

#[test]
fn a1_a_pod_that_is_not_there_yet_is_unreachable() {
    let mut world = settled(&json!(1));
    // The PodDisruptionBudget says how many its controllers want.
    world.member("us").pods.remove("web-1");
    let plan = world.plan();
    assert_eq!((plan.status.pods, plan.status.unreachable), (6, 1));
}

#[test]
fn a1_one_member_at_a_time_has_the_budget_and_it_goes_where_pods_have_to_leave() {
    let mut world = settled(&json!(1));
    assert_eq!([world.lent("eu"), world.lent("us")], [1, 0]);
    world.member("us").nodes.get_mut("n1").unwrap()["spec"] = json!({ "unschedulable": true });
    // Lower first: the other is raised only once that was observed.
    world.step();
    assert_eq!([world.lent("eu"), world.lent("us")], [0, 0]);
    world.step();
    assert_eq!([world.lent("eu"), world.lent("us")], [0, 0]);
    world.observe_all();
    world.settle();
    assert_eq!([world.lent("eu"), world.lent("us")], [0, 1]);
    assert!(!world.step());
}

#[test]
fn a1_pods_of_a_member_that_does_not_answer_are_unreachable() {
    let mut world = settled(&json!(4));
    assert_eq!([world.lent("eu"), world.lent("us")], [2, 2]);
    world.member("us").is_away = true;
    world.settle();
    assert_eq!(world.status().unreachable, 3);
    assert_eq!([world.lent("eu"), world.lent("us")], [1, 2]);
    assert_eq!(
        world.condition("MembersReachable"),
        "False MembersUnreachable: members do not answer, their pods count as unreachable: us: no answer"
    );
    world.member("us").is_away = false;
    world.settle();
    assert_eq!([world.lent("eu"), world.lent("us")], [2, 2]);
}

#[test]
fn a1_a_member_that_rejects_requests_is_asked_again_after_a_period() {
    let mut world = World::new(&json!(1));
    world.step();
    let next = |world: &World| world.plan().next.unwrap().as_secs();
    assert_eq!(next(&world), 1);
    let reject = |world: &mut World, members: &[&str]| {
        let of = |name: &&str| ((*name).to_owned(), "forbidden".to_owned());
        world.rejected = members.iter().map(of).collect();
    };
    reject(&mut world, &["eu"]);
    assert_eq!(next(&world), 1, "the other one has something new");
    reject(&mut world, &["eu", "us"]);
    assert_eq!(next(&world), 10);
    world.rejected.clear();
    world.settle();
    world.set.metadata.deletion_timestamp =
        serde_json::from_value(json!("2027-01-15T08:00:00Z")).unwrap();
    assert_eq!(next(&world), 1);
    reject(&mut world, &["eu", "us"]);
    assert_eq!(next(&world), 10);
}

#[test]
fn a1_pods_of_local_replica_sets_are_limited_by_their_sets() {
    let mut world = World::empty(&json!(1));
    world.put_local_set("eu", "blue");
    world.put_local_set("us", "blue");
    world.settle();
    assert_eq!(
        [world.limit("eu", "blue"), world.limit("us", "blue")],
        [1, 0]
    );
    assert_eq!(
        [world.lent("eu"), world.lent("us")],
        [Value::Null, Value::Null]
    );
    // An update waits there.
    world.member("us").sets.get_mut("blue").unwrap()["status"]["updatedReplicas"] = json!(0);
    world.settle();
    assert_eq!(
        [world.limit("eu", "blue"), world.limit("us", "blue")],
        [0, 1]
    );
    // One that is paused waits for nothing, and leaves it to those who do.
    let sets = &mut world.member("us").sets;
    sets.get_mut("blue").unwrap()["spec"]["paused"] = json!(true);
    world.member("eu").sets.get_mut("blue").unwrap()["status"]["waitingEvictions"] = json!(1);
    world.settle();
    assert_eq!(
        [world.limit("eu", "blue"), world.limit("us", "blue")],
        [1, 0]
    );
    // Beside them, other pods have nothing.
    world.put_pod("eu", "web-1", "n1", None);
    world.settle();
    assert_eq!(
        world.condition("EvictionsNotLimited"),
        "True MixedControllers: pods beside those of LocalReplicaSets have no PodDisruptionBudget: eu"
    );
}

#[test]
fn a1_there_is_no_second_pod_disruption_budget() {
    let mut world = settled(&json!(1));
    let other = json!({
        "metadata": { "name": "mine", "uid": "mine", "resourceVersion": "1" },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } },
    });
    world.member("eu").budgets.insert("mine".to_owned(), other);
    world.settle();
    assert_eq!(world.lent("eu"), Value::Null);
    assert_eq!(
        world.condition("EvictionsNotLimited"),
        "True OtherDisruptionBudget: PodDisruptionBudgets of others match the pods: eu/mine"
    );
    // It may grant one.
    assert_eq!(world.lent("us"), 0);
    world.member("eu").budgets.remove("mine");
    world.settle();
    assert_eq!(world.condition("EvictionsNotLimited"), "");
    assert!(world.lent("eu").is_number());
}

#[test]
fn a1_what_others_change_is_restored() {
    let mut world = settled(&json!(1));
    let budget = world.member("eu").budgets.get_mut("avset-web").unwrap();
    budget["spec"]["maxUnavailable"] = json!(3);
    world.settle();
    assert_eq!([world.lent("eu"), world.lent("us")], [1, 0]);
    let budget = world.member("us").budgets.get_mut("avset-web").unwrap();
    budget["spec"]["selector"] = json!({});
    world.settle();
    let selector = &world.members["us"].budgets["avset-web"]["spec"]["selector"];
    assert_eq!(selector["matchLabels"]["app"], "web");
    world.member("us").budgets.clear();
    world.settle();
    assert_eq!([world.lent("eu"), world.lent("us")], [1, 0]);
}

#[test]
fn everything_is_removed_before_the_object_disappears() {
    let mut world = World::new(&json!(2));
    world.put_local_set("us", "blue");
    world.settle();
    world.set.metadata.deletion_timestamp =
        serde_json::from_value(json!("2027-01-15T08:00:00Z")).unwrap();
    world.member("us").is_away = true;
    for _ in 0..3 {
        world.step();
    }
    assert!(!world.is_gone);
    assert_eq!(world.lent("eu"), Value::Null);
    world.member("us").is_away = false;
    world.settle();
    assert!(world.is_gone);
    assert_eq!(world.limit("us", "blue"), Value::Null);
}

#[test]
fn a_cluster_that_is_no_member_any_more_is_forgotten() {
    let mut world = settled(&json!(1));
    world.members.remove("us");
    world.settle();
    assert_eq!(world.events, ["LimitsLeft"]);
    assert_eq!(world.status().clusters.len(), 1);
}

#[test]
fn an_invalid_spec_changes_nothing() {
    let mut world = settled(&json!(1));
    world.set.spec.domain_labels.rack = "a b".to_owned();
    world.settle();
    assert_eq!(
        world.condition("Accepted"),
        "False InvalidSpec: spec.domainLabels.rack: is not a valid label key"
    );
    assert_eq!([world.lent("eu"), world.lent("us")], [1, 0]);
    assert_eq!(world.events, ["NotAccepted"]);
}

#[test]
fn a2_the_status_says_which_failures_break_the_set() {
    let world = settled(&json!(2));
    let status = world.status();
    let breaking: Vec<_> = (status.domains.iter())
        .map(|of| {
            let names: Vec<_> = of.breaking.iter().map(|domain| &*domain.name).collect();
            (of.type_, names.join(" "), of.domains, of.needed)
        })
        .collect();
    let expected = [
        (DomainType::Node, String::new(), 6, 3),
        (DomainType::Rack, String::new(), 6, 3),
        (DomainType::Zone, "eu-a us-a".to_owned(), 2, 3),
        (DomainType::Cluster, "eu us".to_owned(), 2, 3),
    ];
    assert_eq!(breaking, expected);
}
