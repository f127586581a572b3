//! Members with the controller at work on them: it has the rights that join gave it, and no others.

use std::io::{BufRead, BufReader};

use jiff::SignedDuration;

use crate::fleet::{Fleet, signal, wait_until};

/// A fleet whose controller runs, with `members` joined.
async fn joined(members: &[&str]) -> Fleet {
    let mut fleet = Fleet::start(members).await;
    fleet.start_controller();
    for name in members {
        let told = fleet.join(name, "").await.well();
        told.telling(&[&format!("{name} is ready")]);
    }
    fleet
}

/// A fleet of `eu` and `us` with two replicas in each.
async fn running() -> Fleet {
    let fleet = joined(&["eu", "us"]).await;
    fleet.create_web(4);
    fleet.wait_for(&[("eu", 2), ("us", 2)]).await;
    fleet
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_moves_everything_and_uncordon_takes_it_back() {
    let fleet = running().await;
    let told = fleet.fedrs("drain eu").await.well();
    told.telling(&[
        "membercluster/eu draining",
        "eu is drained, and gets no replicas",
    ]);
    fleet.wait_for(&[("eu", 0), ("us", 4)]).await;
    let told = fleet.fedrs("drain eu").await.well();
    told.telling(&["is being drained already", "eu is drained"]);
    fleet.fedrs("uncordon eu").await.well();
    fleet.wait_for(&[("eu", 2), ("us", 2)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_without_room_says_why_and_ends_when_there_is() {
    let fleet = running().await;
    fleet.fedrs("cordon us").await.well();
    let told = fleet.fedrs("unjoin eu --timeout 4s").await.badly();
    told.telling(&[
        "2 replicas left: default/web 2 (no cluster can run 2 of the replicas",
        "It stays a member, and goes on being drained",
    ]);
    assert_eq!(
        fleet.ready("eu"),
        Some(2),
        "nothing is given up without a replacement"
    );
    fleet.fedrs("uncordon us").await.well();
    fleet
        .fedrs("drain eu")
        .await
        .well()
        .telling(&["eu is drained"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_waiting_and_not_the_drain() {
    let fleet = running().await;
    fleet.fedrs("cordon us").await.well();
    let mut drain = fleet.start_fedrs("drain eu");
    let ended = tokio::task::spawn_blocking(move || {
        let mut lines = BufReader::new(drain.stdout.take().unwrap()).lines();
        // Once it tells what it waits for, it listens for Ctrl-C.
        lines.find(|it| it.as_ref().unwrap().starts_with("waiting:"));
        signal("INT", &drain);
        let told: Vec<String> = lines.map(Result::unwrap).collect();
        (drain.wait().unwrap().code(), told.join("\n"))
    });
    let (code, told) = ended.await.unwrap();
    assert_eq!(code, Some(130), "{told}");
    assert!(told.contains("eu goes on being drained"), "{told}");
    assert_eq!(fleet.member_cluster("eu").unwrap()["spec"]["drain"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unjoined_member_holds_nothing_and_its_replicas_run_elsewhere() {
    let fleet = running().await;
    let told = fleet
        .fedrs("unjoin eu --member-kubeconfig eu.yaml")
        .await
        .well();
    told.telling(&[
        "eu is drained",
        "host    membercluster/eu deleted",
        "member  replicaset/default/web deleted: it was empty",
        "member  namespace/fedrs-system deleted",
        "eu is no longer a member",
    ]);
    assert_eq!((fleet.ready("eu"), fleet.ready("us")), (None, Some(4)));
    assert!(fleet.member_cluster("eu").is_none() && fleet.stored("eu").is_none());
    fleet
        .fedrs("unjoin eu")
        .await
        .badly()
        .telling(&["there is no member eu"]);
    fleet.join("eu", "").await.well();
    fleet.wait_for(&[("eu", 2), ("us", 2)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unjoin_needs_no_kubeconfig_of_the_member() {
    let fleet = running().await;
    let told = fleet.fedrs("unjoin eu").await.well();
    told.telling(&[
        "member  replicaset/default/web deleted",
        "member  clusterrole/fedrs-controller-",
    ]);
    assert_eq!((fleet.ready("eu"), fleet.ready("us")), (None, Some(4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_told_as_such_and_healed_by_the_same_command() {
    let mut fleet = Fleet::start(&["eu"]).await;
    fleet.start_controller();
    fleet.join("eu", "--token-duration 1h").await.well();
    fleet.create_web(2);
    fleet.wait_for(&[("eu", 2)]).await;
    fleet
        .member("eu")
        .sim
        .clock()
        .step(SignedDuration::from_hours(2));
    let reason =
        || fleet.member_cluster("eu").unwrap()["status"]["conditions"][0]["reason"].clone();
    wait_until("eu is said to refuse the token", || {
        reason() == "Unauthorized"
    })
    .await;
    let told = fleet.join("eu", "").await.well();
    told.telling(&["renewed token", "had expired or was revoked", "eu is ready"]);
    assert_eq!(fleet.ready("eu"), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_uninstall_everything_runs_on_and_nothing_hangs() {
    let mut fleet = running().await;
    let told = fleet.fedrs("uninstall --yes").await.badly();
    told.telling(&["a controller"]);
    assert!(
        fleet.member_cluster("eu").is_some(),
        "nothing is taken away under a controller"
    );
    fleet.stop_controller();
    fleet
        .fedrs("uninstall --yes")
        .await
        .well()
        .telling(&["1 FederatedReplicaSet and the CRDs are left"]);
    assert_eq!((fleet.ready("eu"), fleet.ready("us")), (Some(2), Some(2)));
    for crd in fedrs_api::crd::all() {
        let name = crd.metadata.name.unwrap();
        let kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        fleet.host.delete(kind.0, kind.1, "", &name);
        wait_until("the CRD is gone", || {
            fleet.host.get(kind.0, kind.1, "", &name).is_none()
        })
        .await;
    }
    assert_eq!((fleet.ready("eu"), fleet.ready("us")), (Some(2), Some(2)));
}
