//! `fedrs uninstall`.

use fedrs_api::names;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::fleet::{Fleet, NAMESPACE, wait_until};

const FEDRS: &str = "fedrs.dev/v1alpha1";
const CRD: &str = "apiextensions.k8s.io/v1";

/// A FederatedReplicaSet with the finalizer of fedrs and with another one.
fn put_set(fleet: &Fleet) {
    fleet.host.create(json!({
        "apiVersion": FEDRS, "kind": "FederatedReplicaSet",
        "metadata": {
            "namespace": "default", "name": "web", "finalizers": ["example.org/own", "fedrs.dev/members"],
        },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    }));
}

fn set(fleet: &Fleet) -> Option<Value> {
    fleet
        .host
        .get(FEDRS, "FederatedReplicaSet", "default", "web")
}

#[tokio::test(flavor = "multi_thread")]
async fn afterwards_nothing_is_in_the_way_of_deleting_it_all() {
    let fleet = Fleet::start(&["eu", "us"]).await;
    put_set(&fleet);
    for name in ["eu", "us"] {
        fleet.join(name, "--timeout 0s").await.badly();
    }
    fleet.member("us").sim.faults().set_unreachable(true);
    let told = fleet.fedrs("uninstall --yes").await.well();
    told.telling(&[
        "the finalizers of 1 FederatedReplicaSet",
        "2 members (eu, us): what join made",
        "host    1 federatedreplicaset now without a finalizer",
        "member  clusterrole/fedrs-controller-",
        "warning: member: failed to",
        "kubectl delete clusterrole fedrs-controller-",
        "host    membercluster/us deleted",
        "host    namespace/fedrs-system deleted",
        "fedrs crds | kubectl delete -f -",
    ]);
    let left = set(&fleet).unwrap();
    assert_eq!(left["metadata"]["finalizers"], json!(["example.org/own"]));
    let account = fleet.account();
    wait_until("eu's account is gone", || {
        fleet
            .member("eu")
            .get("v1", "ServiceAccount", NAMESPACE, &account)
            .is_none()
    })
    .await;
    let told = fleet.fedrs("uninstall --yes").await.well();
    told.telling(&[
        "nothing to be taken off",
        "1 FederatedReplicaSet and the CRDs are left",
    ]);

    for crd in fedrs_api::crd::all() {
        let name = crd.metadata.name.unwrap();
        fleet
            .host
            .delete(CRD, "CustomResourceDefinition", "", &name);
    }
    let gone = || {
        fleet
            .host
            .get(
                CRD,
                "CustomResourceDefinition",
                "",
                "memberclusters.fedrs.dev",
            )
            .is_none()
    };
    wait_until("the CRD of members is gone", gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_without_being_asked_for() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet
        .fedrs("uninstall")
        .await
        .well()
        .telling(&["There is nothing to be taken off the host"]);
    fleet.join("eu", "--timeout 0s").await.badly();
    let before = fleet.contents();
    let told = fleet.fedrs("uninstall").await.badly();
    told.telling(&[
        "1 member (eu): what join made",
        "standard input is not a terminal: confirm with --yes",
    ]);
    assert_eq!(fleet.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_runs_is_to_be_stopped_first() {
    let fleet = Fleet::start(&["eu"]).await;
    fleet.join("eu", "--timeout 0s").await.badly();
    fleet.host.create(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "namespace": NAMESPACE, "name": names::CONTROLLER },
        "spec": {
            "holderIdentity": "pod-1", "leaseDurationSeconds": 3600,
            "renewTime": format!("{:.6}", Timestamp::now()),
        },
    }));
    let before = fleet.contents();
    let told = fleet.fedrs("uninstall --yes").await.badly();
    told.telling(&["a controller runs (pod-1): stop it first"]);
    assert_eq!(fleet.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_another_federations_stays() {
    let fleet = Fleet::start(&["eu", "us"]).await;
    put_set(&fleet);
    fleet.join("eu", "--timeout 0s").await.badly();
    let before = fleet.contents();
    let blue = "--federation blue --namespace blue";
    let join = format!("join us {blue} --member-kubeconfig us.yaml --timeout 0s");
    fleet.fedrs(&join).await.badly();
    let uninstall = format!("uninstall {blue} --yes");
    let told = fleet.fedrs(&uninstall).await.well();
    told.telling(&[
        "1 member (us): what join made",
        "host    membercluster/us deleted",
        "host    namespace/blue deleted",
        "Other federations have 1, and need the CRDs",
    ]);
    let left = fleet.contents();
    for object in before {
        assert!(left.contains(&object), "{object}");
    }
}
