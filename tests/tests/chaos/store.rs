//! The stores of clusters: compacted, and restored from a backup.

use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{N, names, run_sets, seconds, wait_balanced};

/// The sets that run.
const SETS: usize = 12;

pub(crate) async fn f20_a_host_restored_from_a_backup_is_followed(env: &mut TestEnvironment) {
    run_sets(env, SETS).await;
    let running = env.watch_all().await;
    for member in ["a", "b", "c"] {
        env.compact_history(member).await;
    }
    env.compact_host().await;
    let scale = |replicas: u64| json!({ "spec": { "replicas": replicas } });
    env.patch("web0", &scale(12)).await;
    env.wait_until("the set scales up", 60, async |env| {
        env.available("web0").await == 12
    })
    .await;
    env.patch("web0", &scale(N)).await;
    wait_balanced(env, SETS, 60).await;
    running.assert_never_below(N);

    env.back_up_host().await;
    env.patch("web0", &scale(15)).await;
    env.on_host("DELETE", &env.frs_path("web1"), &Value::Null)
        .await
        .unwrap();
    env.run(&frs("late", 6, &even(true))).await;
    env.wait_until("all changes are done", 60, async |env| {
        env.available("web0").await == 15 && env.frs("web1").await.is_null()
    })
    .await;
    running.reset();
    env.restore_host().await;
    // For two minutes nothing that runs is removed.
    wait_balanced(env, SETS, 210).await;
    running.assert_never_below(6);
    env.wait_until("the restored set is followed", 30, async |env| {
        env.is_settled("web1").await
    })
    .await;
    // A set that is not in the backup keeps running: nobody deleted it.
    assert_eq!(env.available("late").await, 6);
    // The deletion of web1 counts as an external change, which the status forgets after a while.
    env.wait_until("the status of web1 forgets its deletion", 60, async |env| {
        let status = env.frs("web1").await["status"].to_string();
        !status.contains("repairedTime")
    })
    .await;
    seconds(5).await;
    let before = versions(env).await;
    seconds(10).await;
    assert_eq!(versions(env).await, before, "the statuses come to rest");
}

pub(crate) async fn f39_a_member_restored_from_a_backup_is_followed(env: &mut TestEnvironment) {
    run_sets(env, SETS).await;
    let running = env.watch_all().await;
    env.back_up_member("c").await;
    let scale = |replicas: u64| json!({ "spec": { "replicas": replicas } });
    env.patch("web0", &scale(15)).await;
    env.patch("web1", &scale(12)).await;
    env.patch("web2", &scale(6)).await;
    env.run(&frs("late", 15, &even(true))).await;
    let wanted = [("web0", 15), ("web1", 12), ("web2", 6), ("late", 15)];
    let is_balanced = async |env: &TestEnvironment| {
        for (name, replicas) in wanted {
            let layout = env.sorted_layout(name).await;
            if layout != [replicas / 3; 3] || env.available(name).await != replicas {
                return false;
            }
        }
        true
    };
    env.wait_until("all changes are done", 60, is_balanced)
        .await;
    // The member forgets a third of what was added, and has again what was removed there.
    env.restore_member("c").await;
    running.reset();
    let began = Instant::now();
    env.wait_until("what was restored is as it should be", 120, is_balanced)
        .await;
    eprintln!(
        "balanced {:.1?} after the member was restored",
        began.elapsed()
    );
    running.assert_never_below(6);
    env.patch("web2", &scale(N)).await;
    env.patch("web0", &scale(N)).await;
    env.patch("web1", &scale(N)).await;
    wait_balanced(env, SETS, 60).await;
    running.assert_never_below(6);
}

/// The resource versions of all sets on the host.
async fn versions(env: &TestEnvironment) -> Vec<Value> {
    let mut versions = Vec::new();
    for name in names(SETS) {
        let frs = env.frs(&name).await;
        versions.push(frs["metadata"]["resourceVersion"].clone());
    }
    versions
}
