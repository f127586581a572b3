//! AvailabilitySets that select the same pods: on whose PodDisruptionBudget they lend, and how loans move from one to another (A1).

use rstest::rstest;
use serde_json::{Value, json};

use crate::world::{World, set};

/// The set `web` selects all 8 pods of both members, and `tier: front` the first two of each.
fn world(budget: u64) -> World {
    let mut world = World::empty(&json!(budget));
    for member in ["eu", "us"] {
        for number in 1..=4 {
            let tier = if number <= 2 { "front" } else { "back" };
            let labels = json!({ "app": "web", "tier": tier });
            let node = format!("n{}", number % 3 + 1);
            let name = format!("web-{number}");
            world.put_pod_with(member, &name, &node, (&labels, None));
        }
    }
    world
}

fn front(budget: u64) -> fedrs_api::AvailabilitySet {
    let labels = json!({ "app": "web", "tier": "front" });
    set("front", &labels, &json!(budget))
}

fn both(world: &World) -> [String; 2] {
    ["eu", "us"].map(|member| world.budgets(member))
}

fn cordon(world: &mut World, member: &str, node: &str, is_cordoned: bool) {
    let node = world.member(member).nodes.get_mut(node).unwrap();
    node["spec"] = json!({ "unschedulable": is_cordoned });
}

fn delete(set: &mut fedrs_api::AvailabilitySet) {
    let when = json!("2027-01-15T08:00:00Z");
    set.metadata.deletion_timestamp = serde_json::from_value(when).unwrap();
}

#[test]
fn a1_a_set_lends_by_the_one_that_contains_it_and_the_least_holds() {
    let mut world = world(4);
    world.add(front(1));
    world.settle();
    let expected = [
        "avset-web=1 (front=1, web=2)",
        "avset-web=0 (front=0, web=2)",
    ];
    assert_eq!(both(&world), expected);
    world.turn_to("front");
    assert_eq!(world.condition("EvictionsNotLimited"), "");
    let status = world.status();
    let loans = status.clusters.iter().flat_map(|cluster| &cluster.loans);
    let loans = loans.map(|loan| (&*loan.name, loan.max_unavailable));
    assert_eq!(
        loans.collect::<Vec<_>>(),
        [("avset-web", 1), ("avset-web", 0)]
    );
}

#[rstest]
#[case::by_name("a", json!({ "app": "web" }), "avset-a")]
#[case::later_by_name("x", json!({ "app": "web" }), "avset-web")]
#[case::narrower_whatever_the_name("a", json!({ "app": "web", "tier": "front" }), "avset-web")]
fn a1_of_equal_sets_the_first_by_name_has_the_budget(
    #[case] name: &str,
    #[case] labels: Value,
    #[case] expected: &str,
) {
    let mut world = world(4);
    world.settle();
    world.add(set(name, &labels, &json!(2)));
    world.settle();
    for member in ["eu", "us"] {
        let names: Vec<_> = world.members[member].budgets.keys().collect();
        assert_eq!(names, [expected]);
    }
}

#[test]
fn a1_a_loan_moves_to_a_wider_set_that_is_created_and_back_when_that_is_deleted() {
    let mut world = world(4);
    let wide = std::mem::replace(&mut world.set, front(2));
    world.settle();
    let narrow = ["avset-front=1 (front=1)", "avset-front=1 (front=1)"];
    assert_eq!(both(&world), narrow);
    world.add(wide);
    // One step at a time: there is always one that has the loan of each.
    world.turn_to("web");
    for _ in 0..2 {
        world.step();
    }
    assert_eq!(
        world.budgets("eu"),
        "avset-front=1 (front=1); avset-web=2 (web=2)"
    );
    world.turn_to("front");
    world.step();
    assert_eq!(
        world.budgets("eu"),
        "avset-front=1 (front=1); avset-web=1 (front=1, web=2)"
    );
    // Not before the member has observed it.
    assert!(!world.step());
    world.observe_all();
    world.step();
    assert_eq!(world.budgets("eu"), "avset-web=1 (front=1, web=2)");
    world.settle();
    assert_eq!(both(&world), ["avset-web=1 (front=1, web=2)"; 2]);
    // The wide one disappears, and leaves to the other what that still needs.
    world.turn_to("web");
    delete(&mut world.set);
    world.step();
    assert_eq!(world.budgets("eu"), "avset-web=1 (front=1)");
    world.step();
    assert!(world.is_gone);
    world.turn_to("front");
    world.others.clear();
    world.is_gone = false;
    world.step();
    assert_eq!(
        world.budgets("eu"),
        "avset-front=1 (front=1); avset-web=1 (front=1)"
    );
    world.observe_all();
    world.settle();
    assert_eq!(both(&world), narrow);
}

