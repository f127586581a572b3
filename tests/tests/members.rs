//! Members as users bring them, take them away and drain them: Secrets, both sources, tokens, conditions.

use std::time::Duration;

use fedrs_tests::{
    Fleet, FleetSpec, MEMBERS_PATH, ReadyWatcher, SECRETS_PATH, even, frs, kubeconfig, minutes,
};
use serde_json::{Value, json};

const DAY: i64 = 24 * 3600;

/// A fleet whose members were all joined by Secrets, in which `replicas` of `web` run.
async fn joined(replicas: u32, life: i64) -> Fleet {
    let mut fleet = Fleet::start_clusters(FleetSpec::default()).await;
    for name in fleet.member_names() {
        fleet.join(&name, life).await;
    }
    fleet.start_controller().await;
    fleet.run(replicas).await;
    fleet
}

async fn is_ready(fleet: &Fleet, name: &str) -> bool {
    fleet
        .member_condition(name, "Ready")
        .await
        .starts_with("True")
}

/// Waits until the condition Ready of `name` has this reason; answers the condition.
async fn reason(fleet: &Fleet, name: &str, reason: &str, seconds: u64) -> String {
    let has = async |it: &Fleet| {
        let condition = it.member_condition(name, "Ready").await;
        condition.split([' ', ':']).nth(1) == Some(reason)
    };
    fleet.wait_until(reason, seconds, has).await;
    fleet.member_condition(name, "Ready").await
}

#[tokio::test(start_paused = true)]
async fn f36_members_of_secrets_are_followed_and_told_of() {
    let mut fleet = joined(12, DAY).await;
    assert_eq!(fleet.sorted_layout("web"), [4, 4, 4]);
    for name in fleet.member_names() {
        reason(&fleet, &name, "Healthy", 10).await;
    }
    fleet
        .wait_until("nodes and sets are told", 15, async |it| {
            let status = it.member_cluster("a").await["status"].clone();
            status["nodes"] == json!({ "total": 3, "ready": 3 }) && status["workloads"] == 1
        })
        .await;
    let status = fleet.member_cluster("a").await["status"].clone();
    let allocatable = json!({ "cpu": "192", "memory": "768Gi", "pods": "330" });
    assert_eq!(status["allocatable"], allocatable);
    assert_eq!(status["tokenExpires"], "2027-01-16T08:00:00Z");
    assert!(
        status["version"].as_str().unwrap().starts_with('v'),
        "{status}"
    );
    assert!(
        fleet
            .member_condition("a", "Synced")
            .await
            .starts_with("True")
    );

    minutes(2).await;
    let before = fleet.writes();
    minutes(30).await;
    assert_eq!(fleet.writes(), before, "at rest nothing is written");
    fleet.stop_controller().await;
    fleet.start_controller().await;
    minutes(10).await;
    assert_eq!(fleet.writes(), 0, "a restart writes nothing");
}

#[tokio::test(start_paused = true)]
async fn f33_a_revoked_token_is_no_outage_and_a_new_secret_takes_effect_at_once() {
    let mut fleet = Fleet::start_clusters(FleetSpec::default()).await;
    let mut tokens = Vec::new();
    for name in fleet.member_names() {
        tokens.push(fleet.join(&name, DAY).await);
    }
    fleet.start_controller().await;
    fleet.create(&frs("web", 12, &even(true))).await;
    fleet
        .wait_until("all run", 30, async |it| it.available("web") == 12)
        .await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    fleet.revoke_tokens("b").await;
    let told = reason(&fleet, "b", "Unauthorized", 15).await;
    assert!(
        told.contains("the member rejects the credentials"),
        "{told}"
    );
    assert!(!told.contains(&tokens[1]));
    minutes(10).await;
    assert_eq!(
        fleet.sorted_layout("web"),
        [4, 4, 4],
        "what runs is left as it is"
    );

    fleet
        .patch("web", &json!({ "spec": { "replicas": 18 } }))
        .await;
    minutes(5).await;
    assert_eq!(fleet.layout("web")["b"], 4);
    let token = fleet.token("b", DAY).await;
    fleet.put_secret("b", &kubeconfig("b", &token)).await;
    reason(&fleet, "b", "Healthy", 3).await;
    fleet
        .wait_until("b has its share", 20, async |it| {
            it.sorted_layout("web") == [6, 6, 6] && it.available("web") == 18
        })
        .await;
    assert!(watcher.lowest() >= 12);
}

