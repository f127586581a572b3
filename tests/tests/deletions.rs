//! Deletions of FederatedReplicaSets delay nothing else.

use std::time::Duration;

use fedrs_tests::{SimFederation, even, frs};
use serde_json::Value;

const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";

/// More than the controller has workers.
const DELETED: u32 = 40;

#[tokio::test(start_paused = true)]
async fn f5_deletions_in_a_slow_member_delay_no_repair() {
    let federation = SimFederation::running(9).await;
    for name in 0..DELETED {
        let mut set = frs(&format!("old-{name}"), 3, &even(true));
        set["spec"]["deletionPolicy"] = "Delete".into();
        federation.create(&set).await;
    }
    federation
        .wait_until("all run", 120, async |federation| {
            (0..DELETED).all(|name| federation.available(&format!("old-{name}")) == 3)
        })
        .await;
    // As with a slow webhook; liveness probes still succeed.
    federation
        .member("a")
        .faults()
        .set_latency(Duration::from_secs(4));
    for name in 0..DELETED {
        federation.delete(&format!("old-{name}")).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    federation
        .on_member("b", "DELETE", WEB, &Value::Null)
        .await
        .unwrap();
    federation
        .wait_until("the repair", 2, async |federation| {
            federation
                .local_set("b", "web")
                .is_some_and(|set| set["metadata"].get("deletionTimestamp").is_none())
        })
        .await;
    federation.member("a").faults().set_latency(Duration::ZERO);
    federation
        .wait_until("all are deleted", 120, async |federation| {
            (0..DELETED).all(|name| federation.local_set("a", &format!("old-{name}")).is_none())
        })
        .await;
}
