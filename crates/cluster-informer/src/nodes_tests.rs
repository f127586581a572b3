//! What the nodes of a member mean for their pods.

use serde_json::json;

use super::*;

fn node(name: &str, ready: &str) -> NodeObject {
    let conditions = json!([{ "type": "Ready", "status": ready }]);
    let node = json!({ "metadata": { "name": name }, "status": { "conditions": conditions } });
    serde_json::from_value(node).expect("a node")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The nodes a and b, listed ready, each with a pod.
fn nodes() -> (NodeTable, NodeId, NodeId) {
    let mut nodes = NodeTable::default();
    let (a, b) = (nodes.attach("a"), nodes.attach("b"));
    list(&mut nodes, &[("a", "True"), ("b", "True")]);
    (nodes, a, b)
}

fn list(nodes: &mut NodeTable, listed: &[(&str, &str)]) {
    nodes.begin_list();
    for (name, ready) in listed {
        nodes.apply(&node(name, ready), at(1));
    }
    nodes.end_list();
}

fn leases(times: [&str; 2]) -> HashMap<Box<str>, u64> {
    let names = ["a", "b"].map(Box::from);
    let times = times.map(|time| time.parse::<u64>().unwrap());
    names.into_iter().zip(times).collect()
}

/// A ready node with this heartbeat.
fn beating(name: &str, heartbeat: &str) -> NodeObject {
    let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat });
    let node = json!({ "metadata": { "name": name }, "status": { "conditions": [ready] } });
    serde_json::from_value(node).expect("a node")
}

#[test]
fn f33_a_node_is_not_ready_since_it_was_seen_so() {
    let (mut nodes, a, b) = nodes();
    let changed = nodes.apply(&node("a", "Unknown"), at(10));
    assert_eq!(changed, Changed::from([(a, NodeState::Ready)]));
    assert!(nodes.apply(&node("a", "False"), at(20)).is_empty());
    let since = NodeState::NotReady(UnixSeconds(10));
    assert_eq!(
        (nodes.state(Some(a)), nodes.state(Some(b))),
        (since, NodeState::Ready)
    );
    assert!(!nodes.info().none_is_ready());
    nodes.apply(&node("b", "False"), at(20));
    assert!(nodes.info().none_is_ready());
    assert_eq!(
        nodes.apply(&node("a", "True"), at(30)),
        Changed::from([(a, since)])
    );
    assert_eq!(nodes.state(None), NodeState::Ready, "a pod without a node");
}

#[test]
fn f33_after_a_return_a_node_is_confirmed_by_a_change_of_its_lease() {
    let (mut nodes, a, b) = nodes();
    nodes.begin_confirmation();
    let unconfirmed = NodeState::Unconfirmed;
    assert_eq!(
        (nodes.state(Some(a)), nodes.state(Some(b))),
        (unconfirmed, unconfirmed)
    );
    // The list shows what was stored before the outage.
    list(&mut nodes, &[("a", "True"), ("b", "True")]);
    for (times, confirmed, complete) in [
        (["1", "1"], [false, false], false),
        (["1", "1"], [false, false], false),
        (["2", "1"], [true, false], false),
        (["2", "1"], [true, false], false),
        (["3", "2"], [true, true], true),
    ] {
        let (_, is_complete) = nodes.observe_leases(&leases(times), at(5));
        let states = [a, b].map(|id| nodes.state(Some(id)) == NodeState::Ready);
        assert_eq!((states, is_complete), (confirmed, complete), "{times:?}");
    }
}

#[test]
fn f33_after_a_return_a_dead_node_is_not_waited_for_and_its_return_confirms_it() {
    let (mut nodes, a, b) = nodes();
    nodes.begin_confirmation();
    nodes.observe_leases(&leases(["1", "1"]), at(5));
    nodes.apply(&node("b", "Unknown"), at(50));
    assert_eq!(nodes.state(Some(b)), NodeState::NotReady(UnixSeconds(50)));
    assert!(nodes.observe_leases(&leases(["2", "1"]), at(55)).1);
    nodes.apply(&node("b", "True"), at(60));
    assert_eq!(
        (nodes.state(Some(a)), nodes.state(Some(b))),
        (NodeState::Ready, NodeState::Ready)
    );
    nodes.forbid();
    nodes.begin_confirmation();
    assert_eq!(
        nodes.state(Some(a)),
        NodeState::Unconfirmed,
        "perhaps they may be read now"
    );
    nodes.forbid();
    assert_eq!(
        nodes.state(Some(a)),
        NodeState::Ready,
        "nodes that may not be read say nothing"
    );
}

