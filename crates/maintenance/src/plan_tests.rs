//! What a Maintenance does to nodes, and what its status says.

use fedrs_api::{MaintenanceMark, annotations};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    plan::{FinalizerChange, PERIOD},
    world::{World, time},
};

fn rack() -> Value {
    json!({ "nodeSelector": { "matchLabels": { "rack": "r7" } }, "reason": "power supply" })
}

fn with(mut spec: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

fn mark(world: &World, member: &str, node: &str) -> MaintenanceMark {
    world.node(member, node).mark_of("own").unwrap()
}

#[test]
fn m9_m15_nodes_that_match_are_cordoned_labelled_and_told_until_when() {
    let mut world = World::new(&with(
        rack(),
        &json!({ "durationSeconds": 3600, "deadline": "2027-01-22T08:00:00Z" }),
    ));
    world.settle();
    assert_eq!(world.marked("own"), ["eu/n1", "eu/n2", "us/n1", "us/n2"]);
    let node = &world.members["eu"].nodes["n1"];
    assert_eq!(node["spec"]["unschedulable"], true);
    assert_eq!(node["metadata"]["labels"]["fedrs.dev/evict"], "Maintenance");
    let annotation = node["metadata"]["annotations"][annotations::MAINTENANCE].as_str();
    let written: Value = serde_json::from_str(annotation.unwrap()).unwrap();
    let expected = json!({
        "name": "rack-7", "uid": "own", "deadline": "2027-01-22T08:00:00Z",
        "until": "2027-01-15T09:00:00Z", "durationSeconds": 3600, "reason": "power supply", "wasCordoned": false,
    });
    assert_eq!(written, expected);
    let status = world.maintenance.status.clone().unwrap();
    let nodes = status.nodes;
    assert_eq!((nodes.matched, nodes.cordoned, nodes.emptied), (4, 4, 4));
    assert_eq!(world.phase(), "Ready");
    assert_eq!(world.events, ["Started", "Emptied"]);
}

#[test]
fn what_is_unknown_is_absent_from_the_mark() {
    let mut world = World::new(&json!({ "nodeSelector": { "matchLabels": { "rack": "r7" } } }));
    world.settle();
    let written: Value = serde_json::from_str(&mark(&world, "eu", "n1").to_annotation()).unwrap();
    assert_eq!(
        written,
        json!({ "name": "rack-7", "uid": "own", "wasCordoned": false })
    );
}

#[test]
fn the_finalizer_and_the_status_come_before_the_first_mark() {
    let mut world = World::new(&rack());
    let plan = world.plan();
    assert_eq!(plan.finalizer, Some(FinalizerChange::Add));
    assert!(plan.patches.is_empty());
    world.step();
    let recorded = world.maintenance.status.clone().unwrap().clusters;
    let names: Vec<_> = recorded.iter().map(|cluster| &*cluster.name).collect();
    assert_eq!(names, ["eu", "us"]);
    assert!(world.marked("own").is_empty());
    assert!(!world.plan().patches.is_empty());
}

#[rstest]
#[case::absent(None, "2027-01-15T08:00:00Z")]
#[case::past(Some("2027-01-15T07:30:00Z"), "2027-01-15T07:30:00Z")]
fn m9_until_is_counted_from_the_start_and_stays(
    #[case] start: Option<&str>,
    #[case] expected: &str,
) {
    let mut spec = with(rack(), &json!({ "durationSeconds": 60 }));
    if let Some(start) = start {
        spec["startTime"] = json!(start);
    }
    let mut world = World::new(&spec);
    world.settle();
    let until = time(expected) + jiff::SignedDuration::from_secs(60);
    assert_eq!(mark(&world, "eu", "n1").until.unwrap().0, until);
    world.later(3600);
    // Of a status that was lost, too.
    world.maintenance.status = None;
    world.put_node("us", "n4", &json!({ "rack": "r7" }), false);
    world.settle();
    for (member, node) in [("eu", "n1"), ("us", "n4")] {
        assert_eq!(mark(&world, member, node).until.unwrap().0, until);
    }
}

#[test]
fn nothing_is_marked_before_its_time() {
    let mut world = World::new(&with(
        rack(),
        &json!({ "startTime": "2027-01-15T08:00:30Z" }),
    ));
    world.settle();
    assert_eq!(world.phase(), "Scheduled");
    assert_eq!(world.maintenance.status.as_ref().unwrap().nodes.matched, 4);
    assert!(world.marked("own").is_empty());
    assert!(world.maintenance.metadata.finalizers.is_none());
    assert_eq!(world.plan().next.unwrap().as_secs(), 30);
    world.later(30);
    world.settle();
    assert_eq!(world.marked("own").len(), 4);
    // A clock that goes back ends nothing.
    world.later(-20);
    assert!(!world.step());
    // Another time does.
    world.maintenance.spec.start_time =
        serde_json::from_value(json!("2027-01-16T08:00:00Z")).unwrap();
    world.settle();
    assert_eq!(world.phase(), "Scheduled");
    assert!(world.marked("own").is_empty());
}

#[rstest]
#[case::ended(false)]
#[case::deleted(true)]
fn at_its_end_only_own_marks_go_and_what_was_cordoned_stays(#[case] is_deleted: bool) {
    let mut world = World::new(&rack());
    world.put_node("eu", "n2", &json!({ "rack": "r7" }), true);
    let other = MaintenanceMark {
        name: "other".to_owned(),
        uid: "another".to_owned(),
        ..MaintenanceMark::default()
    };
    let annotation = json!({ annotations::MAINTENANCE: other.to_annotation() });
    world.edit(
        "us",
        "n1",
        &json!({
            "metadata": { "annotations": annotation, "labels": { "fedrs.dev/evict": "Maintenance" } },
            "spec": { "unschedulable": true },
        }),
    );
    world.settle();
    assert_eq!(world.marked("own"), ["eu/n1", "eu/n2", "us/n2"]);
    assert_eq!(
        world.condition("NodesHeld"),
        "True MarkedByAnother: nodes have the mark of another Maintenance, and are left to it: us/n1 (other)"
    );
    assert_eq!(world.phase(), "Draining", "a node is not its own");
    if is_deleted {
        world.delete();
    } else {
        world.maintenance.spec.ended = true;
    }
    world.settle();
    assert!(world.marked("own").is_empty());
    assert_eq!(world.marked("another"), ["us/n1"]);
    assert_eq!(world.phase(), "Ended");
    let cordoned = |member, node| world.node(member, node).spec.unschedulable;
    assert!(!cordoned("eu", "n1"));
    assert!(cordoned("eu", "n2"), "it was cordoned before");
    assert!(cordoned("us", "n1"));
    assert_eq!(world.node("eu", "n1").evicts(), None);
    assert_eq!(world.is_gone, is_deleted);
    assert!(world.maintenance.metadata.finalizers.is_none());
    // Nothing is asked of members any more.
    assert_eq!(world.plan().next, None);
    assert_eq!(world.events, ["Started", "Ended"]);
}

#[test]
fn nodes_that_no_longer_match_lose_their_marks() {
    let mut world = World::new(&rack());
    world.settle();
    world.edit(
        "eu",
        "n1",
        &json!({ "metadata": { "labels": { "rack": "r8" } } }),
    );
    world.settle();
    assert_eq!(world.marked("own"), ["eu/n2", "us/n1", "us/n2"]);
    assert!(!world.node("eu", "n1").spec.unschedulable);
    world.maintenance.spec.clusters = Some(vec!["eu".to_owned()]);
    world.settle();
    assert_eq!(world.marked("own"), ["eu/n2"]);
    let clusters = world.maintenance.status.unwrap().clusters;
    assert_eq!(clusters.len(), 1);
}

/// Without its label, or its cordon, a mark is found by the other one.
#[rstest]
#[case::label(json!({ "metadata": { "labels": { "fedrs.dev/evict": null } } }))]
#[case::cordon(json!({ "spec": { "unschedulable": false } }))]
fn m9_a_damaged_mark_of_a_node_that_no_longer_matches_is_removed(
    #[case] damage: Value,
    #[values(false, true)] is_seen_between: bool,
    #[values(false, true)] ends: bool,
) {
    let mut world = World::new(&with(rack(), &json!({ "clusters": ["eu"] })));
    world.put_node("eu", "n2", &json!({ "rack": "r8" }), false);
    world.settle();
    assert_eq!(world.marked("own"), ["eu/n1"]);
    world.edit("eu", "n1", &damage);
    if is_seen_between {
        // The status is written, and the mark is not.
        world.member("eu").rejects = true;
        world.step();
        world.member("eu").rejects = false;
    }
    world.edit(
        "eu",
        "n1",
        &json!({ "metadata": { "labels": { "rack": "r8" } } }),
    );
    world.maintenance.spec.ended = ends;
    world.settle();
    assert!(world.marked("own").is_empty());
    let node = world.node("eu", "n1");
    assert_eq!((node.evicts(), node.spec.unschedulable), (None, false));
}

#[test]
fn a_mark_that_somebody_damages_is_repaired() {
    let mut world = World::new(&rack());
    world.settle();
    for damage in [
        json!({ "spec": { "unschedulable": false } }),
        json!({ "metadata": { "labels": { "fedrs.dev/evict": null } } }),
        json!({ "metadata": { "labels": { "fedrs.dev/evict": "false" } } }),
        json!({ "metadata": { "annotations": { annotations::MAINTENANCE: "{" } } }),
    ] {
        world.edit("eu", "n1", &damage);
        assert!(world.step(), "{damage}");
        world.settle();
        assert_eq!(world.phase(), "Ready");
    }
    assert!(
        mark(&world, "eu", "n1").was_cordoned,
        "its own mark was lost"
    );
}

/// Who asks more strongly than a Maintenance is not overruled, and what is theirs stays.
#[test]
fn another_request_to_evict_stays() {
    let mut world = World::new(&rack());
    let label = json!({ "metadata": { "labels": { "fedrs.dev/evict": "Involuntary" } } });
    world.edit("eu", "n1", &label);
    world.settle();
    assert_eq!(world.node("eu", "n1").evicts(), Some("Involuntary"));
    world.maintenance.spec.ended = true;
    world.settle();
    assert_eq!(world.node("eu", "n1").evicts(), Some("Involuntary"));
    assert!(world.marked("own").is_empty());
}

#[test]
fn m15_the_status_shows_who_blocks_by_the_first_deadline() {
    let mut world = World::new(&rack());
    for number in 0..30_u32 {
        let name = format!("web-{number:02}");
        world.put_pod("eu", &name, "n1");
        let day = 30 - number % 28;
        let request = json!({
            "metadata": { "namespace": "shop", "name": name },
            "spec": { "podName": name },
            "status": {
                "phase": "WaitingForBudget", "message": "the budget", "node": "n1",
                "deadline": format!("2027-01-{day:02}T08:00:00Z"),
            },
        });
        world.member("eu").requests.push(request);
    }
    // Its pod has left.
    let gone = json!({ "metadata": { "namespace": "shop" }, "spec": { "podName": "gone" } });
    world.member("eu").requests.push(gone);
    world.settle();
    let status = world.maintenance.status.clone().unwrap();
    assert_eq!(world.phase(), "Draining");
    assert_eq!((status.nodes.cordoned, status.nodes.emptied), (4, 3));
    assert_eq!(status.clusters[0].pods_left, 30);
    assert_eq!((status.blocking.len(), status.blocking_total), (20, 30));
    let first = &status.blocking[0];
    assert_eq!(
        (&*first.pod, &*first.node, &*first.cluster),
        ("web-27", "n1", "eu")
    );
    assert_eq!(first.message, "the budget");
    let deadlines: Vec<_> = status
        .blocking
        .iter()
        .map(|pod| pod.deadline.as_ref().unwrap().0)
        .collect();
    assert!(deadlines.is_sorted(), "{deadlines:?}");
    world.member("eu").pods.clear();
    world.settle();
    assert_eq!(world.phase(), "Ready");
    assert_eq!(world.maintenance.status.unwrap().blocking_total, 0);
}

#[rstest]
#[case::no_node(json!({ "nodeSelector": { "matchLabels": { "rack": "r9" } } }), "NodesFound",
    "False NoNodes: spec.nodeSelector matches no node of the clusters")]