#[test]
fn a1_a_selector_changes_once_the_loans_of_sets_that_it_contained_have_moved() {
    let mut world = world(4);
    world.add(front(2));
    world.settle();
    let back = json!({ "matchLabels": { "app": "web", "tier": "back" } });
    world.set.spec.selector = serde_json::from_value(back).unwrap();
    world.step();
    assert_eq!(
        world.condition("EvictionsNotLimited"),
        "True OverlappingSets: the PodDisruptionBudget has its former selector as long as AvailabilitySets lend by it: front"
    );
    assert_eq!(world.budgets("eu"), "avset-web=1 (front=1, web=2)");
    world.settle();
    assert_eq!(
        both(&world),
        ["avset-front=1 (front=1); avset-web=2 (web=2)"; 2]
    );
    let budget = &world.members["eu"].budgets["avset-web"];
    assert_eq!(budget["spec"]["selector"]["matchLabels"]["tier"], "back");
    assert_eq!(world.condition("EvictionsNotLimited"), "");
}

#[test]
fn a1_the_loan_of_an_invalid_set_stays_and_so_do_those_on_its_budget() {
    let mut world = world(4);
    world.add(front(2));
    world.settle();
    world.set.spec.domain_labels.rack = "a b".to_owned();
    world.settle();
    assert_eq!(both(&world), ["avset-web=1 (front=1, web=2)"; 2]);
    world.turn_to("front");
    delete(&mut world.set);
    world.settle();
    assert_eq!(both(&world), ["avset-web=2 (web=2)"; 2]);
}

#[test]
fn a1_of_sets_that_only_overlap_the_second_has_none_and_is_told_what_would_do() {
    let mut world = world(4);
    world.add(set("zone", &json!({ "tier": "front" }), &json!(1)));
    world.settle();
    assert_eq!(world.condition("EvictionsNotLimited"), "");
    assert_eq!(both(&world), ["avset-web=2 (web=2)"; 2]);
    world.turn_to("zone");
    assert_eq!(
        world.condition("EvictionsNotLimited"),
        "True OverlappingSets: AvailabilitySets that select some of the pods have a PodDisruptionBudget: web; \
         merge them, or let the selector of one have all requirements of the other one"
    );
    // The order in which they were created is of no importance.
    world.add(set("all", &json!({ "ring": "x" }), &json!(1)));
    for member in ["eu", "us"] {
        let pod = world.member(member).pods.get_mut("web-1").unwrap();
        pod["metadata"]["labels"]["ring"] = json!("x");
    }
    world.settle();
    for member in ["eu", "us"] {
        assert!(world.members[member].budgets.keys().eq(["avset-all"]));
    }
}

/// Both come to be at once.
#[test]
fn a1_of_two_sets_that_have_a_budget_for_a_pod_the_second_by_name_gives_way() {
    let mut world = world(4);
    let partial = json!({ "app": "web", "ring": "x" });
    for member in ["eu", "us"] {
        let pod = world.member(member).pods.get_mut("web-1").unwrap();
        pod["metadata"]["labels"]["ring"] = json!("x");
    }
    world.set = front(2);
    world.add(set("odd", &partial, &json!(1)));
    // Each sees what was before the other one.
    let mut sent = Vec::new();
    for name in ["front", "odd"] {
        world.turn_to(name);
        world.look();
        sent.extend(world.look().1);
    }
    for (member, request) in sent {
        assert!(world.send(&member, request));
    }
    world.settle();
    for member in ["eu", "us"] {
        assert!(world.members[member].budgets.keys().eq(["avset-front"]));
    }
    world.turn_to("odd");
    assert_eq!(
        world.condition("EvictionsNotLimited"),
        "True OverlappingSets: AvailabilitySets that select some of the pods have a PodDisruptionBudget: front; \
         merge them, or let the selector of one have all requirements of the other one"
    );
}

