//! The controller crashes at every single write of a scenario and restarts: availability never dips, and the result is the
//! same.

use fedrs_tests::{
    CrashPoint, ReadyWatcher, SimFederation, SimFederationSpec, SimMemberSpec, even, frs,
};
use serde_json::{Value, json};

/// Longer than each of the scenarios, in simulated seconds.
const TIMEOUT: u64 = 300;

fn small_federation() -> SimFederationSpec {
    let member = |name: &str| SimMemberSpec {
        name: name.to_owned(),
        nodes: 2,
        pods_per_node: 20,
    };
    SimFederationSpec {
        members: ["a", "b", "c"].map(member).into(),
        ..SimFederationSpec::default()
    }
}

/// Runs a scenario with a crash before and after each write of a run without crashes.
fn at_every_write(run: impl AsyncFn(Option<CrashPoint>) -> u64) {
    let simulate = |crash| {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without IO can be built")
            .block_on(run(crash))
    };
    let writes = simulate(None);
    assert!(writes > 5, "{writes} writes are too few for this test");
    for write in 1..=writes {
        simulate(Some(CrashPoint::Before(write)));
        simulate(Some(CrashPoint::After(write)));
    }
}

/// Waits for the crash, starts another controller, and waits until it has settled.
async fn go_on(
    federation: &mut SimFederation,
    crash: Option<CrashPoint>,
    settled: impl AsyncFn(&SimFederation) -> bool,
) -> u64 {
    if crash.is_some() {
        assert!(
            federation.wait_for_crash(TIMEOUT).await,
            "{crash:?} was never reached"
        );
        federation.start_controller().await;
    }
    let what = format!("settled after {crash:?}");
    federation
        .wait_until(&what, TIMEOUT, async |federation| settled(federation).await)
        .await;
    federation.writes()
}

async fn is_settled(federation: &SimFederation, layout: [u64; 3]) -> bool {
    let wanted: u64 = layout.iter().sum();
    federation.sorted_layout("web") == layout
        && federation.available("web") == wanted
        && federation.is_settled("web").await
}

#[test]
fn creation_survives_a_crash_at_every_write() {
    at_every_write(async |crash| {
        let mut federation = SimFederation::start_clusters(small_federation()).await;
        federation.start_controller_until(crash).await;
        federation.create(&frs("web", 7, &even(true))).await;
        go_on(&mut federation, crash, async |federation| {
            is_settled(federation, [2, 2, 3]).await
        })
        .await
    });
}

#[test]
fn a_move_survives_a_crash_at_every_write_without_a_dip() {
    at_every_write(async |crash| {
        let mut federation = SimFederation::start(small_federation()).await;
        federation.create(&frs("web", 12, &even(true))).await;
        federation
            .wait_until("12 run", TIMEOUT, async |federation| {
                is_settled(federation, [4, 4, 4]).await
            })
            .await;
        federation.stop_controller().await;
        let watcher = ReadyWatcher::start(&federation, "web");
        let clusters = json!({ "a": { "weight": 10 }, "b": { "weight": 1 }, "*": { "weight": 1 } });
        federation
            .patch(
                "web",
                &json!({ "spec": { "placement": { "clusters": clusters } } }),
            )
            .await;
        federation.start_controller_until(crash).await;
        let writes = go_on(&mut federation, crash, async |federation| {
            is_settled(federation, [1, 1, 10]).await
        })
        .await;
        assert_eq!(watcher.lowest(), 12, "{crash:?}");
        assert!(
            watcher.highest() <= 15,
            "{crash:?}: {} at once",
            watcher.highest()
        );
        writes
    });
}

#[test]
fn deletion_survives_a_crash_at_every_write() {
    at_every_write(async |crash| {
        let mut federation = SimFederation::start(small_federation()).await;
        federation.create(&frs("web", 6, &even(true))).await;
        federation
            .wait_until("6 run", TIMEOUT, async |federation| {
                is_settled(federation, [2, 2, 2]).await
            })
            .await;
        federation.stop_controller().await;
        let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
        federation
            .on_host("DELETE", path, &Value::Null)
            .await
            .expect("it can be deleted");
        federation.start_controller_until(crash).await;
        let gone = async |federation: &SimFederation| federation.frs("web").await.is_null();
        let writes = go_on(&mut federation, crash, gone).await;
        assert_eq!(federation.available("web"), 6, "{crash:?}: its pods go on");
        for member in federation.member_names() {
            let set = federation.local_set(&member, "web").unwrap_or_default();
            assert!(
                !set["metadata"]["labels"].to_string().contains("fedrs.dev"),
                "{crash:?}"
            );
        }
        writes
    });
}

#[test]
fn f34_a_full_member_survives_a_crash_at_every_write() {
    at_every_write(async |crash| {
        let mut spec = small_federation();
        spec.members[2].pods_per_node = 1;
        let mut federation = SimFederation::start_clusters(spec).await;
        federation.start_controller_until(crash).await;
        federation.create(&frs("web", 9, &even(true))).await;
        let settled = async |federation: &SimFederation| {
            federation.available("web") == 9
                && federation.layout("web")["c"] == 3
                && federation.sorted_layout("web") == [3, 3, 4]
                && federation.is_settled("web").await
        };
        go_on(&mut federation, crash, settled).await
    });
}

#[test]
fn a_member_lost_and_back_survives_a_crash_at_every_write_without_a_dip() {
    at_every_write(async |crash| {
        let mut federation = SimFederation::start(small_federation()).await;
        federation.create(&frs("web", 9, &even(true))).await;
        federation
            .wait_until("9 run", TIMEOUT, async |federation| {
                is_settled(federation, [3, 3, 3]).await
            })
            .await;
        federation.member("b").faults().set_unreachable(true);
        federation
            .wait_until(
                "its replicas run in other clusters",
                TIMEOUT,
                async |federation| federation.available("web") == 12,
            )
            .await;
        federation.stop_controller().await;
        let watcher = ReadyWatcher::start(&federation, "web");
        federation.member("b").faults().heal();
        federation.start_controller_until(crash).await;
        let writes = go_on(&mut federation, crash, async |federation| {
            is_settled(federation, [3, 3, 3]).await
        });
        let writes = writes.await;
        assert_eq!(watcher.lowest(), 9, "{crash:?}");
        writes
    });
}