#[case::no_member(json!({ "clusters": ["eu", "ue"], "nodeSelector": {} }), "Accepted",
    "False UnknownCluster: spec.clusters[1]: there is no member ue")]
#[case::selector(json!({ "nodeSelector": { "matchLabels": { "a b": "c" } } }), "Accepted",
    "False InvalidSpec: spec.nodeSelector.matchLabels[a b]: is not a valid label key")]
#[case::operator(json!({ "nodeSelector": { "matchExpressions": [{ "key": "a", "operator": "Is" }] } }), "Accepted",
    "False InvalidSpec: spec.nodeSelector.matchExpressions[0].operator: \"Is\" is none of In, NotIn, Exists and DoesNotExist")]
#[case::everything(json!({ "nodeSelector": {} }), "Accepted",
    "False InvalidSpec: spec.nodeSelector: must not be empty without clusters: it would select all nodes of all clusters")]
fn bad_input_is_a_condition_with_the_field_and_marks_nothing(
    #[case] spec: Value,
    #[case] type_: &str,
    #[case] expected: &str,
) {
    let mut world = World::new(&spec);
    world.settle();
    assert_eq!(world.condition(type_), expected);
    assert!(world.marked("own").is_empty());
    assert_eq!(world.events.len(), if type_ == "Accepted" { 1 } else { 2 });
}

