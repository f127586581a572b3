//! `fedrs unjoin` and `fedrs uninstall`, where there is nothing to be waited for.

use serde_json::{Value, json};

use crate::fleet::{Fleet, NAMESPACE, wait_until};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const FEDRS: &str = "fedrs.dev/v1alpha1";

/// A fleet in which `eu` is joined, as far as that goes without a controller.
async fn joined() -> Fleet {
    let fleet = Fleet::start(&["eu", "us"]).await;
    fleet.join("eu", "--timeout 0s").await.badly();
    fleet
}

/// Whether anything of the controller's account is left in `eu`.
fn is_left(fleet: &Fleet) -> bool {
    let (member, account) = (fleet.member("eu"), fleet.account());
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

fn local_set(name: &str, replicas: u32, federation: &str) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
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
async fn an_unjoin_that_was_interrupted_goes_on_with_the_members_kubeconfig() {
    let fleet = joined().await;
    let system = fleet
        .host
        .get("v1", "Namespace", "", "kube-system")
        .unwrap();
    let host_id = system["metadata"]["uid"].as_str().unwrap();
    fleet.member("eu").create(local_set("drained", 0, host_id));
    fleet.member("eu").create(local_set("theirs", 0, "another"));
    fleet.host.delete(FEDRS, "MemberCluster", "", "eu");
    let told = fleet
        .fedrs("unjoin eu --member-kubeconfig eu.yaml")
        .await
        .well();
    let told = told.telling(&[
        "replicaset/default/drained deleted: it was empty",
        "member  namespace/fedrs-system deleted",
        "host    secret/member-eu deleted",
        "eu is no longer a member",
    ]);
    assert_eq!(told.steps("deleted"), 8, "{}", told.out);
    assert!(!is_left(&fleet));
    let sets = |name| {
        fleet
            .member("eu")
            .get("apps/v1", "ReplicaSet", "default", name)
    };
    assert!(sets("drained").is_none() && sets("theirs").is_some());
    let told = fleet
        .fedrs("unjoin eu --member-kubeconfig eu.yaml")
        .await
        .badly();
    told.telling(&["there is no member eu"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_kubeconfig_the_account_takes_itself_away() {
    let fleet = joined().await;
    fleet.host.delete(FEDRS, "MemberCluster", "", "eu");
    let told = fleet.fedrs("unjoin eu").await.well();
    told.telling(&[
        "clusterrole/fedrs-controller-",
        "namespace/fedrs-system left",
    ]);
    wait_until("what the role owned is gone", || !is_left(&fleet)).await;
    assert!(fleet.stored("eu").is_none());
    // Again with one, what was left goes, too.
    let again = "unjoin eu --member-kubeconfig eu.yaml";
    let told = fleet.fedrs(again).await.well();
    told.telling(&["member  namespace/fedrs-system deleted"]);
    let told = fleet.fedrs(again).await.badly();
    told.telling(&["there is no member eu", "holds nothing of this host"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_taken_away_is_told_with_how_to() {
    let fleet = joined().await;
    fleet.host.delete(FEDRS, "MemberCluster", "", "eu");
    fleet.member("eu").sim.faults().set_unreachable(true);
    let told = fleet.fedrs("unjoin eu").await.well();
    told.telling(&[
        "warning: member: failed to",
        "kubectl delete clusterrole fedrs-controller-",
    ]);
    assert!(fleet.stored("eu").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_member_is_taken_out_by_force() {
    let fleet = joined().await;
    fleet.member("eu").sim.faults().set_unreachable(true);
    let told = fleet.fedrs("unjoin eu --force").await.well();
    told.telling(&[
        "nothing was done in eu",
        "kubectl delete clusterrole",
        "membercluster/eu deleted",
    ]);
    assert!(fleet.member_cluster("eu").is_none() && fleet.stored("eu").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_clusters_kubeconfig_is_refused() {
    let fleet = joined().await;
    let before = fleet.contents();
    let told = fleet
        .fedrs("unjoin eu --member-kubeconfig us.yaml")
        .await
        .badly();
    told.telling(&["is of another cluster than eu"]);
    let told = fleet
        .fedrs("unjoin us --member-kubeconfig eu.yaml")
        .await
        .badly();
    told.telling(&["is of another cluster than us: of eu"]);
    assert_eq!(fleet.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_in_use_is_left() {
    let fleet = joined().await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": NAMESPACE, "name": "somebodys" },
    });
    let member = fleet.member("eu");
    member.create(map);
    member.create(widgets());
    wait_until("widgets are known", || {
        member.api().kind_of("example.com/v1", "Widget").is_some()
    })
    .await;
    member.create(json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "namespace": NAMESPACE, "name": "theirs" },
    }));
    fleet.host.delete(FEDRS, "MemberCluster", "", "eu");
    let told = fleet
        .fedrs("unjoin eu --member-kubeconfig eu.yaml")
        .await
        .well();
    told.telling(&["namespace/fedrs-system left: configmap/somebodys, widget/theirs in it"]);
}

/// A kind that nobody can know beforehand.
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
async fn cordon_and_uncordon_say_what_they_changed() {
    let fleet = joined().await;
    let spec = |field: &str| fleet.member_cluster("eu").unwrap()["spec"][field].clone();
    for (command, told) in [
        ("cordon eu", "membercluster/eu cordoned"),
        ("cordon eu", "membercluster/eu is cordoned already"),
        ("uncordon eu", "membercluster/eu uncordoned"),
        ("uncordon eu", "membercluster/eu is not cordoned"),
    ] {
        fleet.fedrs(command).await.well().telling(&[told]);
        assert_eq!(spec("unschedulable") == true, command == "cordon eu");
    }
    let told = fleet.fedrs("drain eu --timeout 0s").await.badly();
    told.telling(&[
        "eu is not drained",
        "the controller to confirm that nothing is left",
    ]);
    assert_eq!(spec("drain"), true);
    fleet
        .fedrs("uncordon eu")
        .await
        .well()
        .telling(&["no longer drained"]);
    assert!(spec("drain").is_null());
    fleet
        .fedrs("cordon mars")
        .await
        .badly()
        .telling(&["there is no member mars"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_share_a_member_and_each_takes_away_its_own() {
    let fleet = joined().await;
    for crd in fedrs_api::crd::all() {
        fleet
            .member("us")
            .create(serde_json::to_value(&crd).unwrap());
    }
    let other = "--host-kubeconfig us.yaml --timeout 0s";
    let told = fleet.join("eu", other).await.badly();
    told.telling(&[
        "serviceaccount/fedrs-controller-",
        "host    membercluster/eu created",
    ]);
    fleet.member("us").delete(FEDRS, "MemberCluster", "", "eu");
    let told = fleet
        .fedrs("unjoin eu --host-kubeconfig us.yaml --member-kubeconfig eu.yaml")
        .await;
    told.well().telling(&[
        &format!(
            "namespace/fedrs-system left: serviceaccount/{0}, rolebinding/{0}, role/{0} in it",
            fleet.account()
        ),
        "eu is no longer a member",
    ]);
    let told = fleet.join("eu", "--timeout 0s").await.badly();
    assert_eq!(told.steps("unchanged"), 9, "{}", told.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_federations_of_a_host_share_a_member_and_each_takes_away_its_own() {
    let fleet = joined().await;
    let blue = "--federation blue --namespace blue --member-kubeconfig eu.yaml --timeout 0s";
    let told = fleet.fedrs(&format!("join eu {blue}")).await.badly();
    told.telling(&["the member eu is the federation without a name's"]);
    let told = fleet.fedrs(&format!("join blue-eu {blue}")).await.badly();
    let account = format!("{}-blue", fleet.account());
    told.telling(&[
        &format!("clusterrole/{account} created"),
        "membercluster/blue-eu created",
    ]);
    let object = fleet.member_cluster("blue-eu").unwrap();
    assert_eq!(object["spec"]["federation"], "blue");

    fleet.host.delete(FEDRS, "MemberCluster", "", "blue-eu");
    let told = fleet
        .fedrs("unjoin blue-eu --namespace blue --member-kubeconfig eu.yaml")
        .await
        .well();
    told.telling(&[
        &format!("clusterrole/{account} deleted"),
        "namespace/blue deleted",
    ]);
    let told = fleet.join("eu", "--timeout 0s").await.badly();
    assert_eq!(told.steps("unchanged"), 9, "{}", told.out);
}
