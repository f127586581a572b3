//! The garbage collector: background, foreground, orphans; several owners; owners of custom and cluster-wide kinds.

use serde_json::{Value, json};
use sim_cluster::Propagation;
use sim_cluster::{Object, kinds};

use crate::cluster::Cluster;

fn reference(version: &str, kind: &str, owner: &Object, block: bool) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block,
    })
}

fn config(name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}})
}

fn create(
    cluster: &Cluster,
    name: &str,
    owners: &[&Object],
    finalizers: &[&str],
    block: bool,
) -> Object {
    let owners: Vec<Value> = owners
        .iter()
        .map(|owner| reference("v1", "ConfigMap", owner, block))
        .collect();
    cluster.create(&kinds::CONFIG_MAPS, config(name, &owners, finalizers))
}

fn there(cluster: &Cluster, name: &str) -> bool {
    cluster.exists(&kinds::CONFIG_MAPS, name)
}

#[tokio::test(start_paused = true)]
async fn background_deletion_deletes_all_descendants() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_set("web", 3);
    cluster
        .until("three are ready", |c| c.ready_pods() == 3)
        .await;
    cluster.delete(&kinds::REPLICA_SETS, "web", None);
    assert!(
        !cluster.exists(&kinds::REPLICA_SETS, "web"),
        "the owner goes at once"
    );
    cluster
        .until("the pods follow", |c| c.pods().is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_deletes_the_pods_first() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_set("web", 3);
    cluster
        .until("three are ready", |c| c.ready_pods() == 3)
        .await;
    cluster.delete(&kinds::REPLICA_SETS, "web", Some(Propagation::Foreground));
    cluster
        .until("the set is gone", |c| {
            !c.exists(&kinds::REPLICA_SETS, "web")
        })
        .await;
    assert!(cluster.pods().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_blocking_dependents_are_waited_for() {
    let cluster = Cluster::new(0, 0).await;
    let owner = create(&cluster, "owner", &[], &[], false);
    create(&cluster, "blocking", &[&owner], &["example.com/hold"], true);
    create(&cluster, "other", &[&owner], &["example.com/hold"], false);
    cluster.delete(&kinds::CONFIG_MAPS, "owner", Some(Propagation::Foreground));
    let is_terminating = |c: &Cluster, name: &str| {
        !c.api.get(&kinds::CONFIG_MAPS, "default", name).unwrap()["metadata"]["deletionTimestamp"]
            .is_null()
    };
    cluster
        .until("both are terminating", |c| {
            is_terminating(c, "blocking") && is_terminating(c, "other")
        })
        .await;
    cluster.pass(600).await;
    assert!(there(&cluster, "owner"), "the blocking one holds it");
    cluster.edit(&kinds::CONFIG_MAPS, "blocking", |object| {
        object["metadata"]["finalizers"] = json!([]);
    });
    cluster
        .until("the owner is gone", |c| !there(c, "owner"))
        .await;
    assert!(there(&cluster, "other"), "nobody waits for this one");
}

#[tokio::test(start_paused = true)]
async fn foreground_without_blocking_dependents_ends_at_once() {
    let cluster = Cluster::new(0, 0).await;
    let owner = create(&cluster, "owner", &[], &[], false);
    create(&cluster, "child", &[&owner], &[], false);
    cluster.delete(&kinds::CONFIG_MAPS, "owner", Some(Propagation::Foreground));
    assert!(
        there(&cluster, "owner"),
        "the collector takes the finalizer off, not the API"
    );
    cluster
        .until("both are gone", |c| {
            !there(c, "owner") && !there(c, "child")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_removed_when_its_dependent_stops_blocking() {
    let cluster = Cluster::new(0, 0).await;
    let owner = create(&cluster, "owner", &[], &[], false);
    create(&cluster, "child", &[&owner], &["example.com/hold"], true);
    cluster.delete(&kinds::CONFIG_MAPS, "owner", Some(Propagation::Foreground));
    cluster.pass(60).await;
    assert!(there(&cluster, "owner"));
    cluster.edit(&kinds::CONFIG_MAPS, "child", |child| {
        child["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = json!(false);
    });
    cluster
        .until("the owner is gone", |c| !there(c, "owner"))
        .await;
    assert!(there(&cluster, "child"));
}

#[tokio::test(start_paused = true)]
async fn orphans_are_kept_without_the_owner_reference() {
    let cluster = Cluster::new(0, 0).await;
    let owner = create(&cluster, "owner", &[], &[], false);
    let child = create(&cluster, "child", &[&owner], &[], true);
    create(&cluster, "grandchild", &[&child], &[], true);
    cluster.delete(&kinds::CONFIG_MAPS, "owner", Some(Propagation::Orphan));
    cluster
        .until("the owner is gone", |c| !there(c, "owner"))
        .await;
    cluster.pass(60).await;
    let child = cluster
        .api
        .get(&kinds::CONFIG_MAPS, "default", "child")
        .unwrap();
    assert_eq!(child["metadata"].get("ownerReferences"), None);
    assert!(there(&cluster, "grandchild"));
}

#[tokio::test(start_paused = true)]
async fn a_dependent_with_one_existing_owner_is_kept() {
    let cluster = Cluster::new(0, 0).await;
    let (one, two) = (
        create(&cluster, "one", &[], &[], false),
        create(&cluster, "two", &[], &[], false),
    );
    create(&cluster, "child", &[&one, &two], &[], true);
    cluster.delete(&kinds::CONFIG_MAPS, "one", Some(Propagation::Foreground));
    cluster
        .until("the first is gone", |c| !there(c, "one"))
        .await;
    let child = cluster
        .api
        .get(&kinds::CONFIG_MAPS, "default", "child")
        .unwrap();
    assert_eq!(
        child["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    cluster.delete(&kinds::CONFIG_MAPS, "two", None);
    cluster
        .until("the child follows the second", |c| !there(c, "child"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_with_another_uid_does_not_exist() {
    let cluster = Cluster::new(0, 0).await;
    let owner = create(&cluster, "owner", &[], &[], false);
    let mut wrong = reference("v1", "ConfigMap", &owner, true);
    wrong["uid"] = json!("00000000-0000-4000-8000-000000000000");
    cluster.create(&kinds::CONFIG_MAPS, config("child", &[wrong], &[]));
    cluster
        .until("the child is collected", |c| !there(c, "child"))
        .await;
    assert!(there(&cluster, "owner"));
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_of_a_cycle_of_owners_completes() {
    let cluster = Cluster::new(0, 0).await;
    let one = create(&cluster, "one", &[], &[], false);
    let two = create(&cluster, "two", &[&one], &[], true);
    let back = reference("v1", "ConfigMap", &two, true);
    cluster.edit(&kinds::CONFIG_MAPS, "one", |one| {
        one["metadata"]["ownerReferences"] = json!([back]);
    });
    cluster.delete(&kinds::CONFIG_MAPS, "one", Some(Propagation::Foreground));
    cluster
        .until("both are gone", |c| !there(c, "one") && !there(c, "two"))
        .await;
}

fn widgets() -> Value {
    json!({
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_custom_owner_waits_for_a_dependent_with_a_finalizer() {
    let cluster = Cluster::new(0, 0).await;
    cluster.create(&kinds::CUSTOM_RESOURCE_DEFINITIONS, widgets());
    let widget = cluster.api.kind_of("example.org/v1", "Widget").unwrap();
    let owner = cluster.create(
        &widget,
        json!({"metadata": {"name": "w", "finalizers": ["example.org/members"]}}),
    );
    let marker = config(
        "marker",
        &[reference("example.org/v1", "Widget", &owner, true)],
        &["example.org/cascade"],
    );
    cluster.create(&kinds::CONFIG_MAPS, marker);
    cluster.delete(&widget, "w", Some(Propagation::Foreground));
    let is_terminating = |c: &Cluster| {
        !c.api.get(&kinds::CONFIG_MAPS, "default", "marker").unwrap()["metadata"]["deletionTimestamp"].is_null()
    };
    cluster
        .until("the dependent is terminating", is_terminating)
        .await;
    cluster.edit(&kinds::CONFIG_MAPS, "marker", |marker| {
        marker["metadata"]["finalizers"] = json!([]);
    });
    let finalizers =
        |c: &Cluster| c.api.get(&widget, "default", "w").unwrap()["metadata"]["finalizers"].clone();
    cluster
        .until("the collector is done", |c| {
            finalizers(c) == json!(["example.org/members"])
        })
        .await;
    cluster.edit(&widget, "w", |owner| {
        owner["metadata"]["finalizers"] = json!([]);
    });
    assert!(!cluster.exists(&widget, "w"));
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_a_kind_that_is_not_served_keeps_its_dependents() {
    let cluster = Cluster::new(0, 0).await;
    let owner = create(&cluster, "owner", &[], &[], false);
    cluster.create(
        &kinds::CONFIG_MAPS,
        config(
            "child",
            &[reference("example.org/v1", "Widget", &owner, true)],
            &[],
        ),
    );
    cluster.pass(600).await;
    assert!(there(&cluster, "child"));
    cluster.create(&kinds::CUSTOM_RESOURCE_DEFINITIONS, widgets());
    cluster
        .until("it's known to be gone", |c| !there(c, "child"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn deletion_of_a_cluster_scoped_owner_deletes_its_namespaced_dependents() {
    let cluster = Cluster::new(1, 110).await;
    let node = cluster.api.get(&kinds::NODES, "", "node-1").unwrap();
    cluster.create(
        &kinds::CONFIG_MAPS,
        config("child", &[reference("v1", "Node", &node, false)], &[]),
    );
    cluster.pass(60).await;
    assert!(there(&cluster, "child"));
    cluster.delete(&kinds::NODES, "node-1", None);
    cluster
        .until("the child is gone", |c| !there(c, "child"))
        .await;
}