#[test]
fn an_invalid_edit_changes_no_mark_until_the_work_is_over() {
    let mut world = World::new(&rack());
    world.settle();
    world.maintenance.spec.clusters = Some(vec!["ue".to_owned()]);
    world.settle();
    assert_eq!(world.marked("own").len(), 4);
    assert_eq!(world.phase(), "Ready");
    world.maintenance.spec.ended = true;
    world.settle();
    assert!(world.marked("own").is_empty());
}

#[test]
fn all_nodes_of_named_clusters_may_be_meant() {
    let mut world = World::new(&json!({ "clusters": ["eu"], "nodeSelector": {} }));
    world.settle();
    assert_eq!(world.marked("own"), ["eu/n1", "eu/n2", "eu/n3"]);
}

#[test]
fn a_member_that_does_not_answer_is_waited_for() {
    let mut world = World::new(&rack());
    world.settle();
    world.member("us").is_unreachable = true;
    world.settle();
    assert_eq!(world.phase(), "Draining", "nobody knows what is there");
    assert_eq!(world.maintenance.status.as_ref().unwrap().nodes.cordoned, 4);
    world.delete();
    world.settle();
    assert_eq!(world.marked("own"), ["us/n1", "us/n2"]);
    assert!(!world.is_gone);
    assert_eq!(
        world.condition("MembersReachable"),
        "False MembersUnreachable: waiting for members that do not answer: us: no answer"
    );
    world.member("us").is_unreachable = false;
    world.settle();
    assert!(world.marked("own").is_empty());
    assert!(world.is_gone);
}

