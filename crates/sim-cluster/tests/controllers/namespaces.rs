//! Namespaces: what new ones get, and how deleted ones are emptied.

use serde_json::{Value, json};
use sim_cluster::kinds;
use sim_cluster::{DeleteOptions, WriteOptions};

use crate::cluster::{Cluster, condition, set};

async fn with_team() -> Cluster {
    let cluster = Cluster::new(1, 110).await;
    let team = json!({"metadata": {"name": "team"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
    cluster.create(&kinds::NAMESPACES, team);
    cluster
        .until("it is furnished", |c| {
            c.api
                .get(&kinds::CONFIG_MAPS, "team", "kube-root-ca.crt")
                .is_ok()
        })
        .await;
    cluster
}

fn namespace(cluster: &Cluster) -> Option<Value> {
    cluster
        .api
        .get(&kinds::NAMESPACES, "", "team")
        .ok()
        .map(|namespace| Value::clone(&namespace))
}

#[tokio::test(start_paused = true)]
async fn a_namespace_gets_its_default_objects_again_after_they_are_deleted() {
    let cluster = with_team().await;
    assert!(
        cluster
            .api
            .get(&kinds::SERVICE_ACCOUNTS, "team", "default")
            .is_ok()
    );
    cluster
        .api
        .delete(
            &kinds::SERVICE_ACCOUNTS,
            "team",
            "default",
            &DeleteOptions::default(),
        )
        .unwrap();
    cluster
        .until("it is back", |c| {
            c.api
                .get(&kinds::SERVICE_ACCOUNTS, "team", "default")
                .is_ok()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_and_removed() {
    let cluster = with_team().await;
    let mut web = set("web", 3);
    web["metadata"]["namespace"] = json!("team");
    cluster.create(&kinds::REPLICA_SETS, web);
    cluster
        .until("three are there", |c| {
            c.api.list(&kinds::PODS, Some("team")).len() == 3
        })
        .await;
    cluster.pass(10).await;
    cluster
        .api
        .delete(&kinds::NAMESPACES, "", "team", &DeleteOptions::default())
        .unwrap();
    assert_eq!(
        namespace(&cluster).unwrap()["status"]["phase"],
        "Terminating"
    );
    cluster
        .until("it is gone", |c| namespace(c).is_none())
        .await;
    let left = cluster
        .api
        .kinds()
        .into_iter()
        .filter(|kind| kind.namespaced);
    assert_eq!(
        left.map(|kind| cluster.api.list(&kind, Some("team")).len())
            .sum::<usize>(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_reports_what_delays_its_removal() {
    let cluster = with_team().await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    cluster
        .api
        .create(&kinds::CONFIG_MAPS, "team", held, &WriteOptions::default())
        .unwrap();
    cluster
        .api
        .delete(&kinds::NAMESPACES, "", "team", &DeleteOptions::default())
        .unwrap();
    cluster.pass(600).await;
    let says = |kind: &str| condition(&namespace(&cluster).unwrap(), kind)["message"].clone();
    assert_eq!(
        says("NamespaceContentRemaining"),
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    assert_eq!(
        says("NamespaceFinalizersRemaining"),
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    );
    let free = |object: &mut Value| object["metadata"]["finalizers"] = json!([]);
    cluster
        .api
        .modify(&kinds::CONFIG_MAPS, None, "team", "held", free)
        .unwrap();
    cluster
        .until("it is gone", |c| namespace(c).is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_quota_counts_the_usage() {
    let cluster = Cluster::new(1, 110).await;
    let hard = json!({"pods": "10", "requests.cpu": "2", "count/configmaps": "5"});
    cluster.create(
        &kinds::RESOURCE_QUOTAS,
        json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}),
    );
    let used = |c: &Cluster| {
        c.api.get(&kinds::RESOURCE_QUOTAS, "default", "q").unwrap()["status"]["used"].clone()
    };
    cluster.create(&kinds::REPLICA_SETS, set("web", 3));
    let three = json!({"pods": "3", "requests.cpu": "300m", "count/configmaps": "1"});
    cluster
        .until("three are counted", |c| used(c) == three)
        .await;
    cluster.scale("web", 1);
    cluster
        .until("one is counted", |c| used(c)["pods"] == "1")
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_disruption_budget_reports_the_allowed_disruptions() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create(&kinds::REPLICA_SETS, set("web", 3));
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}});
    cluster.create(&kinds::POD_DISRUPTION_BUDGETS, budget);
    let allowed = |c: &Cluster| {
        c.api
            .get(&kinds::POD_DISRUPTION_BUDGETS, "default", "b")
            .unwrap()["status"]["disruptionsAllowed"]
            .clone()
    };
    cluster.until("one may go", |c| allowed(c) == 1).await;
    cluster.scale("web", 2);
    cluster.until("none may go", |c| allowed(c) == 0).await;
}
