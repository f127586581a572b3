//! Which namespaces members take, and how the controller creates them.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use fedrs_tests::{ReadyWatcher, SimFederation, SimFederationSpec, even, frs, minutes};
use serde_json::{Value, json};
use sim_cluster::kinds::{NAMESPACES, REPLICA_SETS};

const DAY: i64 = 24 * 3600;

/// A federation whose members all have Secrets.
async fn joined() -> SimFederation {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    for name in federation.member_names() {
        federation.join(&name, DAY).await;
    }
    federation.start_controller().await;
    federation
}

async fn create_namespace(federation: &SimFederation, name: &str, labels: &Value) {
    let namespace = json!({ "metadata": { "name": name, "labels": labels } });
    let created = federation.on_host("POST", "/api/v1/namespaces", &namespace);
    created.await.unwrap();
}

/// The path of the FederatedReplicaSets of `namespace`.
fn sets(namespace: &str) -> String {
    format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/federatedreplicasets")
}

/// Creates the set `web` with 6 replicas in `namespace`.
async fn create_set(federation: &SimFederation, namespace: &str) {
    let mut set = frs("web", 6, &even(true));
    set["metadata"]["namespace"] = namespace.into();
    let path = sets(namespace);
    federation.on_host("POST", &path, &set).await.unwrap();
}

/// The desired replicas of `web` in `namespace` of each member; none without a local ReplicaSet.
fn layout(federation: &SimFederation, namespace: &str) -> Vec<Option<u64>> {
    let names = federation.member_names();
    let replicas = names.iter().map(|name| {
        let set = federation
            .member(name)
            .api()
            .get(&REPLICA_SETS, namespace, "web");
        set.ok()?["spec"]["replicas"].as_u64()
    });
    replicas.collect()
}

