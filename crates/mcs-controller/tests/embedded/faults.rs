//! Members that can't be reached, or lack the CRDs.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::{
    crds,
    world::{EXPORT, IMPORT, SLICES, World, until},
};

const BOTH: [(&str, &str); 2] = [("eu", "10.0.0.1"), ("us", "10.1.0.1")];

#[tokio::test(start_paused = true)]
async fn what_an_unreachable_member_exports_stays_also_after_a_restart() {
    let mut world = World::start().await;
    world.export("eu", "10.0.0.1").await;
    world.export("us", "10.1.0.1").await;
    world.until_imported("ap", &BOTH).await;
    world.cluster("eu").faults().set_unreachable(true);
    sleep(Duration::from_secs(600)).await;
    world.until_imported("ap", &BOTH).await;
    world.stop_controller().await;
    world.start_controller(&["ap", "eu", "us"]);
    sleep(Duration::from_secs(600)).await;
    world.until_imported("ap", &BOTH).await;
    // The others go on.
    world.endpoint("us", "web-2", "10.1.0.2").await;
    world
        .until_imported("ap", &[BOTH[0], BOTH[1], ("us", "10.1.0.2")])
        .await;
    // It has unexported meanwhile: known again, its endpoints go.
    world.delete("eu", EXPORT).await;
    sleep(Duration::from_secs(60)).await;
    assert!(
        world
            .imported("ap")
            .await
            .contains(&("eu".to_owned(), "10.0.0.1".to_owned()))
    );
    world.cluster("eu").faults().set_unreachable(false);
    world
        .until_imported("ap", &[BOTH[1], ("us", "10.1.0.2")])
        .await;
    world.stop_controller().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_hangs_delays_no_other() {
    let mut world = World::start().await;
    world.export("eu", "10.0.0.1").await;
    world.until_imported("us", &BOTH[..1]).await;
    world.cluster("us").faults().set_hanging(true);
    for number in 2..10 {
        let slice = format!("web-{number}");
        let address = format!("10.0.0.{number}");
        world.endpoint("eu", &slice, &address).await;
        sleep(Duration::from_secs(1)).await;
        assert!(
            world
                .imported("ap")
                .await
                .contains(&("eu".to_owned(), address))
        );
    }
    world.cluster("us").faults().set_hanging(false);
    let all = world.imported("ap").await;
    until(
        "us",
        async || world.imported("us").await,
        |found| *found == all,
    )
    .await;
    world.stop_controller().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_without_the_crds_disturbs_no_other_and_joins_when_it_has_them() {
    let mut world = World::new().await;
    for crd in crds::all() {
        let name = crd["metadata"]["name"].as_str().unwrap();
        world.delete("us", &format!("{}/{name}", crds::CRDS)).await;
    }
    sleep(Duration::from_secs(10)).await;
    world.start_controller(&["ap", "eu", "us"]);
    world.export("eu", "10.0.0.1").await;
    world.until_imported("ap", &BOTH[..1]).await;
    world.until_condition("eu", "Ready", "Exported").await;
    assert!(world.imported("us").await.is_empty());
    world.install_crds("us").await;
    world.until_imported("us", &BOTH[..1]).await;
    world.stop_controller().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_none_any_more_is_not_written_and_its_endpoints_stay() {
    let mut world = World::start().await;
    world.export("eu", "10.0.0.1").await;
    world.export("us", "10.1.0.1").await;
    for name in ["ap", "eu"] {
        world.until_imported(name, &BOTH).await;
    }
    world.members().end("eu");
    let path = format!("{SLICES}/web-1");
    let endpoints = json!([{ "addresses": ["10.1.0.9"], "conditions": { "ready": true } }]);
    world
        .patch("us", &path, &json!({ "endpoints": endpoints }))
        .await;
    world
        .until_imported("ap", &[BOTH[0], ("us", "10.1.0.9")])
        .await;
    sleep(Duration::from_secs(60)).await;
    world.until_imported("eu", &BOTH).await;
    // Nor does a controller that has never seen it.
    world.stop_controller().await;
    world.start_controller(&["ap", "us"]);
    world.delete("us", EXPORT).await;
    world.until_imported("ap", &BOTH[..1]).await;
    sleep(Duration::from_secs(60)).await;
    assert!(world.find("ap", IMPORT).await.is_some());
    world.until_imported("eu", &BOTH).await;
    world.stop_controller().await;
}
