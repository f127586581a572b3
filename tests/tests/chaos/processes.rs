//! Controllers that are killed and suspended while replicas move.

use std::time::Duration;

use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use serde_json::json;

pub(crate) async fn f20_a_controller_that_is_killed_again_and_again_moves_on(
    env: &mut TestEnvironment,
) {
    kill_while_moving(env, 60, 8).await;
}

/// Kills the controller `kills` times while a set of `replicas` moves from member to member.
pub(crate) async fn kill_while_moving(env: &mut TestEnvironment, replicas: u32, kills: u32) {
    let all = u64::from(replicas);
    env.run(&frs("web", replicas, &even(true))).await;
    let running = env.watch("web").await;
    let mut killed = 0;
    for favoured in ["a", "b", "c"].iter().cycle() {
        let before = env.layout("web").await[*favoured];
        favour(env, favoured).await;
        let is_moved = async |env: &TestEnvironment| {
            env.layout("web").await[*favoured] == all * 8 / 10 && env.available("web").await == all
        };
        while killed < kills && !is_moved(env).await {
            env.kill_controller().await;
            env.start_controller().await;
            killed += 1;
            // Each lives for another time: some die before their first write, some after several.
            tokio::time::sleep(Duration::from_millis(
                300 + u64::from(killed * 7 % 10) * 250,
            ))
            .await;
        }
        env.wait_until("moved", 180, is_moved).await;
        assert!(before < all * 8 / 10);
        if killed == kills {
            break;
        }
    }
    running.assert_never_below(all);
    // A surge of 25 %, and what was requested by a controller that died before it saw its replicas.
    running.assert_never_above(all + all / 4);
    eprintln!(
        "{kills} kills: {} to {} replicas ran",
        running.lowest(),
        running.highest()
    );
}

/// Gives one member eight of ten replicas.
pub(crate) async fn favour(env: &TestEnvironment, favoured: &str) {
    let weight = |name: &str| json!({ "weight": if name == favoured { 8 } else { 1 } });
    let clusters = json!({ "a": weight("a"), "b": weight("b"), "c": weight("c") });
    let patch = json!({ "spec": { "placement": { "clusters": clusters } } });
    env.patch("web", &patch).await;
}