#[test]
fn a_forgotten_member_is_not_waited_for() {
    let mut world = World::new(&rack());
    world.settle();
    world.member("us").is_unreachable = true;
    world.delete();
    world.settle();
    assert!(!world.is_gone);
    world.members.remove("us");
    world.settle();
    assert!(world.is_gone);
    assert!(world.events.contains(&"MarksLeft"));
}

#[test]
fn a_member_that_rejects_the_marks_is_named() {
    let mut world = World::new(&rack());
    world.member("us").rejects = true;
    for _ in 0..5 {
        world.step();
    }
    assert_eq!(
        world.condition("MembersReachable"),
        "False MarksRejected: members reject changes of nodes: us: forbidden"
    );
    assert_eq!(world.marked("own"), ["eu/n1", "eu/n2"]);
    world.member("us").rejects = false;
    world.settle();
    assert_eq!(world.marked("own").len(), 4);
    assert_eq!(
        world.condition("MembersReachable"),
        "True AllReachable: all members answer"
    );
}

#[test]
fn m15_a_member_that_rejects_the_marks_is_asked_again_after_a_period() {
    let mut world = World::new(&rack());
    world.member("us").rejects = true;
    let pauses = (0..5).map(|_| {
        world.step();
        world.plan().next
    });
    let pauses: Vec<_> = pauses.map(|next| next.unwrap().as_secs()).collect();
    // The finalizer, then both members get marks.
    assert_eq!(pauses, [1, 10, 10, 10, 10]);
    world.member("us").rejects = false;
    world.step();
    assert_eq!(world.plan().next, Some(PERIOD));
    assert_eq!(world.marked("own").len(), 4);
}

#[test]
fn m15_pods_that_nobody_moves_are_counted_and_their_member_is_named() {
    let mut world = World::new(&rack());
    world.member("us").lacks_requests = true;
    world.settle();
    assert_eq!(world.phase(), "Ready");
    assert_eq!(world.condition("PodsNotAsked"), "", "no pod is left");
    // Of another rack.
    world.put_pod("us", "other", "n3");
    world.settle();
    assert_eq!(world.condition("PodsNotAsked"), "");
    for pod in ["web-1", "web-2"] {
        world.put_pod("us", pod, "n1");
    }
    world.put_pod("eu", "web-1", "n1");
    world.settle();
    assert_eq!(world.phase(), "Draining");
    assert_eq!(
        world.condition("PodsNotAsked"),
        "True NoMigrationRequests: members have no MigrationRequests, so that nobody moves their pods: use kubectl drain there, or \
         install the controller of LocalReplicaSets: us (2 pods)"
    );
    assert_eq!(world.events.last(), Some(&"PodsNotAsked"));
    world.member("us").pods.clear();
    world.settle();
    assert_eq!(world.condition("PodsNotAsked"), "");
    assert_eq!(world.phase(), "Draining", "the other member moves its pod");
    world.put_pod("us", "web-1", "n1");
    world.settle();
    assert_ne!(world.condition("PodsNotAsked"), "");
    world.maintenance.spec.ended = true;
    world.settle();
    assert_eq!(world.condition("PodsNotAsked"), "");
}