#[tokio::test(start_paused = true)]
async fn a_missing_secret_leaves_what_runs_as_it_is() {
    let fleet = joined(12, DAY).await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    let text = fleet.kubeconfig_of("b").await;
    let path = format!("{SECRETS_PATH}/member-b");
    fleet.on_host("DELETE", &path, &Value::Null).await.unwrap();
    let told = reason(&fleet, "b", "SecretMissing", 3).await;
    let words =
        "Secret fedrs-system/member-b does not exist, or its type is not fedrs.dev/kubeconfig";
    assert!(told.ends_with(words), "{told}");
    minutes(10).await;
    assert_eq!(fleet.sorted_layout("web"), [4, 4, 4]);
    fleet.put_secret("b", &text).await;
    reason(&fleet, "b", "Healthy", 15).await;

    let keyless = json!({ "data": { "kubeconfig": null, "config": "eA==" } });
    fleet.on_host("PATCH", &path, &keyless).await.unwrap();
    let told = reason(&fleet, "b", "InvalidKubeconfig", 3).await;
    assert!(
        told.contains("Secret fedrs-system/member-b: the Secret has no key \"kubeconfig\""),
        "{told}"
    );
    minutes(5).await;
    assert_eq!(
        (fleet.sorted_layout("web"), watcher.lowest()),
        (vec![4, 4, 4], 12)
    );
}

