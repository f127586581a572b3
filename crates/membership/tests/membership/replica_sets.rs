//! The controller of LocalReplicaSets in a member, installed by join and removed by unjoin.

use fedrs_api::crd;
use membership::{join::JoinRequest, unjoin::UnjoinMode};
use serde_json::{Value, json};

use crate::{
    clusters::{Cluster, NAMESPACE, wait_until},
    federation::{Federation, Outcome},
};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const CRDS: &str = "apiextensions.k8s.io/v1";
const NAME: &str = "fedrs-replica-set-controller";
const CRD: &str = "localreplicasets.fedrs.dev";

/// The objects of the controller besides the CRD.
fn objects(member: &Cluster) -> Vec<Option<Value>> {
    vec![
        member.get("v1", "ServiceAccount", NAMESPACE, NAME),
        member.get(RBAC, "ClusterRole", "", NAME),
        member.get(RBAC, "ClusterRoleBinding", "", NAME),
        member.get(RBAC, "Role", NAMESPACE, NAME),
        member.get(RBAC, "RoleBinding", NAMESPACE, NAME),
        member.get("apps/v1", "Deployment", NAMESPACE, NAME),
    ]
}

fn has_crd(member: &Cluster) -> bool {
    member
        .get(CRDS, "CustomResourceDefinition", "", CRD)
        .is_some()
}

async fn join(federation: &Federation, image: &str) -> Outcome {
    let request = JoinRequest {
        replica_sets: Some(image.to_owned()),
        ..federation.join_request("eu")
    };
    // No controller runs on the host.
    federation.join_as(request).await.failed()
}

/// A federation whose member `eu` has the controller, and whose host no longer knows the member.
async fn left() -> Federation {
    let federation = Federation::start(&["eu"]).await;
    join(&federation, "fedrs:1").await;
    let fedrs = "fedrs.dev/v1alpha1";
    federation.host.delete(fedrs, "MemberCluster", "", "eu");
    federation
}

fn local_set() -> Value {
    json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "LocalReplicaSet",
        "metadata": { "namespace": "default", "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn l1_join_installs_the_controller_and_a_repeated_join_changes_what_is_asked_for() {
    let federation = Federation::start(&["eu"]).await;
    let eu = federation.member("eu");
    let outcome = join(&federation, "fedrs:1").await.contains(&[
        "member  customresourcedefinition/localreplicasets.fedrs.dev created",
        "member  deployment/fedrs-replica-set-controller created",
    ]);
    assert_eq!(outcome.count("created"), 18, "{}", outcome.text);
    let all = objects(eu);
    assert!(has_crd(eu) && all.iter().all(Option::is_some));
    let role = eu
        .get(RBAC, "ClusterRole", "", &federation.account())
        .unwrap();
    for object in all.iter().flatten() {
        let owner = &object["metadata"]["ownerReferences"][0]["uid"];
        assert_eq!(*owner, role["metadata"]["uid"], "{}", object["kind"]);
    }
    let outcome = join(&federation, "fedrs:1").await;
    assert_eq!(outcome.count("created"), 0, "{}", outcome.text);
    assert_eq!(outcome.count("configured"), 0, "{}", outcome.text);
    let outcome = join(&federation, "fedrs:2").await;
    let configured = "deployment/fedrs-replica-set-controller configured";
    let outcome = outcome.contains(&[configured]);
    assert_eq!(outcome.count("configured"), 1, "{}", outcome.text);
    // Without the option what is there stays.
    federation.join("eu").await.failed();
    let deployment = eu.get("apps/v1", "Deployment", NAMESPACE, NAME).unwrap();
    let image = deployment.pointer("/spec/template/spec/containers/0/image");
    assert_eq!(image, Some(&json!("fedrs:2")));
}

#[tokio::test(flavor = "multi_thread")]
async fn l1_a_controller_that_somebody_else_installed_is_neither_changed_nor_removed() {
    let federation = Federation::start(&["eu"]).await;
    let eu = federation.member("eu");
    for crd in crd::local() {
        eu.create(json!(crd));
    }
    let role = json!({
        "apiVersion": RBAC, "kind": "ClusterRole", "metadata": { "name": NAME }, "rules": [],
    });
    eu.create(role);
    join(&federation, "fedrs:1").await;
    let role = || eu.get(RBAC, "ClusterRole", "", NAME).unwrap();
    assert_eq!(role()["metadata"]["labels"], Value::Null);
    let fedrs = "fedrs.dev/v1alpha1";
    federation.host.delete(fedrs, "MemberCluster", "", "eu");
    let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
    let outcome = outcome.succeeded();
    assert!(has_crd(eu), "{}", outcome.text);
    // As it was created: without rules.
    assert_eq!(role()["rules"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn l1_the_user_removes_the_controller_and_the_crd_without_sets() {
    let federation = left().await;
    let eu = federation.member("eu");
    eu.create(local_set());
    let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
    outcome.succeeded().contains(&[
        "deployment/fedrs-replica-set-controller deleted",
        "customresourcedefinition/localreplicasets.fedrs.dev kept: deleting it would delete localreplicaset/default/web",
        "member  namespace/fedrs-system deleted",
    ]);
    assert!(has_crd(eu));
    let left: Vec<_> = objects(eu).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:#?}");

    let federation = self::left().await;
    let outcome = federation.unjoin("eu", federation.as_user("eu")).await;
    outcome.succeeded().contains(&[
        "customresourcedefinition/localreplicasets.fedrs.dev deleted",
        "member  namespace/fedrs-system deleted",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn l1_the_service_account_removes_the_controller_and_leaves_the_sets() {
    let federation = left().await;
    let eu = federation.member("eu");
    eu.create(local_set());
    let outcome = federation.unjoin("eu", UnjoinMode::Drain).await;
    outcome.succeeded();
    wait_until("the dependents of the ClusterRole are deleted", || {
        objects(eu).iter().all(Option::is_none)
    })
    .await;
    assert!(has_crd(eu));
}