/// Where the wide one can have none, the narrow one has its own.
#[test]
fn a1_a_set_without_a_budget_covers_nobody() {
    let mut world = world(4);
    let other = json!({
        "metadata": { "name": "mine", "uid": "mine", "resourceVersion": "1" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "tier": "back" } } },
    });
    world.add(front(2));
    world.settle();
    world.member("eu").budgets.insert("mine".to_owned(), other);
    world.settle();
    assert_eq!(both(&world)[0], "avset-front=1 (front=1); mine=null ()");
    assert_eq!(both(&world)[1], "avset-web=1 (front=1, web=3)");
    world.member("eu").budgets.remove("mine");
    world.settle();
    assert_eq!(both(&world)[0], "avset-web=1 (front=1, web=1)");
}

/// Pods that only the wide set selects wait in one member, and pods of both in the other one: each of them could hold what the other one
/// needs.
#[test]
fn a1_the_loans_of_nested_sets_meet_where_pods_wait() {
    let mut world = world(1);
    world.add(front(1));
    world.settle();
    assert_eq!(
        both(&world),
        [
            "avset-web=1 (front=1, web=1)",
            "avset-web=0 (front=0, web=0)"
        ]
    );
    // web-3 of `us` is on n1, web-1 of `eu` on n2.
    cordon(&mut world, "us", "n1", true);
    world.settle();
    assert_eq!(
        both(&world),
        [
            "avset-web=0 (front=0, web=0)",
            "avset-web=1 (front=1, web=1)"
        ]
    );
    cordon(&mut world, "eu", "n2", true);
    world.settle();
    assert_eq!(world.lent("us"), 1);
    cordon(&mut world, "us", "n1", false);
    world.settle();
    assert_eq!(
        both(&world),
        [
            "avset-web=1 (front=1, web=1)",
            "avset-web=0 (front=0, web=0)"
        ]
    );
}

/// The controller has not created it yet: which set it will be in is not known.
#[test]
fn a1_a_pod_that_is_not_there_yet_counts_in_all_sets_of_the_budget() {
    let mut world = world(4);
    world.add(front(2));
    world.settle();
    world.turn_to("front");
    let pod = world.member("eu").pods.remove("web-1").unwrap();
    let plan = world.plan();
    assert_eq!((plan.status.pods, plan.status.unreachable), (4, 1));
    // Disabled ones are there.
    world.member("eu").pods.insert("web-1".to_owned(), pod);
    let pods = &mut world.member("eu").pods;
    pods.get_mut("web-4").unwrap()["metadata"]["labels"]["fedrs.dev/enabled"] = json!("false");
    let plan = world.plan();
    assert_eq!((plan.status.pods, plan.status.unreachable), (4, 0));
}

/// A set that was removed by force has left a loan, and one of which a late write has arrived its PodDisruptionBudget.
#[test]
fn a1_loans_of_sets_that_do_not_exist_do_not_count() {
    let mut world = world(4);
    world.add(front(1));
    world.settle();
    assert_eq!(world.lent("us"), 0);
    let mut late = world.members["eu"].budgets["avset-web"].clone();
    late["metadata"]["name"] = json!("avset-front");
    late["metadata"]["labels"]["fedrs.dev/availability-set"] = json!("front");
    late["metadata"]["annotations"] = json!({});
    let budgets = &mut world.member("eu").budgets;
    budgets.insert("avset-front".to_owned(), late);
    world.others.clear();
    world.settle();
    assert_eq!(both(&world), ["avset-web=2 (web=2)"; 2]);
}

#[test]
fn a1_without_pods_a_set_lends_nothing_and_limits_nobody() {
    let mut world = world(4);
    world.add(front(1));
    world.settle();
    for pod in ["web-1", "web-2"] {
        world.member("us").pods.remove(pod);
    }
    world.observe_all();
    world.settle();
    assert_eq!(world.budgets("us"), "avset-web=2 (web=2)");
}