/// The condition Placed of `web` in `namespace`: `STATUS REASON: MESSAGE`.
async fn placed(federation: &SimFederation, namespace: &str) -> String {
    let path = format!("{}/web", sets(namespace));
    let set = federation
        .on_host("GET", &path, &Value::Null)
        .await
        .unwrap();
    let conditions = set["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let Some(placed) = conditions.find(|condition| condition["type"] == "Placed") else {
        return String::new();
    };
    let text = |field: &str| placed[field].as_str().unwrap_or_default();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

async fn wait_for_layout(federation: &SimFederation, namespace: &str, expected: &[Option<u64>]) {
    let what = format!("{namespace} has {expected:?}");
    federation
        .wait_until(&what, 180, async |federation| {
            layout(federation, namespace) == expected
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s1_no_member_is_changed_in_a_system_namespace() {
    let federation = joined().await;
    create_namespace(&federation, "kube-tools", &json!({})).await;
    for namespace in ["kube-system", "kube-tools", "fedrs-system"] {
        create_set(&federation, namespace).await;
    }
    for namespace in ["kube-system", "kube-tools", "fedrs-system"] {
        let reason = "False NamespaceNotTaken";
        federation
            .wait_until(namespace, 30, async |federation| {
                placed(federation, namespace).await.starts_with(reason)
            })
            .await;
        assert_eq!(layout(&federation, namespace), [None; 3]);
    }
    let message = placed(&federation, "kube-system").await;
    assert!(
        message.ends_with("kube-system is a system namespace, in which nothing is changed"),
        "{message}"
    );
    for name in federation.member_names() {
        let namespace = federation
            .member(&name)
            .api()
            .get(&NAMESPACES, "", "kube-tools");
        assert!(namespace.is_err(), "{name}");
    }
    for namespace in ["kube-system", "kube-tools", "fedrs-system"] {
        let path = format!("{}/web", sets(namespace));
        federation
            .on_host("DELETE", &path, &Value::Null)
            .await
            .unwrap();
        federation
            .wait_until("the set is gone", 5, async |federation| {
                federation
                    .on_host("GET", &path, &Value::Null)
                    .await
                    .is_err()
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn s1_a_created_namespace_has_the_pod_security_labels_of_the_host() {
    let mut spec = SimFederationSpec::default();
    spec.config.namespaces.copy_labels = vec!["team".to_owned(), "example.com/*".to_owned()];
    let federation = SimFederation::start(spec).await;
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "baseline",
        "team": "shop",
        "team-size": "5",
        "example.com/cost": "42",
    });
    create_namespace(&federation, "shop", &labels).await;
    create_set(&federation, "shop").await;
    wait_for_layout(&federation, "shop", &[Some(2); 3]).await;
    for name in federation.member_names() {
        let namespace = federation
            .member(&name)
            .api()
            .get(&NAMESPACES, "", "shop")
            .unwrap();
        let mut labels = namespace["metadata"]["labels"].clone();
        labels
            .as_object_mut()
            .unwrap()
            .remove("kubernetes.io/metadata.name");
        let expected = json!({
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/warn": "baseline",
            "team": "shop",
            "example.com/cost": "42",
        });
        assert_eq!(labels, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn s1_where_no_namespace_is_created_others_take_the_replicas() {
    let mut spec = SimFederationSpec::default();
    spec.config.namespaces.create = false;
    let federation = SimFederation::start(spec).await;
    create_namespace(&federation, "shop", &json!({})).await;
    let namespace = json!({ "metadata": { "name": "shop" } });
    for name in ["a", "b"] {
        let created = federation.on_member(name, "POST", "/api/v1/namespaces", &namespace);
        created.await.unwrap();
    }
    create_set(&federation, "shop").await;
    wait_for_layout(&federation, "shop", &[Some(3), Some(3), None]).await;
    let path = format!("{}/web", sets("shop"));
    let set = federation
        .on_host("GET", &path, &Value::Null)
        .await
        .unwrap();
    let message = set["status"]["clusters"][2]["message"].as_str().unwrap();
    assert!(
        message.contains("namespace shop does not exist, and namespaces.create"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn s1_a_namespace_that_is_taken_off_the_list_of_a_member_drains_first() {
    let federation = SimFederation::running(12).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    let names = json!({ "spec": { "namespaces": { "names": ["shop"] } } });
    federation.patch_member("c", &names).await;
    wait_for_layout(&federation, "default", &[Some(6), Some(6), Some(0)]).await;
    watcher.assert_never_below(12);
    let all = json!({ "spec": { "namespaces": null } });
    federation.patch_member("c", &all).await;
    wait_for_layout(&federation, "default", &[Some(4); 3]).await;
    watcher.assert_never_below(12);
}

#[tokio::test(start_paused = true)]
async fn s1_a_member_takes_the_namespaces_that_its_selector_selects() {
    let federation = joined().await;
    let selector = json!({ "matchLabels": { "region": "eu" } });
    let spec = json!({ "spec": { "namespaces": { "selector": selector } } });
    for name in ["b", "c"] {
        federation.patch_member(name, &spec).await;
    }
    create_namespace(&federation, "shop", &json!({ "region": "us" })).await;
    create_set(&federation, "shop").await;
    wait_for_layout(&federation, "shop", &[Some(6), None, None]).await;
    minutes(2).await;
    assert_eq!(layout(&federation, "shop"), [Some(6), None, None]);
    let labels = json!({ "metadata": { "labels": { "region": "eu" } } });
    let path = "/api/v1/namespaces/shop";
    federation.on_host("PATCH", path, &labels).await.unwrap();
    wait_for_layout(&federation, "shop", &[Some(2); 3]).await;
    let labels = json!({ "metadata": { "labels": { "region": null } } });
    federation.on_host("PATCH", path, &labels).await.unwrap();
    wait_for_layout(&federation, "shop", &[Some(6), Some(0), Some(0)]).await;
}

/// The role of the controller's account in a namespace of a member.
fn role(namespace: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/fedrs-controller")
}

/// A federation whose member `c` has rights in `default` and `shop` only.
async fn with_rights_in_namespaces() -> SimFederation {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    for name in ["a", "b"] {
        federation.join(name, DAY).await;
    }
    let namespaces = Some(["default", "shop"].as_slice());
    federation.join_with("c", DAY, namespaces).await;
    for name in ["shop", "blog"] {
        create_namespace(&federation, name, &json!({})).await;
    }
    federation.start_controller().await;
    federation
}

#[tokio::test(start_paused = true)]
async fn s1_rights_in_some_namespaces_suffice_for_a_member_that_takes_these() {
    let federation = with_rights_in_namespaces().await;
    for namespace in ["shop", "blog"] {
        create_set(&federation, namespace).await;
    }
    federation.run(12).await;
    wait_for_layout(&federation, "shop", &[Some(2); 3]).await;
    wait_for_layout(&federation, "blog", &[Some(3), Some(3), None]).await;
    assert_eq!(layout(&federation, "default"), [Some(4); 3]);
    let condition = federation.member_condition("c", "Synced").await;
    assert!(condition.starts_with("True"), "{condition}");
    // Drift in each of them is repaired: both are watched.
    for namespace in ["shop", "default"] {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/web");
        let deleted = federation.on_member("c", "DELETE", &path, &Value::Null);
        deleted.await.unwrap();
    }
    let has_set =
        |federation: &SimFederation, namespace| layout(federation, namespace)[2] > Some(0);
    federation
        .wait_until("both sets are there again", 5, async |federation| {
            has_set(federation, "shop") && has_set(federation, "default")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s1_a_forbidden_namespace_of_a_member_concerns_its_sets_only() {
    let federation = with_rights_in_namespaces().await;
    create_set(&federation, "shop").await;
    federation.run(12).await;
    wait_for_layout(&federation, "shop", &[Some(2); 3]).await;
    federation
        .on_member("c", "DELETE", &role("shop"), &Value::Null)
        .await
        .unwrap();
    minutes(10).await;
    let condition = federation.member_condition("c", "Synced").await;
    assert!(condition.starts_with("False Stale"), "{condition}");
    assert!(condition.contains("in namespace shop"), "{condition}");
    let patch = json!({ "spec": { "replicas": 15 } });
    federation.patch("web", &patch).await;
    let path = format!("{}/web", sets("shop"));
    federation
        .on_host("PATCH", &path, &json!({ "spec": { "replicas": 9 } }))
        .await
        .unwrap();
    wait_for_layout(&federation, "default", &[Some(5); 3]).await;
    wait_for_layout(&federation, "shop", &[Some(4), Some(3), Some(2)]).await;
}

#[tokio::test(start_paused = true)]
async fn s1_a_namespace_that_is_taken_off_is_watched_until_it_is_empty_also_after_a_restart() {
    let mut federation = with_rights_in_namespaces().await;
    federation.run(12).await;
    assert_eq!(layout(&federation, "default"), [Some(4); 3]);
    let watcher = ReadyWatcher::start(&federation, "web");
    federation.stop_controller().await;
    let names = json!({ "spec": { "namespaces": { "names": ["shop"] } } });
    federation.patch_member("c", &names).await;
    federation.start_controller().await;
    wait_for_layout(&federation, "default", &[Some(6), Some(6), Some(0)]).await;
    watcher.assert_never_below(12);
    minutes(1).await;
    // The controller no longer reads it.
    federation
        .on_member("c", "DELETE", &role("default"), &Value::Null)
        .await
        .unwrap();
    minutes(10).await;
    let condition = federation.member_condition("c", "Synced").await;
    assert!(condition.starts_with("True"), "{condition}");
    assert_eq!(
        federation.condition("web", "Ready").await.as_deref(),
        Some("True")
    );
    federation.delete("web").await;
    federation
        .wait_until("the set is deleted", 5, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn s1_an_empty_list_takes_no_namespace() {
    let federation = SimFederation::running(12).await;
    let names = json!({ "spec": { "namespaces": { "names": [] } } });
    federation.patch_member("c", &names).await;
    wait_for_layout(&federation, "default", &[Some(6), Some(6), Some(0)]).await;
    minutes(2).await;
    let condition = federation.member_condition("c", "Synced").await;
    assert!(condition.starts_with("True"), "{condition}");
}
