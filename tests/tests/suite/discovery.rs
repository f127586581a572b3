//! EndpointSets over all members: what is looked up follows the pods (D1, D2).

use std::{sync::Arc, time::Duration};

use discovery::{Catalog, Discovery, Lookup, SetKey};
use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use serde_json::json;

/// Starts the service for the members of the scenario, and an EndpointSet `web` of its set `web`.
async fn start(env: &TestEnvironment) -> Discovery {
    let set = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": "web" },
        "spec": { "source": { "federatedDeployment": "web" } },
    });
    let namespace = env.namespace();
    let path = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/endpointsets");
    env.on_host("POST", &path, &set).await.unwrap();
    let (host, members) = env.clients();
    let mut discovery = Discovery::start(host, Duration::from_secs(30));
    for (name, client) in members {
        discovery.set_member(name, client);
    }
    discovery.members_known();
    discovery
}

/// The endpoints that new requests may be sent to; none while nothing is answered.
fn ready(catalog: &Catalog, env: &TestEnvironment) -> Option<usize> {
    match catalog.lookup(&SetKey::new(env.namespace(), "web")) {
        Lookup::Found(snapshot) => {
            let endpoints = snapshot.endpoints.iter();
            let ready = endpoints.filter(|one| one.is_serving(&snapshot) && !one.is_terminating());
            Some(ready.count())
        }
        _ => None,
    }
}

/// Waits until as many are ready. Returns the fewest on the way, seen every few milliseconds.
async fn until_ready(catalog: &Catalog, env: &TestEnvironment, count: usize) -> usize {
    let fewest = std::cell::Cell::new(usize::MAX);
    env.wait_until("the endpoints are ready", 120, async |env| {
        let ready = ready(catalog, env);
        fewest.set(fewest.get().min(ready.unwrap_or(0)));
        ready == Some(count) && env.is_settled("web").await
    })
    .await;
    fewest.get()
}

pub(crate) async fn d2_endpoints_follow_a_rollout_and_a_scale_down(env: &mut TestEnvironment) {
    let mut set = frs("web", 9, &even(true));
    set["spec"]["strategy"] = json!({ "rollingUpdate": { "maxUnavailable": 2, "maxSurge": 0 } });
    env.run(&set).await;
    let discovery = start(env).await;
    let catalog = Arc::clone(discovery.catalog());
    env.wait_until("all replicas are endpoints", 30, async |env| {
        ready(&catalog, env) == Some(9)
    })
    .await;

    let containers = json!([{ "name": "main", "image": "registry.example/main:2" }]);
    let template = json!({ "spec": { "containers": containers } });
    env.patch("web", &json!({ "spec": { "template": template } }))
        .await;
    env.wait_until("the rollout has begun", 60, async |env| {
        !env.is_settled("web").await
    })
    .await;
    let fewest = until_ready(&catalog, env, 9).await;
    assert!(fewest >= 7, "{fewest} of 9 endpoints");

    env.patch("web", &json!({ "spec": { "replicas": 4 } }))
        .await;
    let fewest = until_ready(&catalog, env, 4).await;
    assert!(fewest >= 4, "{fewest} of 4 endpoints");
    discovery.stop().await;
}
