//! The statuses that are written on the host.

use std::{sync::Arc, time::Duration};

use discovery::write_statuses;
use kube::Client;
use serde_json::{Value, json};
use sim_cluster::SimCluster;
use tokio_util::sync::CancellationToken;

use crate::world::{SETS, World, create_pod, write};

async fn set(world: &World) -> Value {
    let client = Client::new(world.host.direct_service(), "default");
    let request = axum::http::Request::get(format!("{SETS}/web")).body(vec![]);
    client.request(request.unwrap()).await.unwrap()
}

async fn until(world: &World, expected: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..1_000 {
        let set = set(world).await;
        if expected(&set["status"]) {
            return set;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{}", set(world).await);
}

#[tokio::test(start_paused = true)]
async fn d1_the_status_follows_the_endpoints_and_is_written_only_when_it_is_another_one() {
    let world = World::start(async |[eu, _]: &[SimCluster; 2]| create_pod(eu, "a").await).await;
    let (client, cancel) = (
        Client::new(world.host.service(), "default"),
        CancellationToken::new(),
    );
    let catalog = Arc::clone(world.catalog());
    let start = || {
        let (client, catalog, cancel) =
            (client.clone(), Arc::clone(&catalog), cancel.child_token());
        tokio::spawn(async move { write_statuses(&client, &catalog, &cancel).await })
    };
    let writing = start();
    let written = until(&world, |status| status["readyEndpoints"] == 1).await;
    assert_eq!(
        written["status"]["clusters"],
        json!([{ "name": "eu", "endpoints": 1, "readyEndpoints": 1 }])
    );
    assert_eq!(
        written["status"]["observedGeneration"],
        written["metadata"]["generation"]
    );
    create_pod(&world.members[1], "b").await;
    let written = until(&world, |status| status["readyEndpoints"] == 2).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let version = |set: &Value| set["metadata"]["resourceVersion"].clone();
    assert_eq!(
        version(&set(&world).await),
        version(&written),
        "nothing changes, nothing is written"
    );
    writing.abort();
    let _writing = start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        version(&set(&world).await),
        version(&written),
        "nor by the next writer"
    );
    let path = format!("{SETS}/web");
    let ports = json!({ "spec": { "ports": [{ "name": "http", "port": "nobody" }] } });
    write(&world.host, "PATCH", &path, &ports).await;
    let written = until(&world, |status| status["readyEndpoints"] == 0).await;
    let ready = &written["status"]["conditions"][1];
    assert_eq!(
        (&ready["type"], &ready["reason"]),
        (&json!("Ready"), &json!("PortNotFound")),
        "{written}"
    );
    world.members[0].faults().set_unreachable(true);
    until(&world, |status| {
        status["conditions"][2]["type"] == "MembersStale"
    })
    .await;
}
