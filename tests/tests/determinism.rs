//! The same seed gives the same run: every object of every cluster, with its uid, versions and times.

use std::time::Duration;

use fedrs_tests::{Fleet, FleetSpec, even, frs};
use serde_json::json;
use sim_cluster::SimCluster;

/// A story with a move, a fault and its end; answers all that the clusters hold after it.
fn tell(seed: u64) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO can be built");
    runtime.block_on(async {
        let spec = FleetSpec {
            seed,
            ..FleetSpec::default()
        };
        let fleet = Fleet::start(spec).await;
        for name in ["web", "shop", "mail"] {
            fleet.create(&frs(name, 20, &even(true))).await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let clusters = json!({ "a": { "weight": 3 } });
        fleet
            .patch(
                "web",
                &json!({ "spec": { "placement": { "clusters": clusters } } }),
            )
            .await;
        fleet.member("b").faults().set_unreachable(true);
        tokio::time::sleep(Duration::from_secs(120)).await;
        fleet.member("b").faults().set_unreachable(false);
        tokio::time::sleep(Duration::from_secs(120)).await;
        let mut all = dump(fleet.host());
        for name in fleet.member_names() {
            all += &dump(fleet.member(&name));
        }
        all
    })
}

fn dump(cluster: &SimCluster) -> String {
    let api = cluster.api();
    let kinds = api.kinds().into_iter();
    let objects = kinds.flat_map(|kind| api.list(&kind, None));
    let lines: Vec<_> = objects
        .map(|object| format!("{} {object}", cluster.name()))
        .collect();
    lines.join("\n") + "\n"
}

#[test]
fn one_seed_one_run() {
    let (first, second) = (tell(7), tell(7));
    for (a, b) in first.lines().zip(second.lines()) {
        assert_eq!(a, b);
    }
    assert_eq!(first.len(), second.len());
    assert_ne!(first, tell(8), "the seed is used");
}
