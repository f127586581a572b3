//! Services from their export to their imports, and back.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::world::{EXPORT, EXPORTS, IMPORT, IMPORTS, SLICES, World, until};

const BOTH: [(&str, &str); 2] = [("eu", "10.0.0.1"), ("us", "10.1.0.1")];

async fn exported_twice() -> World {
    let world = World::start().await;
    world.export("eu", "10.0.0.1").await;
    world.export("us", "10.1.0.1").await;
    for name in ["ap", "eu", "us"] {
        world.until_imported(name, &BOTH).await;
    }
    for name in ["eu", "us"] {
        world.until_condition(name, "Valid", "Valid").await;
        world.until_condition(name, "Ready", "Exported").await;
        world.until_condition(name, "Conflict", "NoConflicts").await;
    }
    world
}

#[tokio::test(start_paused = true)]
async fn exported_services_are_imported_everywhere_and_nothing_is_written_after_that() {
    let mut world = exported_twice().await;
    let import = world.find("ap", IMPORT).await.unwrap();
    assert_eq!(
        import["spec"],
        json!({
            "type": "ClusterSetIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }],
        })
    );
    assert_eq!(
        import["status"],
        json!({ "clusters": [{ "cluster": "eu" }, { "cluster": "us" }], "endpointSliceObjects": "Present" })
    );
    sleep(Duration::from_secs(60)).await;
    world.take_writes();
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(world.take_writes(), [] as [String; 0], "nothing changes");
    world.stop_controller().await;
    world.start_controller(&["ap", "eu", "us"]);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(
        world.take_writes(),
        [] as [String; 0],
        "nor for the next leader"
    );
    world.stop_controller().await;
}

#[tokio::test(start_paused = true)]
async fn endpoints_follow_and_the_import_goes_with_the_last_export() {
    let mut world = exported_twice().await;
    world.endpoint("eu", "web-2", "10.0.0.2").await;
    world.delete("us", &format!("{SLICES}/web-1")).await;
    world
        .until_imported("ap", &[("eu", "10.0.0.1"), ("eu", "10.0.0.2")])
        .await;
    world.delete("eu", EXPORT).await;
    world.until_imported("ap", &[]).await;
    let import = world.find("ap", IMPORT).await.unwrap();
    assert_eq!(import["status"]["clusters"], json!([{ "cluster": "us" }]));
    world.take_writes();
    world.delete("us", EXPORT).await;
    for name in ["ap", "eu", "us"] {
        world.until_exists(name, IMPORT, false).await;
        world.until_imported(name, &[]).await;
    }
    // The members' own EndpointSlices are as they were.
    let slices = world.find("eu", SLICES).await.unwrap();
    assert_eq!(slices["items"].as_array().unwrap().len(), 2);
    world.stop_controller().await;
}

#[tokio::test(start_paused = true)]
async fn what_users_change_by_hand_is_put_right_and_what_others_add_stays() {
    let mut world = exported_twice().await;
    let foreign = json!({
        "metadata": { "annotations": { "example.com/derived-service": "web-1" } },
        "spec": { "ips": ["10.9.0.1"], "type": "Headless" },
    });
    world.patch("ap", IMPORT, &foreign).await;
    let import = async || world.find("ap", IMPORT).await.unwrap();
    let import = until("ap", import, |import| {
        import["spec"]["type"] == "ClusterSetIP"
    })
    .await;
    assert_eq!(import["spec"]["ips"], json!(["10.9.0.1"]));
    let annotations = &import["metadata"]["annotations"];
    assert_eq!(annotations["example.com/derived-service"], "web-1");
    // The garbage collector takes the EndpointSlices of an import that is deleted; they come back with it.
    world.delete("ap", IMPORT).await;
    world.until_exists("ap", IMPORT, true).await;
    sleep(Duration::from_secs(60)).await;
    world.until_imported("ap", &BOTH).await;
    let import = world.find("ap", IMPORT).await.unwrap();
    let slices = world.find("ap", SLICES).await.unwrap();
    for slice in slices["items"].as_array().unwrap() {
        let owner = &slice["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], import["metadata"]["uid"]);
    }
    world.stop_controller().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_appears_imports_and_one_that_is_deleted_ends() {
    let mut world = World::start().await;
    world.delete("ap", "/api/v1/namespaces/shop").await;
    world
        .until_exists("ap", "/api/v1/namespaces/shop", false)
        .await;
    world.export("eu", "10.0.0.1").await;
    world.until_condition("eu", "Ready", "Exported").await;
    assert!(world.find("ap", IMPORT).await.is_none());
    let namespace = json!({ "metadata": { "name": "shop" } });
    world.create("ap", "/api/v1/namespaces", &namespace).await;
    world.until_imported("ap", &BOTH[..1]).await;
    world.delete("ap", "/api/v1/namespaces/shop").await;
    world
        .until_exists("ap", "/api/v1/namespaces/shop", false)
        .await;
    world.stop_controller().await;
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_invalid_services_are_reported() {
    let mut world = World::start().await;
    let export = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport",
        "metadata": { "name": "web" },
    });
    world.create("eu", EXPORTS, &export).await;
    world.until_condition("eu", "Valid", "NoService").await;
    world.service("eu", &json!({})).await;
    world.until_condition("eu", "Ready", "Exported").await;
    // Times of objects are whole seconds.
    sleep(Duration::from_secs(2)).await;
    world.create("us", EXPORTS, &export).await;
    let headless = json!({ "clusterIP": "None", "ports": [{ "name": "http", "port": 81 }] });
    world.service("us", &headless).await;
    for name in ["eu", "us"] {
        world
            .until_condition(name, "Conflict", "PortConflict,TypeConflict")
            .await;
    }
    let import = world.find("ap", IMPORT).await.unwrap();
    assert_eq!(import["spec"]["type"], "ClusterSetIP");
    assert_eq!(import["spec"]["ports"][0]["port"], 80);
    world.stop_controller().await;
}

#[tokio::test(start_paused = true)]
async fn an_import_of_somebody_else_is_left() {
    let mut world = World::new().await;
    let foreign = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
        "metadata": { "name": "web" }, "spec": { "type": "Headless", "ports": [] },
    });
    world.create("ap", IMPORTS, &foreign).await;
    let before = world.find("ap", IMPORT).await;
    world.start_controller(&["ap", "eu", "us"]);
    world.export("eu", "10.0.0.1").await;
    world.until_imported("us", &BOTH[..1]).await;
    world.until_condition("eu", "Ready", "Failed").await;
    assert_eq!(world.find("ap", IMPORT).await, before);
    assert!(world.imported("ap").await.is_empty());
    world.stop_controller().await;
}
