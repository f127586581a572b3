//! The same seed gives the same run: every object of every cluster, with its UID, versions and times.

use std::time::Duration;

use fedrs_tests::{SimFederation, SimFederationSpec, even, frs};
use serde_json::json;
use sim_cluster::SimCluster;

/// Runs a move and a fault. Returns all objects of all clusters afterwards.
fn run(seed: u64) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO can be built");
    runtime.block_on(async {
        let spec = SimFederationSpec {
            seed,
            ..SimFederationSpec::default()
        };
        let federation = SimFederation::start(spec).await;
        for name in ["web", "shop", "mail"] {
            federation.create(&frs(name, 20, &even(true))).await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let clusters = json!({ "a": { "weight": 3 } });
        federation
            .patch(
                "web",
                &json!({ "spec": { "placement": { "clusters": clusters } } }),
            )
            .await;
        federation.member("b").faults().set_unreachable(true);
        tokio::time::sleep(Duration::from_secs(120)).await;
        federation.member("b").faults().set_unreachable(false);
        tokio::time::sleep(Duration::from_secs(120)).await;
        let mut all = dump(federation.host());
        for name in federation.member_names() {
            all += &dump(federation.member(&name));
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
fn the_same_seed_gives_the_same_run() {
    let (first, second) = (run(7), run(7));
    for (a, b) in first.lines().zip(second.lines()) {
        assert_eq!(a, b);
    }
    assert_eq!(first.len(), second.len());
    assert_ne!(first, run(8), "another seed gives another run");
}
