//! A controller that restarts while everything is settled writes nothing.

use fedrs_tests::{SimFederation, SimFederationSpec, minutes};
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
