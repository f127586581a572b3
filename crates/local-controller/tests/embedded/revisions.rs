//! ControllerRevisions (L2, L10).

use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

use crate::world::{World, image, seconds, text};

const REVISIONS: &str = "/apis/apps/v1/namespaces/shop/controllerrevisions";

/// `NUMBER NAME IMAGE`, in the order of the numbers.
async fn revisions(world: &World) -> Vec<(i64, String, String)> {
    let list = world.get(REVISIONS).await;
    let revision = |object: &Value| {
        let image = &object["data"]["spec"]["template"]["spec"]["containers"][0]["image"];
        let number = object["revision"].as_i64().unwrap();
        (number, text(&object["metadata"]["name"]), text(image))
    };
    let mut found: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(revision)
        .collect();
    found.sort();
    found
}

#[tokio::test(start_paused = true)]
async fn l2_each_template_is_a_revision_and_the_oldest_are_deleted() {
    let world = World::running(2, &json!({ "revisionHistoryLimit": 1 })).await;
    for version in 2..=4 {
        world.patch_set(&image(&format!("web:{version}"))).await;
        world.settle(2).await;
    }
    let found = revisions(&world).await;
    let images: Vec<_> = found.iter().map(|(_, _, image)| &**image).collect();
    assert_eq!(images, ["web:3", "web:4"]);
    let status = world.status().await;
    assert_eq!(status["updateRevision"], found[1].1);
    assert_eq!(status["currentRevision"], found[1].1);
    // Back to an earlier template: its revision is the latest again, and the pods are patched in place.
    let before = world.uids().await;
    world.patch_set(&image("web:3")).await;
    world.settle(2).await;
    let again = revisions(&world).await;
    assert_eq!(again.last().unwrap().2, "web:3");
    assert_eq!(again.last().unwrap().1, found[0].1, "the same name");
    assert_eq!(world.uids().await, before);
}

#[tokio::test(start_paused = true)]
async fn l2_the_revision_id_grows_with_each_change_of_the_spec_and_scaling_updates_none() {
    let world = World::running(2, &json!({})).await;
    let first = world.status().await;
    world.scale(3).await;
    world.settle(3).await;
    let scaled = world.status().await;
    assert!(scaled["revisionId"].as_i64() > first["revisionId"].as_i64());
    assert_eq!(scaled["updateRevision"], first["updateRevision"]);
    assert_eq!(revisions(&world).await.len(), 1);
}

/// Has the next creation of a ControllerRevision fail.
fn refuse_one(world: &World) {
    let creations = RequestMatcher::all()
        .verb(Verb::Create)
        .resource("controllerrevisions");
    let busy = Status::new(503, "ServiceUnavailable", "busy");
    world.cluster.faults().refuse(creations, 1, busy);
}

/// Pods don't wait for their revision, which is tried again although nothing else happens.
#[tokio::test(start_paused = true)]
async fn l2_a_revision_that_could_not_be_stored_is_stored_later() {
    let mut world = World::running(2, &json!({})).await;
    world.stop_controller().await;
    refuse_one(&world);
    world.patch_set(&image("web:2")).await;
    world.start_controller();
    world.settle(2).await;
    assert_eq!(revisions(&world).await.len(), 1);
    seconds(40).await;
    assert_eq!(revisions(&world).await.len(), 2);
}

/// A user returns to the template before the other one could be stored: nothing is left to try again.
#[tokio::test(start_paused = true)]
async fn l2_a_revision_that_nobody_wants_any_more_is_not_tried_again() {
    let world = World::running(2, &json!({})).await;
    refuse_one(&world);
    world.patch_set(&image("web:2")).await;
    seconds(2).await;
    assert_eq!(world.cluster.faults().counts().refused, 1);
    world.patch_set(&image("web:1")).await;
    world.settle(2).await;
    seconds(60).await;
    world.writes();
    // If it were tried without a pause, this time would never be over.
    seconds(60).await;
    assert_eq!(world.writes(), Vec::<String>::new());
    assert_eq!(revisions(&world).await.len(), 1);
}

/// Without the ControllerRevision of their template, pods are recreated: nobody knows what changes.
#[tokio::test(start_paused = true)]
async fn l12_pods_of_an_unknown_template_are_recreated() {
    let mut world = World::running(2, &json!({})).await;
    let before = world.uids().await;
    world.stop_controller().await;
    let name = revisions(&world).await.remove(0).1;
    world
        .delete(&format!("{REVISIONS}/{name}"), &json!({}))
        .await;
    world.patch_set(&image("web:2")).await;
    world.start_controller();
    world.settle(2).await;
    let after = world.uids().await;
    assert!(after.keys().eq(before.keys()));
    assert!(after.iter().all(|(name, uid)| before[name] != *uid));
}
