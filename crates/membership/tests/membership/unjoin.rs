//! Unjoin, cordon and drain, without a controller.

use membership::{
    join::JoinRequest,
    unjoin::{UnjoinMode, UnjoinRequest},
};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

use crate::{
    clusters::{NAMESPACE, wait_until},
    federation::Federation,
};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const FEDRS: &str = "fedrs.dev/v1alpha1";

/// Whether any object of the controller's ServiceAccount exists in `eu`.
fn has_account(federation: &Federation) -> bool {
    let (member, account) = (federation.member("eu"), federation.account());
    [
        member.get("v1", "ServiceAccount", NAMESPACE, &account),
        member.get(RBAC, "ClusterRole", "", &account),
        member.get(RBAC, "ClusterRoleBinding", "", &account),
        member.get(RBAC, "Role", NAMESPACE, &account),
        member.get(RBAC, "RoleBinding", NAMESPACE, &account),
    ]
    .iter()
    .any(Option::is_some)
}

fn local_set(name: &str, replicas: u32, federation: &str) -> Value {
    workload("ReplicaSet", name, replicas, federation)
}

fn workload(kind: &str, name: &str, replicas: u32, federation: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {
            "namespace": "default", "name": name,
            "labels": {
                "fedrs.dev/replica-set": name, "fedrs.dev/member-cluster": "eu",
                "fedrs.dev/federation": federation,
            },
        },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_unjoin_completes_an_interrupted_one_as_the_user() {
    let federation = Federation::joined(&["eu"]).await;
    let eu = federation.member("eu");
    eu.create(local_set("drained", 0, &federation.host_id()));
    eu.create(local_set("theirs", 0, "another"));
    eu.create(workload("Deployment", "drained", 0, &federation.host_id()));
    eu.create(workload("Deployment", "left", 1, &federation.host_id()));
    federation.host.delete(FEDRS, "MemberCluster", "", "eu");
    let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
    let outcome = outcome.succeeded().contains(&[
        "replicaset/default/drained deleted: it had no replicas",
        "deployment/default/drained deleted: it had no replicas",
        "deployment/default/left kept: it has 1 replica",
        "member  namespace/fedrs-system deleted",
        "host    secret/member-eu deleted",
        "eu is no longer a member",
    ]);
    assert_eq!(outcome.count("deleted"), 9, "{}", outcome.text);
    assert!(!has_account(&federation));
    let set = |name| eu.get("apps/v1", "ReplicaSet", "default", name);
    assert!(set("drained").is_none() && set("theirs").is_some());
    let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
    outcome.failed().contains(&["member eu not found"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_that_changes_meanwhile_is_read_again_before_its_deletion() {
    for (conflicts, is_deleted) in [(2, true), (u32::MAX, false)] {
        let federation = Federation::joined(&["eu"]).await;
        let eu = federation.member("eu");
        eu.create(local_set("web", 0, &federation.host_id()));
        federation.host.delete(FEDRS, "MemberCluster", "", "eu");
        let deletions = RequestMatcher::all()
            .verb(Verb::Delete)
            .resource("replicasets");
        let kind = eu.api().kind_of("apps/v1", "ReplicaSet").unwrap();
        let conflict = Status::conflict(&kind, "web", "the object was modified");
        eu.sim.faults().refuse(deletions, conflicts, conflict);
        let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
        if is_deleted {
            outcome.succeeded().contains(&["default/web deleted"]);
        } else {
            let failed = "failed to delete replicaset default/web";
            outcome.failed().contains(&[failed]);
        }
        let left = eu.get("apps/v1", "ReplicaSet", "default", "web");
        assert_eq!(left.is_none(), is_deleted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_account_deletes_itself_without_a_kubeconfig_of_the_member() {
    let federation = Federation::joined(&["eu"]).await;
    federation.host.delete(FEDRS, "MemberCluster", "", "eu");
    let outcome = federation.unjoin("eu", UnjoinMode::Drain).await;
    outcome.succeeded().contains(&[
        "clusterrole/fedrs-controller-",
        "namespace/fedrs-system kept",
    ]);
    wait_until("the dependents of the ClusterRole are deleted", || {
        !has_account(&federation)
    })
    .await;
    assert!(federation.host.stored_kubeconfig("eu").is_none());
    // With a kubeconfig, a repeated unjoin deletes what is left.
    let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
    let outcome = outcome.succeeded();
    outcome.contains(&["member  namespace/fedrs-system deleted"]);
    let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
    let outcome = outcome.failed();
    outcome.contains(&["member eu not found", "has no objects of this host"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_member_keeps_objects_that_the_user_can_delete() {
    let federation = Federation::joined(&["eu"]).await;
    federation.host.delete(FEDRS, "MemberCluster", "", "eu");
    federation.member("eu").sim.faults().set_unreachable(true);
    let outcome = federation.unjoin("eu", UnjoinMode::Drain).await;
    outcome.succeeded().contains(&[
        "warning: member: failed to",
        "kubectl delete clusterrole fedrs-controller-",
    ]);
    assert!(federation.host.stored_kubeconfig("eu").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn force_removes_a_member_without_a_drain() {
    let federation = Federation::joined(&["eu"]).await;
    federation.member("eu").sim.faults().set_unreachable(true);
    let outcome = federation.unjoin("eu", UnjoinMode::Force).await;
    outcome.succeeded().contains(&[
        "No changes were made in the cluster eu",
        "kubectl delete clusterrole",
        "membercluster/eu deleted",
    ]);
    let host = &federation.host;
    assert!(host.member_cluster("eu").is_none() && host.stored_kubeconfig("eu").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubeconfig_of_another_cluster_is_rejected() {
    let federation = Federation::joined(&["eu", "us"]).await;
    let before = federation.contents();
    let outcome = federation.unjoin("eu", federation.as_user("us")).await;
    let outcome = outcome.failed();
    outcome.contains(&["belongs to another cluster than eu"]);
    let outcome = federation.unjoin("us", federation.as_user("eu")).await;
    let outcome = outcome.failed();
    outcome.contains(&["belongs to the member eu, not to us"]);
    assert_eq!(federation.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_other_objects_is_kept() {
    let federation = Federation::joined(&["eu"]).await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": NAMESPACE, "name": "somebodys" },
    });
    let member = federation.member("eu");
    member.create(map);
    member.create(widgets());
    wait_until("the cluster serves widgets", || {
        member.api().kind_of("example.com/v1", "Widget").is_some()
    })
    .await;
    member.create(json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "namespace": NAMESPACE, "name": "theirs" },
    }));
    federation.host.delete(FEDRS, "MemberCluster", "", "eu");
    let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
    outcome
        .succeeded()
        .contains(&["namespace/fedrs-system kept: it contains configmap/somebodys, widget/theirs"]);
}

/// A CRD of a kind that fedrs does not know.
fn widgets() -> Value {
    let schema = json!({ "type": "object" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn cordon_and_uncordon_report_what_they_change() {
    let federation = Federation::joined(&["eu"]).await;
    let spec = |field: &str| federation.host.member_cluster("eu").unwrap()["spec"][field].clone();
    for text in ["cordoned", "already cordoned"] {
        let outcome = federation.cordon("eu").await.succeeded();
        outcome.contains(&[&format!("membercluster/eu {text}")]);
        assert_eq!(spec("unschedulable"), true);
    }
    for text in ["uncordoned", "already uncordoned"] {
        let outcome = federation.uncordon("eu").await.succeeded();
        outcome.contains(&[&format!("membercluster/eu {text}")]);
        assert!(spec("unschedulable").is_null());
    }
    let outcome = federation.cordon("mars").await.failed();
    outcome.contains(&["member mars not found"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_waits_for_the_controller_and_uncordon_cancels_it() {
    let federation = Federation::joined(&["eu"]).await;
    let spec = || federation.host.member_cluster("eu").unwrap()["spec"]["drain"].clone();
    for text in ["draining", "already draining"] {
        let outcome = federation.drain("eu").await.failed();
        outcome.contains(&[
            &format!("membercluster/eu {text}"),
            "eu is not drained",
            "the controller has not observed the drain",
        ]);
        assert_eq!(spec(), true);
    }
    let outcome = federation.uncordon("eu").await.succeeded();
    outcome.contains(&["drain canceled"]);
    assert!(spec().is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_share_a_member_and_each_deletes_its_own_objects() {
    let federation = Federation::joined(&["eu", "us"]).await;
    let us = federation.member("us");
    us.install_crds();
    let request = federation.join_request("eu");
    let outcome = federation.join_to("us.yaml", request).await.failed();
    outcome.contains(&[
        "serviceaccount/fedrs-controller-",
        "host    membercluster/eu created",
    ]);
    us.delete(FEDRS, "MemberCluster", "", "eu");
    let request = UnjoinRequest {
        name: "eu".to_owned(),
        mode: federation.as_user("eu"),
        namespace: NAMESPACE.to_owned(),
    };
    let outcome = federation.unjoin_from("us.yaml", request).await;
    outcome.succeeded().contains(&[
        &format!(
            "namespace/fedrs-system kept: it contains serviceaccount/{0}, rolebinding/{0}, role/{0}",
            federation.account()
        ),
        "eu is no longer a member",
    ]);
    let outcome = federation.join("eu").await.failed();
    assert_eq!(outcome.count("unchanged"), 9, "{}", outcome.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_federations_share_a_member_and_each_deletes_its_own_objects() {
    let federation = Federation::joined(&["eu"]).await;
    let blue = |name: &str| JoinRequest {
        name: name.to_owned(),
        federation: "blue".to_owned(),
        namespace: "blue".to_owned(),
        ..federation.join_request("eu")
    };
    let outcome = federation.join_as(blue("eu")).await.failed();
    outcome.contains(&["member eu belongs to the federation without a name"]);
    let outcome = federation.join_as(blue("blue-eu")).await.failed();
    let account = format!("{}-blue", federation.account());
    outcome.contains(&[
        &format!("clusterrole/{account} created"),
        "membercluster/blue-eu created",
    ]);
    let object = federation.host.member_cluster("blue-eu").unwrap();
    assert_eq!(object["spec"]["federation"], "blue");

    federation
        .host
        .delete(FEDRS, "MemberCluster", "", "blue-eu");
    let request = UnjoinRequest {
        name: "blue-eu".to_owned(),
        mode: federation.as_user("eu"),
        namespace: "blue".to_owned(),
    };
    let outcome = federation.unjoin_from("host.yaml", request).await;
    outcome.succeeded().contains(&[
        &format!("clusterrole/{account} deleted"),
        "namespace/blue deleted",
    ]);
    let outcome = federation.join("eu").await.failed();
    assert_eq!(outcome.count("unchanged"), 9, "{}", outcome.text);
}
