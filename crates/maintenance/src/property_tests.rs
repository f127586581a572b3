//! Whatever happens in which order: only own marks change, it settles, and then nothing is written.

use std::collections::BTreeSet;

use fedrs_api::{MaintenanceMark, annotations};
use proptest::prelude::*;
use serde_json::json;

use crate::world::World;

const MEMBERS: [&str; 2] = ["eu", "us"];
const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// Something happens to a node, to a member, or to the Maintenance.
#[derive(Clone, Copy, Debug)]
enum Event {
    Rack(usize),
    Cordon(bool),
    /// Another Maintenance marks it, or removes its mark.
    Other(bool),
    RemoveLabel,
    RemoveAnnotation,
    Pod(bool),
    Reachable(bool),
    Rejects(bool),
    Step,
    Later,
    Clusters(usize),
    End,
    Delete,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..2_usize).prop_map(Event::Rack),
        2 => any::<bool>().prop_map(Event::Cordon),
        2 => any::<bool>().prop_map(Event::Other),
        1 => Just(Event::RemoveLabel),
        1 => Just(Event::RemoveAnnotation),
        2 => any::<bool>().prop_map(Event::Pod),
        2 => any::<bool>().prop_map(Event::Reachable),
        1 => any::<bool>().prop_map(Event::Rejects),
        8 => Just(Event::Step),
        1 => Just(Event::Later),
        1 => (0..3_usize).prop_map(Event::Clusters),
        1 => Just(Event::End),
        1 => Just(Event::Delete),
    ]
}

fn apply(world: &mut World, member: &str, node: &str, event: Event) {
    let other = MaintenanceMark {
        name: "other".to_owned(),
        uid: "another".to_owned(),
        ..MaintenanceMark::default()
    };
    let annotation =
        |value| json!({ "metadata": { "annotations": { annotations::MAINTENANCE: value } } });
    match event {
        Event::Rack(rack) => {
            let rack = ["r7", "r8"][rack];
            world.edit(
                member,
                node,
                &json!({ "metadata": { "labels": { "rack": rack } } }),
            );
        }
        Event::Cordon(cordon) => {
            world.edit(
                member,
                node,
                &json!({ "spec": { "unschedulable": cordon } }),
            );
        }
        Event::Other(true) if world.node(member, node).mark().is_none() => {
            world.edit(member, node, &annotation(json!(other.to_annotation())));
        }
        Event::Other(false) if world.node(member, node).mark_of("another").is_some() => {
            world.edit(member, node, &annotation(json!(null)));
        }
        Event::Other(_) => {}
        Event::RemoveLabel => {
            let label = json!({ "metadata": { "labels": { "fedrs.dev/evict": null } } });
            world.edit(member, node, &label);
        }
        Event::RemoveAnnotation => world.edit(member, node, &annotation(json!(null))),
        Event::Pod(true) => world.put_pod(member, "web", node),
        Event::Pod(false) => world.member(member).pods.clear(),
        Event::Reachable(is) => world.member(member).is_unreachable = !is,
        Event::Rejects(rejects) => world.member(member).rejects = rejects,
        Event::Step => step(world),
        Event::Later => world.later(600),
        Event::Clusters(clusters) => {
            let clusters = [
                None,
                Some(vec!["eu".to_owned()]),
                Some(vec!["ue".to_owned()]),
            ][clusters]
                .clone();
            world.maintenance.spec.clusters = clusters;
        }
        Event::End => world.maintenance.spec.ended = true,
        Event::Delete => world.delete(),
    }
}

/// Carries out a plan. What another Maintenance has marked, and nodes that have and get no mark, stay as they are.
fn step(world: &mut World) {
    let foreign = world.marked("another");
    let before = world.members.clone();
    world.step();
    for (name, member) in &before {
        for (node, was) in &member.nodes {
            let is = &world.members[name].nodes[node];
            let id = format!("{name}/{node}");
            let own = [was, is].iter().any(|of| {
                let annotation = of["metadata"]["annotations"][annotations::MAINTENANCE].as_str();
                let mark = annotation.and_then(MaintenanceMark::parse);
                mark.is_some_and(|mark| mark.uid == "own")
            });
            assert!(
                is == was || (own && !foreign.contains(&id)),
                "{id}: {was} {is}"
            );
        }
    }
}

/// Adds the marks of which somebody has removed the label and the cordon, which only the selector finds, and removes those that are
/// whole again.
fn add_hidden(world: &World, hidden: &mut BTreeSet<String>) {
    for id in world.marked("own") {
        let (member, node) = id.split_once('/').unwrap();
        let node = world.node(member, node);
        if node.evicts().is_some() {
            hidden.remove(&id);
        } else if !node.spec.unschedulable {
            hidden.insert(id);
        }
    }
}

proptest! {
    #[test]
    fn only_own_marks_change_and_what_has_settled_writes_nothing(
        events in prop::collection::vec((0..2_usize, 0..3_usize, event()), 0..40),
    ) {
        let mut world = World::new(&json!({ "nodeSelector": { "matchLabels": { "rack": "r7" } }, "durationSeconds": 60 }));
        let mut hidden = BTreeSet::new();
        for (member, node, event) in events {
            if !world.is_gone {
                apply(&mut world, MEMBERS[member], NODES[node], event);
                add_hidden(&world, &mut hidden);
            }
        }
        for member in MEMBERS {
            world.member(member).is_unreachable = false;
            world.member(member).rejects = false;
        }
        for _ in 0..10 {
            if !world.is_gone {
                step(&mut world);
            }
        }
        let marked = world.marked("own");
        let is_over = world.is_gone || world.maintenance.spec.ended
            || world.maintenance.metadata.deletion_timestamp.is_some();
        if is_over {
            prop_assert!(marked.iter().all(|id| hidden.contains(id)), "{marked:?}");
        }
        if !world.is_gone {
            let writes = world.step();
            prop_assert!(!writes, "{:?}", world.plan());
        }
    }
}
