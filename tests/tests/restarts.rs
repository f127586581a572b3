//! A controller that starts anew where everything is as it should be writes nothing.

use fedrs_tests::{Fleet, FleetSpec, minutes};
use serde_json::json;
use sim_cluster::{RequestMatcher, Status, Verb};

#[tokio::test(start_paused = true)]
async fn what_a_member_asks_for_is_known_before_anything_is_told_of_it() {
    let mut fleet = Fleet::start(FleetSpec::default()).await;
    fleet.run(12).await;
    fleet
        .patch_member("b", &json!({ "spec": { "drain": true } }))
        .await;
    fleet
        .wait_until("b is empty", 120, async |it| {
            let drained = it.member_condition("b", "Drained").await;
            drained.starts_with("True") && it.available("web") == 12
        })
        .await;
    minutes(2).await;
    fleet.stop_controller().await;
    // The members answer long before the host says what is asked of them.
    let lists = RequestMatcher::all()
        .verb(Verb::List)
        .resource("memberclusters");
    let busy = Status::new(503, "ServiceUnavailable", "the server is starting");
    fleet.host().faults().refuse(lists, 4, busy);
    fleet.start_controller().await;
    minutes(10).await;
    assert_eq!(fleet.host().faults().counts().refused, 4);
    assert_eq!(fleet.writes(), 0, "{}", fleet.describe().await);
}
