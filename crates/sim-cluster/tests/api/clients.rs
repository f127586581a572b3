//! kube's own client against a cluster: in process on paused time, and over HTTPS.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::{Value, json};
use sim_cluster::RequestMatcher;
use sim_cluster::Verb;
use sim_cluster::{SimCluster, Status};

fn api(client: Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::default_namespaced_with(client, &resource)
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("an object")
}

fn replica_set(name: &str, replicas: i64) -> DynamicObject {
    object(
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
    )
}

fn config_map(name: &str) -> DynamicObject {
    object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))
}

async fn until_ready(sets: &Api<DynamicObject>, name: &str, replicas: i64) {
    let ready = async {
        while sets.get(name).await.expect("it exists").data["status"]["readyReplicas"]
            != json!(replicas)
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), ready)
        .await
        .expect("ready within a minute");
}

/// Runs a replica set up and down; every object of the cluster at the end, as text.
async fn run(seed: u64) -> String {
    let cluster = SimCluster::builder("one").nodes(3).seed(seed).start();
    let client = Client::new(cluster.service(), "default");
    let sets = api(client.clone(), "apps", "ReplicaSet");
    sets.create(&PostParams::default(), &replica_set("web", 7))
        .await
        .expect("created");
    until_ready(&sets, "web", 7).await;
    let patch = json!({"spec": {"replicas": 4}});
    sets.patch("web", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .expect("patched");
    until_ready(&sets, "web", 4).await;
    let mut trace = String::new();
    for kind in cluster.api().kinds() {
        for object in cluster.api().list(&kind, None) {
            trace.push_str(&object.to_string());
            trace.push('\n');
        }
    }
    cluster.stop().await;
    trace
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_cluster_byte_for_byte() {
    let first = run(1).await;
    assert!(first.contains("\"readyReplicas\":4"));
    assert_eq!(first, run(1).await);
    assert_ne!(first, run(2).await);
}

#[tokio::test(start_paused = true)]
async fn clusters_of_one_seed_have_no_uid_in_common() {
    let uids = |name: &str| {
        let cluster = SimCluster::builder(name).nodes(3).seed(1).start();
        let api = cluster.api();
        let objects = api
            .kinds()
            .into_iter()
            .flat_map(|kind| api.list(&kind, None));
        let uid = |object: Arc<Value>| object["metadata"]["uid"].as_str().map(str::to_owned);
        objects.filter_map(uid).collect::<BTreeSet<_>>()
    };
    let (one, other) = (uids("one"), uids("other"));
    assert!(
        one.len() > 10 && one.is_disjoint(&other),
        "{one:?} {other:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn faults_fire_and_are_counted() {
    let cluster = SimCluster::builder("one").start();
    let faults = cluster.faults();
    let maps = api(Client::new(cluster.service(), "default"), "", "ConfigMap");
    let create = |name: &'static str| {
        let maps = maps.clone();
        async move { maps.create(&PostParams::default(), &config_map(name)).await }
    };

    faults.refuse(
        RequestMatcher::all()
            .verb(Verb::Create)
            .resource("configmaps"),
        1,
        Status::new(503, "ServiceUnavailable", "try later"),
    );
    let refused = create("a").await.expect_err("refused");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 503));
    assert!(
        maps.get_opt("a").await.expect("an answer").is_none(),
        "refused before it took effect"
    );

    faults.lose_responses(RequestMatcher::all().verb(Verb::Create), 1);
    create("a").await.expect_err("the answer is lost");
    assert!(
        maps.get_opt("a").await.expect("an answer").is_some(),
        "it took effect"
    );

    faults.set_unreachable(true);
    maps.get("a").await.expect_err("unreachable");
    faults.set_unreachable(false);

    faults.set_hanging(true);
    let hanging = tokio::time::timeout(Duration::from_mins(10), maps.get("a")).await;
    assert!(hanging.is_err());
    faults.heal();

    faults.set_latency(Duration::from_secs(3));
    let started = tokio::time::Instant::now();
    maps.list(&ListParams::default())
        .await
        .expect("slow, but there");
    assert!(started.elapsed() >= Duration::from_secs(3));

    let counts = faults.counts();
    assert_eq!(
        (counts.refused, counts.responses_lost, counts.unreachable),
        (1, 1, 1)
    );
    assert!(counts.hung >= 1 && counts.slowed >= 1);
}

#[tokio::test(start_paused = true)]
async fn server_side_apply_keeps_to_owners() {
    let cluster = SimCluster::builder("one").start();
    let maps = api(Client::new(cluster.service(), "default"), "", "ConfigMap");
    let apply = |manager: &'static str, data: Value, force: bool| {
        let maps = maps.clone();
        async move {
            let patch = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
            let params = PatchParams {
                force,
                ..PatchParams::apply(manager)
            };
            maps.patch("a", &params, &Patch::Apply(patch)).await
        }
    };
    apply("one", json!({"x": "1", "y": "1"}), false)
        .await
        .expect("created");
    let conflict = apply("two", json!({"x": "2"}), false)
        .await
        .expect_err("owned by one");
    let kube::Error::Api(status) = conflict else {
        panic!("a refusal");
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"one\": .data.x"
    );
    apply("two", json!({"x": "2"}), true).await.expect("forced");
    let left = apply("one", json!({}), false).await.expect("given up");
    assert_eq!(left.data["data"], json!({"x": "2"}), "y had no other owner");
}

#[tokio::test]
async fn over_https_only_with_the_token() {
    let cluster = SimCluster::builder("one").nodes(1).start();
    let server = cluster.serve(None).await.expect("a port");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("one.yaml");
    server.write_kubeconfig(&path).expect("written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path)
            .expect("it exists")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let kubeconfig = kube::config::Kubeconfig::read_from(&path).expect("readable");
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
            .await
            .expect("usable");
    let client = Client::try_from(config.clone()).expect("a client");
    let nodes = Api::<DynamicObject>::all_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node")),
    );
    assert_eq!(
        nodes
            .list(&ListParams::default())
            .await
            .expect("allowed")
            .items
            .len(),
        1
    );
    let maps = api(client, "", "ConfigMap");
    maps.create(&PostParams::default(), &config_map("a"))
        .await
        .expect("allowed");
    maps.delete("a", &DeleteParams::default())
        .await
        .expect("allowed");

    let mut stranger = config;
    stranger.auth_info = kube::config::AuthInfo::default();
    stranger.default_retry = false;
    let stranger = Client::try_from(stranger).expect("a client");
    let refused = api(stranger.clone(), "", "ConfigMap")
        .get("a")
        .await
        .expect_err("no token");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    stranger
        .apiserver_version()
        .await
        .expect("the version is public");

    let started = std::time::Instant::now();
    let watch = maps
        .watch(&kube::api::WatchParams::default(), "0")
        .await
        .expect("a watch");
    server.stop().await;
    cluster.stop().await;
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "open watches don't hold it up"
    );
    drop(watch);
}