#[test]
fn f33_after_a_return_a_node_that_stays_silent_is_not_ready_until_it_is_heard_of() {
    let (mut nodes, a, b) = nodes();
    nodes.begin_confirmation();
    assert!(nodes.info().none_is_confirmed() && !nodes.info().none_is_ready());
    for (second, times, states, is_ready) in [
        (5, ["1", "1"], [NodeState::Unconfirmed; 2], true),
        (64, ["1", "1"], [NodeState::Unconfirmed; 2], true),
        (
            65,
            ["1", "1"],
            [NodeState::NotReady(UnixSeconds(65)); 2],
            false,
        ),
        (
            70,
            ["1", "1"],
            [NodeState::NotReady(UnixSeconds(65)); 2],
            false,
        ),
        (
            75,
            ["2", "1"],
            [NodeState::Ready, NodeState::NotReady(UnixSeconds(65))],
            true,
        ),
    ] {
        nodes.observe_leases(&leases(times), at(second));
        let seen = [a, b].map(|id| nodes.state(Some(id)));
        assert_eq!(seen, states, "{second}");
        assert_eq!(nodes.info().none_is_ready(), !is_ready, "{second}");
    }
    assert!(!nodes.info().none_is_confirmed());
}

#[test]
fn f33_after_a_return_a_node_without_a_lease_is_confirmed_by_its_heartbeat() {
    let (mut nodes, a, b) = nodes();
    for (name, heartbeat) in [("a", "1"), ("b", "1")] {
        nodes.apply(&beating(name, heartbeat), at(2));
    }
    let none = HashMap::new();
    let states = |nodes: &NodeTable| [a, b].map(|id| nodes.state(Some(id)));
    nodes.begin_confirmation();
    // The nodes died after other heartbeats than were seen before the outage.
    nodes.begin_list();
    assert!(!nodes.observe_leases(&none, at(5)).1);
    for name in ["a", "b"] {
        nodes.apply(&beating(name, "2"), at(6));
    }
    nodes.end_list();
    assert!(!nodes.observe_leases(&none, at(10)).1);
    assert_eq!(states(&nodes), [NodeState::Unconfirmed; 2]);
    nodes.apply(&beating("a", "3"), at(14));
    assert!(!nodes.observe_leases(&none, at(15)).1);
    assert_eq!(states(&nodes), [NodeState::Ready, NodeState::Unconfirmed]);
    nodes.observe_leases(&none, at(70));
    let silent = NodeState::NotReady(UnixSeconds(70));
    assert_eq!(states(&nodes), [NodeState::Ready, silent]);
    nodes.apply(&beating("b", "3"), at(74));
    assert!(nodes.observe_leases(&none, at(75)).1);
    assert_eq!(states(&nodes), [NodeState::Ready; 2]);
    // Nothing at all is heard of nodes without a heartbeat.
    nodes.begin_confirmation();
    list(&mut nodes, &[("a", "True"), ("b", "True")]);
    nodes.observe_leases(&none, at(80));
    assert_eq!(states(&nodes), [NodeState::Unconfirmed; 2]);
    nodes.observe_leases(&none, at(140));
    assert_eq!(states(&nodes), [NodeState::NotReady(UnixSeconds(140)); 2]);
}

#[test]
fn f33_nodes_that_are_not_listed_yet_are_waited_for() {
    let mut nodes = NodeTable::default();
    let a = nodes.attach("a");
    nodes.begin_confirmation();
    assert!(!nodes.observe_leases(&leases(["1", "1"]), at(5)).1);
    list(&mut nodes, &[("a", "True"), ("b", "True")]);
    assert_eq!(nodes.state(Some(a)), NodeState::Unconfirmed);
    assert!(!nodes.observe_leases(&leases(["2", "2"]), at(10)).1);
    assert!(nodes.observe_leases(&leases(["3", "3"]), at(15)).1);
}

#[test]
fn a_node_is_forgotten_with_its_last_pod() {
    let (mut nodes, a, b) = nodes();
    nodes.delete("a");
    nodes.detach(b);
    list(&mut nodes, &[]);
    assert_eq!((nodes.ids.len(), nodes.free.len()), (1, 1), "a pod names a");
    nodes.detach(a);
    assert_eq!((nodes.ids.len(), nodes.free.len()), (0, 2));
    nodes.attach("c");
    assert_eq!(nodes.slots.len(), 2);
}
