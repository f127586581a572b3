//! The counts of Deployments equal a recount after any sequence of events.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Set {
        set: u8,
        owner: u8,
    },
    DeleteSet(u8),
    Pod {
        pod: u8,
        set: u8,
    },
    DeletePod(u8),
    /// A list of the ReplicaSets; the watch did not show that one of them was deleted.
    Relist {
        missed: u8,
    },
    Deployment {
        deployment: u8,
        replaced: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4u8, 0..5u8).prop_map(|(set, owner)| Step::Set { set, owner }),
        2 => (0..4u8).prop_map(Step::DeleteSet),
        4 => (0..8u8, 0..5u8).prop_map(|(pod, set)| Step::Pod { pod, set }),
        2 => (0..8u8).prop_map(Step::DeletePod),
        1 => (0..4u8).prop_map(|missed| Step::Relist { missed }),
        1 => (0..2u8, any::<bool>()).prop_map(|(deployment, replaced)| Step::Deployment { deployment, replaced }),
    ]
}

/// Two Deployments, each of which may be replaced by another one of its name; no owner; and an owner that is not known.
fn owner(owner: u8) -> Option<(&'static str, &'static str)> {
    let owners = [
        ("web", "web-0"),
        ("web", "web-1"),
        ("shop", "shop-0"),
        ("x", "x"),
    ];
    owners.get(usize::from(owner)).copied()
}

proptest! {
    #[test]
    fn counts_of_deployments_equal_a_recount_after_any_events(steps in prop::collection::vec(step(), 0..80)) {
        let mut member = Member::new();
        let mut sets: BTreeMap<u8, (u8, Value)> = BTreeMap::new();
        let mut pods: BTreeMap<u8, u8> = BTreeMap::new();
        let mut deployments = [("web", "web-0"), ("shop", "shop-0")];
        let name = |set: u8| format!("set-{set}");
        for (name, uid) in deployments {
            member.show(deployment(name, uid, 1));
        }
        for step in steps {
            match step {
                Step::Set { set: id, owner: of } => {
                    let mut object = set(&name(id), owner(of), 1);
                    member.show(object.clone());
                    object["metadata"]["resourceVersion"] = json!(member.version.to_string());
                    sets.insert(id, (of, object));
                }
                Step::DeleteSet(id) => {
                    member.delete_set(&name(id));
                    sets.remove(&id);
                }
                Step::Pod { pod: id, set } => {
                    member.show(pod(&format!("pod-{id}"), &name(set)));
                    pods.insert(id, set);
                }
                Step::DeletePod(id) => {
                    member.version += 1;
                    member.store.delete_pod(Uid::of(&format!("pod-{id}")), &member.version.to_string());
                    pods.remove(&id);
                }
                Step::Relist { missed } => {
                    sets.remove(&missed);
                    member.version += 1;
                    member.list(Watch::Workloads(LocalKind::ReplicaSet), || {
                        for (_, object) in sets.values() {
                            member.repeat(object.clone());
                        }
                    });
                }
                Step::Deployment { deployment: id, replaced } => {
                    let known = &mut deployments[usize::from(id)];
                    known.1 = match (id, replaced) {
                        (0, false) => "web-0",
                        (0, true) => "web-1",
                        _ => "shop-0",
                    };
                    let (name, uid) = *known;
                    member.show(deployment(name, uid, 1));
                }
            }
            for known in deployments {
                let of = |pod_set: &&u8| sets.get(*pod_set).is_some_and(|(of, _)| owner(*of) == Some(known));
                let expected = pods.values().filter(of).count();
                prop_assert_eq!(member.active(known.0) as usize, expected);
            }
        }
        for id in 0..4 {
            member.delete_set(&name(id));
        }
        prop_assert!(member.store.state.read().replica_sets.table.owns_nothing());
    }
}
