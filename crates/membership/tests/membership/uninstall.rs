//! Uninstall, without a controller.

use std::time::Duration;

use fedrs_api::names;
use jiff::Timestamp;
use membership::join::JoinRequest;
use serde_json::{Value, json};

use crate::{
    clusters::{NAMESPACE, wait_until},
    federation::Federation,
};

const FEDRS: &str = "fedrs.dev/v1alpha1";
const CRD: &str = "apiextensions.k8s.io/v1";

/// Creates a set with the finalizer of fedrs and with another one.
fn create_set(federation: &Federation, kind: &str) {
    federation.host.create(json!({
        "apiVersion": FEDRS, "kind": kind,
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

fn set(federation: &Federation, kind: &str) -> Option<Value> {
    let host = &federation.host;
    host.get(FEDRS, kind, "default", "web")
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_uninstall_nothing_blocks_deletions() {
    let federation = Federation::joined(&["eu", "us"]).await;
    create_set(&federation, "FederatedReplicaSet");
    create_set(&federation, "FederatedDeployment");
    federation.host.create(json!({
        "apiVersion": FEDRS, "kind": "Maintenance",
        "metadata": { "name": "rack-7", "finalizers": ["example.org/own", "fedrs.dev/maintenance"] },
        "spec": { "nodeSelector": { "matchLabels": { "rack": "r7" } } },
    }));
    federation.host.create(json!({
        "apiVersion": FEDRS, "kind": "AvailabilitySet",
        "metadata": {
            "name": "web", "namespace": "default",
            "finalizers": ["example.org/own", "fedrs.dev/availability-set"],
        },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "budget": 1 },
    }));
    federation.join("us").await.failed();
    federation.member("us").sim.faults().set_unreachable(true);
    let outcome = federation.uninstall("", NAMESPACE).await.succeeded();
    outcome.contains(&[
        "removes the finalizers of 1 AvailabilitySet (web): what limits evictions in members stays",
        "host    removed the finalizers of 1 AvailabilitySet\n",
        "removes the finalizers of 1 FederatedReplicaSet and 1 FederatedDeployment",
        "removes the finalizers of 1 Maintenance (rack-7): nodes keep their marks",
        "host    removed the finalizers of 1 Maintenance\n",
        "removes 2 members (eu, us)",
        "host    removed the finalizers of 1 FederatedReplicaSet and 1 FederatedDeployment",
        "member  clusterrole/fedrs-controller-",
        "warning: member: failed to",
        "kubectl delete clusterrole fedrs-controller-",
        "host    membercluster/us deleted",
        "host    namespace/fedrs-system deleted",
        "fedrs crds | kubectl delete -f -",
    ]);
    for kind in ["FederatedReplicaSet", "FederatedDeployment"] {
        let remaining = set(&federation, kind).unwrap();
        let finalizers = &remaining["metadata"]["finalizers"];
        assert_eq!(*finalizers, json!(["example.org/own"]), "{kind}");
    }
    let maintenance = federation.host.get(FEDRS, "Maintenance", "", "rack-7");
    let finalizers = &maintenance.unwrap()["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["example.org/own"]));
    let availability_set = federation
        .host
        .get(FEDRS, "AvailabilitySet", "default", "web");
    let finalizers = &availability_set.unwrap()["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["example.org/own"]));
    let account = federation.account();
    wait_until("the ServiceAccount in eu is deleted", || {
        federation
            .member("eu")
            .get("v1", "ServiceAccount", NAMESPACE, &account)
            .is_none()
    })
    .await;
    let outcome = federation.uninstall("", NAMESPACE).await.succeeded();
    assert_eq!(
        outcome.text,
        "1 FederatedReplicaSet and 1 FederatedDeployment and the CRDs remain: run `fedrs crds | kubectl delete -f -` to delete them.\n"
    );

    for crd in fedrs_api::crd::all() {
        let name = crd.metadata.name.unwrap();
        let host = &federation.host;
        host.delete(CRD, "CustomResourceDefinition", "", &name);
    }
    wait_until("the CRD of MemberClusters is deleted", || {
        let (kind, name) = ("CustomResourceDefinition", "memberclusters.fedrs.dev");
        federation.host.get(CRD, kind, "", name).is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_may_have_the_crd_of_one_kind_only() {
    for (installed, missing) in [
        ("FederatedReplicaSet", "federateddeployments.fedrs.dev"),
        ("FederatedDeployment", "federatedreplicasets.fedrs.dev"),
    ] {
        let federation = Federation::joined(&["eu"]).await;
        let host = &federation.host;
        host.delete(CRD, "CustomResourceDefinition", "", missing);
        create_set(&federation, installed);
        let outcome = federation.uninstall("", NAMESPACE).await.succeeded();
        outcome.contains(&[
            &format!("removed the finalizers of 1 {installed}\n"),
            &format!("1 {installed} and the CRDs remain"),
        ]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_renews_its_lease_is_an_error_whatever_its_clock_says() {
    let federation = Federation::joined(&["eu"]).await;
    let renew_time = |second| format!("{:.6}", Timestamp::from_second(second).unwrap());
    federation.host.create(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "namespace": NAMESPACE, "name": names::CONTROLLER },
        "spec": {
            "holderIdentity": "pod-1", "leaseDurationSeconds": 3600, "renewTime": renew_time(0),
        },
    }));
    let before = federation.contents();
    let renewals = async {
        let api = federation.host.api();
        let lease = api.kind_of("coordination.k8s.io/v1", "Lease").unwrap();
        for second in 1.. {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let renew = |lease: &mut Value| lease["spec"]["renewTime"] = renew_time(second).into();
            api.modify(&lease, None, NAMESPACE, names::CONTROLLER, renew)
                .unwrap();
        }
    };
    let outcome = tokio::select! {
        outcome = federation.uninstall("", NAMESPACE) => outcome.failed(),
        () = renewals => unreachable!("it is renewed for ever"),
    };
    outcome.contains(&[
        "waiting: to see whether the controller pod-1 still renews its Lease",
        "the controller pod-1 is running",
    ]);
    assert_eq!(federation.contents(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_nobody_renews_stops_no_uninstall_whatever_its_time_says() {
    let federation = Federation::joined(&["eu"]).await;
    federation.host.create(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "namespace": NAMESPACE, "name": names::CONTROLLER },
        "spec": {
            "holderIdentity": "pod-1", "leaseDurationSeconds": 1,
            "renewTime": "2999-01-01T00:00:00.000000Z",
        },
    }));
    let outcome = federation.uninstall("", NAMESPACE).await.succeeded();
    outcome.contains(&["host    membercluster/eu deleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_another_federation_stay() {
    let federation = Federation::joined(&["eu", "us"]).await;
    create_set(&federation, "FederatedReplicaSet");
    let before = federation.contents();
    let request = JoinRequest {
        federation: "blue".to_owned(),
        namespace: "blue".to_owned(),
        ..federation.join_request("us")
    };
    federation.join_as(request).await.failed();
    let outcome = federation.uninstall("blue", "blue").await.succeeded();
    outcome.contains(&[
        "removes 1 member (us)",
        "host    membercluster/us deleted",
        "host    namespace/blue deleted",
        "Other federations need the CRDs: they have 1 FederatedReplicaSet",
    ]);
    let after = federation.contents();
    for object in before {
        assert!(after.contains(&object), "{object}");
    }
}
