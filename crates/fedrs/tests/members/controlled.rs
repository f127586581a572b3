//! The commands with a running controller, which has the permissions that join granted it and no others.

use std::{
    io::{BufRead, BufReader},
    time::{Duration, Instant},
};

use jiff::SignedDuration;

use crate::{
    clusters::wait_until,
    federation::{Federation, signal},
};

/// A federation with a running controller, in which `members` have joined.
pub(crate) async fn joined(members: &[&str]) -> Federation {
    let mut federation = Federation::start(members).await;
    federation.start_controller();
    for name in members {
        let outcome = federation.join(name, "").await.succeeded();
        outcome.contains(&[&format!("{name} is ready")]);
    }
    federation
}

/// A federation of `eu` and `us` with two replicas in each.
pub(crate) async fn running() -> Federation {
    let federation = joined(&["eu", "us"]).await;
    federation.create_web(4);
    federation.wait_for(&[("eu", 2), ("us", 2)]).await;
    // What tests read after they have stopped the controller.
    federation.wait_for_status().await;
    federation
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_moves_all_replicas_and_uncordon_moves_them_back() {
    let federation = running().await;
    let outcome = federation.fedrs("drain eu").await.succeeded();
    outcome.contains(&[
        "membercluster/eu draining",
        "membercluster/eu drained",
        "eu gets no replicas until",
    ]);
    federation.wait_for(&[("eu", 0), ("us", 4)]).await;
    let outcome = federation.fedrs("drain eu").await.succeeded();
    outcome.contains(&["already draining", "membercluster/eu drained"]);
    federation.fedrs("uncordon eu").await.succeeded();
    federation.wait_for(&[("eu", 2), ("us", 2)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_without_capacity_shows_the_reason_and_ends_with_capacity() {
    let federation = running().await;
    federation.fedrs("cordon us").await.succeeded();
    let outcome = federation.fedrs("unjoin eu --timeout 4s").await.failed();
    outcome.contains(&[
        "2 replicas left: default/web 2 (2 of 4 replicas have no cluster",
        "eu is still a member, and the drain continues",
    ]);
    assert_eq!(
        federation.ready("eu"),
        Some(2),
        "no replica is removed without a replacement"
    );
    federation.fedrs("uncordon us").await.succeeded();
    federation
        .fedrs("drain eu")
        .await
        .succeeded()
        .contains(&["membercluster/eu drained"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_the_command_and_not_the_drain() {
    let federation = running().await;
    federation.fedrs("cordon us").await.succeeded();
    let mut drain = federation.start_fedrs("drain eu");
    let ended = tokio::task::spawn_blocking(move || {
        let mut lines = BufReader::new(drain.stdout.take().unwrap()).lines();
        // Once the command reports what it waits for, it handles Ctrl-C.
        lines.find(|line| line.as_ref().unwrap().starts_with("waiting:"));
        signal("INT", &drain);
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        (drain.wait().unwrap().code(), rest.join("\n"))
    });
    let (code, text) = ended.await.unwrap();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("The drain continues"), "{text}");
    assert_eq!(
        federation.member_cluster("eu").unwrap()["spec"]["drain"],
        true
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unjoin_moves_all_replicas_and_deletes_all_objects() {
    let federation = running().await;
    let outcome = federation
        .fedrs("unjoin eu --member-kubeconfig eu.yaml")
        .await
        .succeeded();
    outcome.contains(&[
        "membercluster/eu drained",
        "host    membercluster/eu deleted",
        "member  replicaset/default/web deleted: it had no replicas",
        "member  namespace/fedrs-system deleted",
        "eu is no longer a member",
    ]);
    assert_eq!(
        (federation.ready("eu"), federation.ready("us")),
        (None, Some(4))
    );
    assert!(
        federation.member_cluster("eu").is_none()
            && federation.host.stored_kubeconfig("eu").is_none()
    );
    federation
        .fedrs("unjoin eu")
        .await
        .failed()
        .contains(&["member eu not found"]);
    federation.join("eu", "").await.succeeded();
    federation.wait_for(&[("eu", 2), ("us", 2)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unjoin_without_a_kubeconfig_of_the_member_deletes_the_account() {
    let federation = running().await;
    let outcome = federation.fedrs("unjoin eu").await.succeeded();
    outcome.contains(&[
        "member  replicaset/default/web deleted",
        "member  clusterrole/fedrs-controller-",
    ]);
    assert_eq!(
        (federation.ready("eu"), federation.ready("us")),
        (None, Some(4))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_handle_federated_deployments_as_well() {
    let mut federation = joined(&["eu", "us"]).await;
    let kind = "FederatedDeployment";
    federation.create_kind(kind, "api", 4);
    federation.wait_for_kind(kind, "api").await;
    let outcome = federation.fedrs("explain api").await.succeeded();
    outcome.contains(&[
        "FederatedDeployment default/api: 4 replicas desired, 4 placed, 4 ready",
        "Revision api-",
        "Budget in use: 0 of 1 unavailable pods, 0 of 1 surplus pods",
        "UP-TO-DATE",
        "RolloutComplete",
    ]);
    let outcome = federation.fedrs("plan api --lose eu").await.succeeded();
    outcome.contains(&["FederatedDeployment default/api: 4 replicas desired, 2 move"]);
    let outcome = federation.fedrs("plan -A --drain eu").await.succeeded();
    outcome.contains(&["eu 2->0, us 2->4", "1 of 1 set changes"]);

    federation.fedrs("cordon us").await.succeeded();
    let outcome = federation.fedrs("drain eu --timeout 4s").await.failed();
    outcome.contains(&["2 replicas left: FederatedDeployment default/api 2 (2 of 4 replicas"]);
    federation.fedrs("uncordon us").await.succeeded();
    let unjoin = "unjoin eu --member-kubeconfig eu.yaml";
    let outcome = federation.fedrs(unjoin).await.succeeded();
    outcome.contains(&["member  deployment/default/api deleted: it had no replicas"]);

    federation.stop_controller();
    let outcome = federation.fedrs("uninstall --yes").await.succeeded();
    outcome.contains(&["1 FederatedDeployment and the CRDs remain"]);
    let api = federation
        .host
        .get("fedrs.dev/v1alpha1", kind, "default", "api");
    let finalizers = &api.unwrap()["metadata"]["finalizers"];
    assert!(
        finalizers.as_array().is_none_or(Vec::is_empty),
        "{finalizers}"
    );
    let us = federation
        .member("us")
        .get("apps/v1", "Deployment", "default", "api");
    assert_eq!(us.unwrap()["status"]["readyReplicas"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_join_replaces_an_expired_token() {
    let mut federation = Federation::start(&["eu"]).await;
    federation.start_controller();
    federation
        .join("eu", "--token-duration 1h")
        .await
        .succeeded();
    federation.create_web(2);
    federation.wait_for(&[("eu", 2)]).await;
    federation
        .member("eu")
        .sim
        .clock()
        .step(SignedDuration::from_hours(2));
    let reason =
        || federation.member_cluster("eu").unwrap()["status"]["conditions"][0]["reason"].clone();
    wait_until("the controller reports the expired token", || {
        reason() == "Unauthorized"
    })
    .await;
    let outcome = federation.join("eu", "").await.succeeded();
    outcome.contains(&["new token", "has expired or was revoked", "eu is ready"]);
    assert_eq!(federation.ready("eu"), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_killed_and_started_again_does_not_wait_for_its_own_lease() {
    let mut federation = running().await;
    federation.kill_controller();
    federation.create("api", 2);
    let started = Instant::now();
    federation.start_controller();
    let has_set = |member| {
        let set = federation
            .member(member)
            .get("apps/v1", "ReplicaSet", "default", "api");
        set.is_some()
    };
    wait_until("the new set lands in both members", || {
        has_set("eu") && has_set("us")
    })
    .await;
    let took = started.elapsed();
    eprintln!("landed {took:.2?} after the start of the killed controller");
    // It takes a fraction of that, on a machine that does nothing else; the Lease lasts for 15 s.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_uninstall_replicas_keep_running_and_deletions_complete() {
    let mut federation = running().await;
    let outcome = federation.fedrs("uninstall --yes").await.failed();
    outcome.contains(&["is running and would restore"]);
    assert!(
        federation.member_cluster("eu").is_some(),
        "nothing is removed while a controller runs"
    );
    federation.stop_controller();
    federation
        .fedrs("uninstall --yes")
        .await
        .succeeded()
        .contains(&["1 FederatedReplicaSet and the CRDs remain"]);
    assert_eq!(
        (federation.ready("eu"), federation.ready("us")),
        (Some(2), Some(2))
    );
    for crd in fedrs_api::crd::all() {
        let name = crd.metadata.name.unwrap();
        let kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        federation.host.delete(kind.0, kind.1, "", &name);
        wait_until("the CRD is deleted", || {
            federation.host.get(kind.0, kind.1, "", &name).is_none()
        })
        .await;
    }
    assert_eq!(
        (federation.ready("eu"), federation.ready("us")),
        (Some(2), Some(2))
    );
}

/// The namespaces of `eu` in which the controller has a Role, besides its own.
fn namespaces_with_permissions(federation: &Federation) -> Vec<&'static str> {
    let roles = "rbac.authorization.k8s.io/v1";
    let host = federation
        .host
        .get("v1", "Namespace", "", "kube-system")
        .unwrap();
    let account = format!(
        "fedrs-controller-{}",
        &host["metadata"]["uid"].as_str().unwrap()[..8]
    );
    let has_role = |namespace: &&str| {
        let eu = federation.member("eu");
        eu.get(roles, "Role", namespace, &account).is_some()
    };
    ["blog", "default", "shop"]
        .into_iter()
        .filter(has_role)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_join_with_other_namespaces_drains_the_former_ones_and_removes_their_permissions() {
    let mut federation = Federation::start(&["eu", "us"]).await;
    federation.start_controller();
    federation.join("us", "").await.succeeded();
    let outcome = federation.join("eu", "--namespaces default,shop").await;
    outcome
        .succeeded()
        .contains(&["namespace/shop created", "eu is ready"]);
    federation.create_web(4);
    federation.wait_for(&[("eu", 2), ("us", 2)]).await;
    assert_eq!(
        namespaces_with_permissions(&federation),
        ["default", "shop"]
    );

    let outcome = federation
        .join("eu", "--namespaces blog,shop")
        .await
        .succeeded();
    outcome.contains(&["replicaset/default/web deleted: it had no replicas"]);
    assert_eq!(
        (federation.ready("eu"), federation.ready("us")),
        (None, Some(4))
    );
    assert_eq!(namespaces_with_permissions(&federation), ["blog", "shop"]);

    federation.join("eu", "--all-namespaces").await.succeeded();
    assert_eq!(namespaces_with_permissions(&federation), [""; 0]);
    federation.wait_for(&[("eu", 2), ("us", 2)]).await;

    // From permissions in all namespaces to those in one.
    federation.join("eu", "--namespaces shop").await.succeeded();
    assert_eq!(
        (federation.ready("eu"), federation.ready("us")),
        (None, Some(4))
    );
    assert_eq!(namespaces_with_permissions(&federation), ["shop"]);
    federation.join("eu", "").await.succeeded();
    assert_eq!(
        namespaces_with_permissions(&federation),
        ["shop"],
        "a repeated join keeps them"
    );

    let unjoin = "unjoin eu --member-kubeconfig eu.yaml";
    let outcome = federation.fedrs(unjoin).await.succeeded();
    outcome.contains(&["namespace/shop deleted", "namespace/fedrs-system deleted"]);
    assert_eq!(namespaces_with_permissions(&federation), [""; 0]);
}
