//! A controller that restarts while everything is settled writes nothing.

use fedrs_tests::{FRS_PATH, SimFederation, SimFederationSpec, minutes};
use serde_json::json;
use sim_cluster::{RequestMatcher, Status, Verb};

#[tokio::test(start_paused = true)]
async fn a_restart_reads_member_clusters_before_it_writes_their_status() {
    let mut federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.run(12).await;
    federation
        .patch_member("b", &json!({ "spec": { "drain": true } }))
        .await;
    federation
        .wait_until("b has no replicas", 120, async |federation| {
            let drained = federation.member_condition("b", "Drained").await;
            drained.starts_with("True") && federation.available("web") == 12
        })
        .await;
    minutes(2).await;
    federation.stop_controller().await;
    // The members answer long before the host lists the MemberClusters.
    let lists = RequestMatcher::all()
        .verb(Verb::List)
        .resource("memberclusters");
    let busy = Status::new(503, "ServiceUnavailable", "the server is starting");
    federation.host().faults().refuse(lists, 4, busy);
    federation.start_controller().await;
    minutes(10).await;
    assert_eq!(federation.host().faults().counts().refused, 4);
    assert_eq!(federation.writes(), 0, "{}", federation.describe().await);
}

#[tokio::test(start_paused = true)]
async fn f5_a_deletion_waits_for_the_first_lists_of_members_without_a_record() {
    let mut federation = SimFederation::running(9).await;
    federation
        .patch("web", &json!({ "spec": { "deletionPolicy": "Delete" } }))
        .await;
    federation.kill_controller().await;
    // As if the leader had died after it had created the ReplicaSets, and before it recorded that.
    let status = json!({ "status": { "clusters": null } });
    let path = format!("{FRS_PATH}/web/status");
    let answer = federation.on_host("PATCH", &path, &status).await;
    assert!(answer.is_ok(), "{answer:?}");
    federation.delete("web").await;
    leaves_nothing_after_a_start(federation).await;
}

#[tokio::test(start_paused = true)]
async fn f5_a_controller_that_starts_after_the_deadline_lists_the_members_first() {
    let mut federation = SimFederation::running(9).await;
    federation
        .patch("web", &json!({ "spec": { "deletionPolicy": "Delete" } }))
        .await;
    federation.kill_controller().await;
    federation.delete("web").await;
    minutes(20).await;
    leaves_nothing_after_a_start(federation).await;
}

/// Starts the controller while the API server of one member starts, too: nothing is left of a set that is being deleted.
async fn leaves_nothing_after_a_start(mut federation: SimFederation) {
    let lists = RequestMatcher::all()
        .verb(Verb::List)
        .resource("replicasets");
    let busy = Status::new(503, "ServiceUnavailable", "the server is starting");
    federation.member("b").faults().refuse(lists, 2, busy);
    federation.start_controller().await;
    federation
        .wait_until("the set is gone", 60, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    for member in federation.member_names() {
        let left = federation.local_set(&member, "web");
        assert!(left.is_none(), "{member}: {left:?}");
    }
}