#[tokio::test(start_paused = true)]
async fn f5_a_deletion_waits_for_a_member_whose_secret_is_missing() {
    let fleet = joined(12, DAY).await;
    let text = fleet.kubeconfig_of("b").await;
    let path = format!("{SECRETS_PATH}/member-b");
    fleet.on_host("DELETE", &path, &Value::Null).await.unwrap();
    reason(&fleet, "b", "SecretMissing", 3).await;
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    fleet.on_host("DELETE", path, &Value::Null).await.unwrap();
    fleet
        .wait_until("told", 10, async |it| {
            it.event_reasons("web")
                .await
                .contains(&"DeletionPending".to_owned())
        })
        .await;
    minutes(3).await;
    assert!(!fleet.frs("web").await.is_null());
    fleet.put_secret("b", &text).await;
    fleet
        .wait_until("gone", 30, async |it| it.frs("web").await.is_null())
        .await;
    let labels = fleet.local_set("b", "web").unwrap()["metadata"]["labels"].clone();
    assert!(labels.get("fedrs.dev/federation").is_none(), "{labels}");
    assert_eq!(fleet.available("web"), 12, "all go on");
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_would_run_a_program_or_read_a_file_is_refused() {
    let fleet = joined(3, DAY).await;
    let text = fleet.kubeconfig_of("b").await;
    let (before, after) = text.split_once("token: ").unwrap();
    let after = after.split_once('}').unwrap().1;
    for (user, part) in [
        (
            "exec: {command: sh}",
            "exec of the user would run a program in the controller",
        ),
        (
            "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token",
            "tokenFile names a file",
        ),
    ] {
        fleet
            .put_secret("b", &format!("{before}{user}}}{after}"))
            .await;
        fleet
            .wait_until("refused", 5, async |it| {
                it.member_condition("b", "Ready").await.contains(part)
            })
            .await;
    }
    let set = json!({ "spec": { "replicas": 6 } });
    fleet.patch("web", &set).await;
    fleet
        .wait_until("the client of before goes on", 30, async |it| {
            it.sorted_layout("web") == [2, 2, 2]
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f36_a_member_whose_object_is_deleted_is_replaced_after_its_grace_and_forgotten() {
    let fleet = joined(12, DAY).await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    let path = format!("{MEMBERS_PATH}/b");
    fleet.on_host("DELETE", &path, &Value::Null).await.unwrap();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(
        fleet.sorted_layout("web"),
        [4, 4, 4],
        "within the grace period nothing moves"
    );
    fleet
        .wait_until("the others have it all", 60, async |it| {
            let layout = it.layout("web");
            (layout["a"], layout["c"]) == (6, 6)
        })
        .await;
    let told = fleet.event_reasons("web").await;
    assert!(told.contains(&"ClusterLost".to_owned()), "{told:?}");
    fleet
        .wait_until("its entry is gone", 30, async |it| {
            it.frs("web").await["status"]["clusters"]
                .as_array()
                .unwrap()
                .len()
                == 2
        })
        .await;
    assert_eq!(fleet.layout("web")["b"], 4, "what it runs goes on");
    minutes(10).await;
    assert!(
        fleet.member_cluster("b").await.is_null(),
        "it is not made again"
    );
    assert_eq!(watcher.lowest(), 12);

    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MemberCluster", "metadata": { "name": "b" },
        "spec": { "secretRef": { "name": "member-b" } },
    });
    fleet.on_host("POST", MEMBERS_PATH, &object).await.unwrap();
    fleet
        .wait_until("it is a member again", 60, async |it| {
            it.sorted_layout("web") == [4, 4, 4] && is_ready(it, "b").await
        })
        .await;
    assert_eq!(watcher.lowest(), 12);
}

#[tokio::test(start_paused = true)]
async fn f33_a_member_that_names_no_secret_any_more_is_lost_after_its_grace() {
    let fleet = joined(12, DAY).await;
    let no_secret = json!({ "spec": { "secretRef": null } });
    fleet.patch_member("b", &no_secret).await;
    let told = reason(&fleet, "b", "Removed", 3).await;
    assert!(told.contains("spec.secretRef"), "{told}");
    assert!(fleet.member_cluster("b").await["status"]["unreachableSince"].is_string());
    fleet
        .wait_until("the others have it all", 90, async |it| {
            let layout = it.layout("web");
            (layout["a"], layout["c"]) == (6, 6)
        })
        .await;
    let again = json!({ "spec": { "secretRef": { "name": "member-b" } } });
    fleet.patch_member("b", &again).await;
    fleet
        .wait_until("back", 60, async |it| it.sorted_layout("web") == [4, 4, 4])
        .await;
    fleet
        .wait_until("reachable", 5, async |it| {
            it.member_cluster("b").await["status"]["unreachableSince"].is_null()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_name_in_the_folder_and_in_a_secret_is_an_error_that_names_both() {
    let mut fleet = joined(12, DAY).await;
    fleet.add_member("b").await;
    let told = reason(&fleet, "b", "DuplicateSource", 3).await;
    for part in [
        "file b of the members' folder",
        "Secret fedrs-system/member-b",
    ] {
        assert!(told.contains(part), "{told}");
    }
    fleet
        .patch("web", &json!({ "spec": { "replicas": 18 } }))
        .await;
    fleet
        .wait_until("what worked before goes on", 20, async |it| {
            it.sorted_layout("web") == [6, 6, 6]
        })
        .await;
    fleet.remove_member("b").await;
    reason(&fleet, "b", "Healthy", 3).await;
    minutes(3).await;
    assert_eq!(
        fleet.sorted_layout("web"),
        [6, 6, 6],
        "nothing was lost by it"
    );
}

#[tokio::test(start_paused = true)]
async fn f36_a_deleted_object_of_a_member_of_the_folder_comes_back_at_once() {
    let fleet = Fleet::running(12).await;
    fleet
        .wait_until("told", 15, async |it| is_ready(it, "b").await)
        .await;
    let uid = fleet.member_cluster("b").await["metadata"]["uid"].clone();
    let path = format!("{MEMBERS_PATH}/b");
    fleet.on_host("DELETE", &path, &Value::Null).await.unwrap();
    fleet
        .wait_until("back", 3, async |it| {
            let object = it.member_cluster("b").await;
            !object.is_null() && object["metadata"]["uid"] != uid && is_ready(it, "b").await
        })
        .await;
    assert_eq!(fleet.sorted_layout("web"), [4, 4, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_before_it_ends_and_nothing_moves_by_it() {
    // Twenty minutes: renewed after ten.
    let fleet = joined(12, 1200).await;
    let text = fleet.kubeconfig_of("a").await;
    let first = fleet.member_cluster("a").await["status"]["tokenExpires"].clone();
    let version = async |it: &Fleet| it.frs("web").await["metadata"]["resourceVersion"].clone();
    minutes(9).await;
    let before = version(&fleet).await;
    assert_eq!(fleet.kubeconfig_of("a").await, text);
    for _ in 0..8 {
        minutes(3).await;
        for name in fleet.member_names() {
            assert!(is_ready(&fleet, &name).await, "{name} at {}", fleet.now());
        }
    }
    assert_ne!(fleet.kubeconfig_of("a").await, text);
    let expires = fleet.member_cluster("a").await["status"]["tokenExpires"].clone();
    assert_ne!(expires, first);
    assert_eq!(version(&fleet).await, before, "no set is told of it");
    assert_eq!(fleet.available("web"), 12);
    for name in fleet.member_names() {
        assert_eq!(fleet.event_reasons(&name).await, ["TokenRenewed"; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn f20_draining_moves_everything_away_without_a_dip_and_says_how_far_it_is() {
    let fleet = joined(30, DAY).await;
    let low =
        json!({ "clusters": { "*": { "weight": 1 }, "b": { "minReplicas": 4, "weight": 1 } } });
    fleet.create(&frs("api", 12, &low)).await;
    fleet
        .wait_until("both run", 30, async |it| it.available("api") == 12)
        .await;
    let watchers =
        [("web", 30), ("api", 12)].map(|(name, all)| (ReadyWatcher::start(&fleet, name), all));
    assert_eq!(fleet.member_condition("b", "Drained").await, "");
    fleet
        .patch_member("b", &json!({ "spec": { "drain": true } }))
        .await;
    let mut told = Vec::new();
    fleet
        .wait_until("drained", 180, async |it| {
            let condition = it.member_condition("b", "Drained").await;
            if told.last() != Some(&condition) {
                told.push(condition.clone());
            }
            condition.starts_with("True Drained: ")
        })
        .await;
    assert_eq!((fleet.layout("web")["b"], fleet.layout("api")["b"]), (0, 0));
    let going = "False Draining: ";
    assert!(
        told.iter()
            .any(|it| it.starts_with(going) && it.contains("default/api, default/web")),
        "{told:?}"
    );
    for (watcher, all) in &watchers {
        assert_eq!(watcher.lowest(), *all);
        assert!(watcher.highest() <= all + all / 4, "{}", watcher.highest());
    }
    let web = fleet.frs("web").await;
    let reason = web["status"]["clusters"][1]["message"].as_str().unwrap();
    assert_eq!(reason, "draining: no replicas");

    fleet
        .patch_member("b", &json!({ "spec": { "drain": null } }))
        .await;
    fleet
        .wait_until("it takes its share back", 60, async |it| {
            it.sorted_layout("web") == [10, 10, 10] && it.available("web") == 30
        })
        .await;
    assert_eq!(fleet.member_condition("b", "Drained").await, "");
    assert_eq!(watchers[0].0.lowest(), 30);
}

#[tokio::test(start_paused = true)]
async fn f20_a_drain_without_room_elsewhere_stays_and_says_why() {
    let fleet = joined(30, DAY).await;
    let bound = json!({ "weight": 1, "maxReplicas": 12 });
    let clusters = json!({ "a": bound, "b": { "weight": 1 }, "c": bound });
    fleet
        .patch(
            "web",
            &json!({ "spec": { "placement": { "rebalance": true, "clusters": clusters } } }),
        )
        .await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    fleet
        .patch_member("b", &json!({ "spec": { "drain": true } }))
        .await;
    fleet
        .wait_until("as far as it goes", 60, async |it| {
            let layout = it.layout("web");
            (layout["a"], layout["b"], layout["c"]) == (12, 6, 12)
        })
        .await;
    minutes(10).await;
    let web = fleet.frs("web").await["status"].clone();
    let reason = web["clusters"][1]["message"].as_str().unwrap();
    assert!(
        reason.contains("6 replicas kept: no other cluster can take them"),
        "{reason}"
    );
    assert_eq!(web["unplacedReplicas"], 6);
    let told = fleet.member_condition("b", "Drained").await;
    let words = "False Draining: 6 replicas of 1 FederatedReplicaSet left: default/web";
    assert_eq!(told, words);
    assert_eq!(watcher.lowest(), 30);
}

#[tokio::test(start_paused = true)]
async fn f40_a_member_cluster_of_another_federation_is_never_written() {
    let mut fleet = Fleet::start_clusters(FleetSpec::default()).await;
    let theirs = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "MemberCluster",
        "metadata": { "name": "a" },
        "spec": { "federation": "blue" },
    });
    let made = fleet.on_host("POST", MEMBERS_PATH, &theirs).await.unwrap();
    fleet.start_controller().await;
    // Its file makes it a member all the same.
    fleet.run(9).await;
    assert_eq!(fleet.sorted_layout("web"), [3, 3, 3]);
    minutes(1).await;
    let now = fleet.member_cluster("a").await;
    let version = |it: &Value| it["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&now), version(&made));
    let path = format!("{MEMBERS_PATH}/a");
    fleet.on_host("DELETE", &path, &Value::Null).await.unwrap();
    fleet
        .wait_until("the name is free: ours is made", 12, async |it| {
            let ours = it.member_cluster("a").await;
            ours["spec"]["federation"].is_null() && !ours["status"]["conditions"].is_null()
        })
        .await;
}
