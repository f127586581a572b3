//! The controller killed at every single write of a scenario and started again: nothing is lost, nothing dips,
//! nothing is left over.

use fedrs_tests::{CrashPoint, Fleet, FleetSpec, MemberSpec, ReadyWatcher, even, frs};
use serde_json::{Value, json};

/// Longer than any of the scenarios takes, in simulated seconds.
const PATIENCE: u64 = 300;

fn small_fleet() -> FleetSpec {
    let member = |name: &str| MemberSpec {
        name: name.to_owned(),
        nodes: 2,
        pods_per_node: 20,
    };
    FleetSpec {
        members: ["a", "b", "c"].map(member).into(),
        ..FleetSpec::default()
    }
}

/// Runs `check(crash)` with a crash before and after each write of a run without one.
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
    assert!(
        writes > 5,
        "a scenario that writes {writes} times shows nothing"
    );
    for write in 1..=writes {
        simulate(Some(CrashPoint::Before(write)));
        simulate(Some(CrashPoint::After(write)));
    }
}

/// Waits until nothing is left to do, with a controller that crashes and one that takes over.
async fn go_on(
    fleet: &mut Fleet,
    crash: Option<CrashPoint>,
    settled: impl AsyncFn(&Fleet) -> bool,
) -> u64 {
    if crash.is_some() {
        assert!(
            fleet.bury_controller(PATIENCE).await,
            "{crash:?} was never reached"
        );
        fleet.start_controller().await;
    }
    let what = format!("settled after {crash:?}");
    fleet
        .wait_until(&what, PATIENCE, async |fleet| settled(fleet).await)
        .await;
    fleet.writes()
}

async fn is_settled(fleet: &Fleet, layout: [u64; 3]) -> bool {
    let wanted: u64 = layout.iter().sum();
    fleet.sorted_layout("web") == layout
        && fleet.available("web") == wanted
        && fleet.is_settled("web").await
}

#[test]
fn creation_survives_a_crash_at_every_write() {
    at_every_write(async |crash| {
        let mut fleet = Fleet::start_clusters(small_fleet()).await;
        fleet.start_controller_until(crash).await;
        fleet.create(&frs("web", 7, &even(true))).await;
        go_on(&mut fleet, crash, async |fleet| {
            is_settled(fleet, [2, 2, 3]).await
        })
        .await
    });
}

#[test]
fn a_move_survives_a_crash_at_every_write_without_a_dip() {
    at_every_write(async |crash| {
        let mut fleet = Fleet::start(small_fleet()).await;
        fleet.create(&frs("web", 12, &even(true))).await;
        fleet
            .wait_until("12 run", PATIENCE, async |fleet| {
                is_settled(fleet, [4, 4, 4]).await
            })
            .await;
        fleet.stop_controller().await;
        let watcher = ReadyWatcher::start(&fleet, "web");
        let clusters = json!({ "a": { "weight": 10 }, "b": { "weight": 1 }, "*": { "weight": 1 } });
        fleet
            .patch(
                "web",
                &json!({ "spec": { "placement": { "clusters": clusters } } }),
            )
            .await;
        fleet.start_controller_until(crash).await;
        let writes = go_on(&mut fleet, crash, async |fleet| {
            is_settled(fleet, [1, 1, 10]).await
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
        let mut fleet = Fleet::start(small_fleet()).await;
        fleet.create(&frs("web", 6, &even(true))).await;
        fleet
            .wait_until("6 run", PATIENCE, async |fleet| {
                is_settled(fleet, [2, 2, 2]).await
            })
            .await;
        fleet.stop_controller().await;
        let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
        fleet
            .on_host("DELETE", path, &Value::Null)
            .await
            .expect("it can be deleted");
        fleet.start_controller_until(crash).await;
        let gone = async |fleet: &Fleet| fleet.frs("web").await.is_null();
        let writes = go_on(&mut fleet, crash, gone).await;
        assert_eq!(fleet.available("web"), 6, "{crash:?}: its pods go on");
        for member in fleet.member_names() {
            let set = fleet.local_set(&member, "web").unwrap_or_default();
            assert!(
                !set["metadata"]["labels"].to_string().contains("fedrs.dev"),
                "{crash:?}"
            );
        }
        writes
    });
}

#[test]
fn a_full_member_survives_a_crash_at_every_write() {
    at_every_write(async |crash| {
        let mut spec = small_fleet();
        spec.members[2].pods_per_node = 1;
        let mut fleet = Fleet::start_clusters(spec).await;
        fleet.start_controller_until(crash).await;
        fleet.create(&frs("web", 9, &even(true))).await;
        let settled = async |fleet: &Fleet| {
            fleet.available("web") == 9
                && fleet.layout("web")["c"] == 3
                && fleet.sorted_layout("web") == [3, 3, 4]
                && fleet.is_settled("web").await
        };
        go_on(&mut fleet, crash, settled).await
    });
}

#[test]
fn a_member_lost_and_back_survives_a_crash_at_every_write_without_a_dip() {
    at_every_write(async |crash| {
        let mut fleet = Fleet::start(small_fleet()).await;
        fleet.create(&frs("web", 9, &even(true))).await;
        fleet
            .wait_until("9 run", PATIENCE, async |fleet| {
                is_settled(fleet, [3, 3, 3]).await
            })
            .await;
        fleet.member("b").faults().set_unreachable(true);
        fleet
            .wait_until("its replicas run elsewhere", PATIENCE, async |fleet| {
                fleet.available("web") == 12
            })
            .await;
        fleet.stop_controller().await;
        let watcher = ReadyWatcher::start(&fleet, "web");
        fleet.member("b").faults().heal();
        fleet.start_controller_until(crash).await;
        let writes = go_on(&mut fleet, crash, async |fleet| {
            is_settled(fleet, [3, 3, 3]).await
        });
        let writes = writes.await;
        assert_eq!(watcher.lowest(), 9, "{crash:?}");
        writes
    });
}
