//! How users add, remove and drain members: Secrets, both sources of kubeconfigs, tokens, conditions.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod discovery;
mod drain;

use std::time::Duration;

use fedrs_tests::{
    MEMBERS_PATH, ReadyWatcher, SECRETS_PATH, SimFederation, SimFederationSpec, even, frs,
    kubeconfig, minutes,
};
use serde_json::{Value, json};

const DAY: i64 = 24 * 3600;

/// A federation whose members all have Secrets, in which `replicas` of `web` run.
async fn joined(replicas: u32, seconds: i64) -> SimFederation {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    for name in federation.member_names() {
        federation.join(&name, seconds).await;
    }
    federation.start_controller().await;
    federation.run(replicas).await;
    federation
}

async fn is_ready(federation: &SimFederation, name: &str) -> bool {
    federation
        .member_condition(name, "Ready")
        .await
        .starts_with("True")
}

/// Waits until the condition Ready of `name` has this reason. Returns the condition.
async fn reason(federation: &SimFederation, name: &str, reason: &str, seconds: u64) -> String {
    let has = async |federation: &SimFederation| {
        let condition = federation.member_condition(name, "Ready").await;
        condition.split([' ', ':']).nth(1) == Some(reason)
    };
    federation.wait_until(reason, seconds, has).await;
    federation.member_condition(name, "Ready").await
}

#[tokio::test(start_paused = true)]
async fn f36_members_with_secrets_are_watched_and_their_status_is_reported() {
    let mut federation = joined(12, DAY).await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    for name in federation.member_names() {
        reason(&federation, &name, "Healthy", 10).await;
    }
    federation
        .wait_until(
            "the status reports nodes and workloads",
            15,
            async |federation| {
                let status = federation.member_cluster("a").await["status"].clone();
                status["nodes"] == json!({ "total": 3, "ready": 3 }) && status["workloads"] == 1
            },
        )
        .await;
    let status = federation.member_cluster("a").await["status"].clone();
    let allocatable = json!({ "cpu": "192", "memory": "768Gi", "pods": "330" });
    assert_eq!(status["allocatable"], allocatable);
    assert_eq!(status["tokenExpires"], "2027-01-16T08:00:00Z");
    assert!(
        status["version"].as_str().unwrap().starts_with('v'),
        "{status}"
    );
    assert!(
        federation
            .member_condition("a", "Synced")
            .await
            .starts_with("True")
    );

    minutes(2).await;
    let before = federation.writes();
    minutes(30).await;
    assert_eq!(federation.writes(), before, "a settled set causes no write");
    federation.stop_controller().await;
    federation.start_controller().await;
    minutes(10).await;
    assert_eq!(federation.writes(), 0, "a restart writes nothing");
}

#[tokio::test(start_paused = true)]
async fn f33_a_revoked_token_is_no_outage_and_a_new_secret_takes_effect_immediately() {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    let mut tokens = Vec::new();
    for name in federation.member_names() {
        tokens.push(federation.join(&name, DAY).await);
    }
    federation.start_controller().await;
    federation.create(&frs("web", 12, &even(true))).await;
    federation
        .wait_until("all replicas are available", 30, async |federation| {
            federation.available("web") == 12
        })
        .await;
    let watcher = ReadyWatcher::start(&federation, "web");
    federation.revoke_tokens("b").await;
    let condition = reason(&federation, "b", "Unauthorized", 15).await;
    assert!(
        condition.contains("the member rejects the credentials"),
        "{condition}"
    );
    assert!(!condition.contains(&tokens[1]));
    minutes(10).await;
    assert_eq!(
        federation.sorted_layout("web"),
        [4, 4, 4],
        "no replica changes"
    );

    federation
        .patch("web", &json!({ "spec": { "replicas": 18 } }))
        .await;
    minutes(5).await;
    assert_eq!(federation.layout("web")["b"], 4);
    let token = federation.token("b", DAY).await;
    federation.apply_secret("b", &kubeconfig("b", &token)).await;
    reason(&federation, "b", "Healthy", 3).await;
    federation
        .wait_until("b has its share again", 20, async |federation| {
            federation.sorted_layout("web") == [6, 6, 6] && federation.available("web") == 18
        })
        .await;
    assert!(watcher.lowest() >= 12);
}

#[tokio::test(start_paused = true)]
async fn f33_a_missing_secret_changes_no_replicas() {
    let federation = joined(12, DAY).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    let text = federation.kubeconfig_of("b").await;
    let path = format!("{SECRETS_PATH}/member-b");
    federation
        .on_host("DELETE", &path, &Value::Null)
        .await
        .unwrap();
    let condition = reason(&federation, "b", "SecretMissing", 3).await;
    let expected =
        "Secret fedrs-system/member-b does not exist, or its type is not fedrs.dev/kubeconfig";
    assert!(condition.ends_with(expected), "{condition}");
    minutes(10).await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    federation.apply_secret("b", &text).await;
    reason(&federation, "b", "Healthy", 15).await;

    let keyless = json!({ "data": { "kubeconfig": null, "config": "eA==" } });
    federation.on_host("PATCH", &path, &keyless).await.unwrap();
    let condition = reason(&federation, "b", "InvalidKubeconfig", 3).await;
    assert!(
        condition.contains("Secret fedrs-system/member-b: the Secret has no key \"kubeconfig\""),
        "{condition}"
    );
    minutes(5).await;
    assert_eq!(
        (federation.sorted_layout("web"), watcher.lowest()),
        (vec![4, 4, 4], 12)
    );
}

#[tokio::test(start_paused = true)]
async fn f5_a_deletion_waits_for_a_member_whose_secret_is_missing() {
    let federation = joined(12, DAY).await;
    let text = federation.kubeconfig_of("b").await;
    let path = format!("{SECRETS_PATH}/member-b");
    federation
        .on_host("DELETE", &path, &Value::Null)
        .await
        .unwrap();
    reason(&federation, "b", "SecretMissing", 3).await;
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    federation
        .on_host("DELETE", path, &Value::Null)
        .await
        .unwrap();
    federation
        .wait_until("the condition is reported", 10, async |federation| {
            federation
                .event_reasons("web")
                .await
                .contains(&"DeletionPending".to_owned())
        })
        .await;
    minutes(3).await;
    assert!(!federation.frs("web").await.is_null());
    federation.apply_secret("b", &text).await;
    federation
        .wait_until("the object is deleted", 30, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    let labels = federation.local_set("b", "web").unwrap()["metadata"]["labels"].clone();
    assert!(labels.get("fedrs.dev/federation").is_none(), "{labels}");
    assert_eq!(federation.available("web"), 12, "all replicas keep running");
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_runs_a_program_or_reads_a_file_is_rejected() {
    let federation = joined(3, DAY).await;
    let text = federation.kubeconfig_of("b").await;
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
        federation
            .apply_secret("b", &format!("{before}{user}}}{after}"))
            .await;
        federation
            .wait_until("refused", 5, async |federation| {
                federation
                    .member_condition("b", "Ready")
                    .await
                    .contains(part)
            })
            .await;
    }
    let set = json!({ "spec": { "replicas": 6 } });
    federation.patch("web", &set).await;
    federation
        .wait_until("the previous client stays in use", 30, async |federation| {
            federation.sorted_layout("web") == [2, 2, 2]
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f36_a_deleted_member_cluster_is_lost_after_its_grace_period() {
    let federation = joined(12, DAY).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    let path = format!("{MEMBERS_PATH}/b");
    federation
        .on_host("DELETE", &path, &Value::Null)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(
        federation.sorted_layout("web"),
        [4, 4, 4],
        "nothing moves within the grace period"
    );
    federation
        .wait_until(
            "the other clusters run all replicas",
            60,
            async |federation| {
                let layout = federation.layout("web");
                (layout["a"], layout["c"]) == (6, 6)
            },
        )
        .await;
    let reasons = federation.event_reasons("web").await;
    assert!(reasons.contains(&"ClusterLost".to_owned()), "{reasons:?}");
    federation
        .wait_until(
            "its entry in the status is removed",
            30,
            async |federation| {
                federation.frs("web").await["status"]["clusters"]
                    .as_array()
                    .unwrap()
                    .len()
                    == 2
            },
        )
        .await;
    assert_eq!(
        federation.layout("web")["b"],
        4,
        "its replicas keep running"
    );
    minutes(10).await;
    assert!(
        federation.member_cluster("b").await.is_null(),
        "the local set is not recreated"
    );
    assert_eq!(watcher.lowest(), 12);

    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MemberCluster", "metadata": { "name": "b" },
        "spec": { "secretRef": { "name": "member-b" } },
    });
    federation
        .on_host("POST", MEMBERS_PATH, &object)
        .await
        .unwrap();
    federation
        .wait_until("b is a member again", 60, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4] && is_ready(federation, "b").await
        })
        .await;
    assert_eq!(watcher.lowest(), 12);
}

#[tokio::test(start_paused = true)]
async fn f33_a_member_without_a_secret_reference_is_lost_after_its_grace_period() {
    let federation = joined(12, DAY).await;
    let no_secret = json!({ "spec": { "secretRef": null } });
    federation.patch_member("b", &no_secret).await;
    let condition = reason(&federation, "b", "Removed", 3).await;
    assert!(condition.contains("spec.secretRef"), "{condition}");
    assert!(federation.member_cluster("b").await["status"]["unreachableSince"].is_string());
    federation
        .wait_until(
            "the other clusters run all replicas",
            90,
            async |federation| {
                let layout = federation.layout("web");
                (layout["a"], layout["c"]) == (6, 6)
            },
        )
        .await;
    let again = json!({ "spec": { "secretRef": { "name": "member-b" } } });
    federation.patch_member("b", &again).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    let layout = federation.layout("web");
    assert_eq!(
        (layout["a"], layout["c"]),
        (6, 6),
        "nothing is removed before it has been healthy for a minute"
    );
    federation
        .wait_until("back", 60, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4]
        })
        .await;
    federation
        .wait_until("reachable", 5, async |federation| {
            federation.member_cluster("b").await["status"]["unreachableSince"].is_null()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f36_a_member_with_a_file_and_a_secret_is_an_error_that_names_both() {
    let mut federation = joined(12, DAY).await;
    federation.add_member("b").await;
    let condition = reason(&federation, "b", "DuplicateSource", 3).await;
    for part in ["file b.yaml", "Secret fedrs-system/member-b"] {
        assert!(condition.contains(part), "{condition}");
    }
    federation
        .patch("web", &json!({ "spec": { "replicas": 18 } }))
        .await;
    federation
        .wait_until(
            "the previous kubeconfig stays in use",
            20,
            async |federation| federation.sorted_layout("web") == [6, 6, 6],
        )
        .await;
    federation.remove_member("b").await;
    reason(&federation, "b", "Healthy", 3).await;
    minutes(3).await;
    assert_eq!(
        federation.sorted_layout("web"),
        [6, 6, 6],
        "no replica stopped"
    );
}

#[tokio::test(start_paused = true)]
async fn f36_a_deleted_member_cluster_with_a_file_is_recreated() {
    let federation = SimFederation::running(12).await;
    federation
        .wait_until("the condition is reported", 15, async |federation| {
            is_ready(federation, "b").await
        })
        .await;
    let uid = federation.member_cluster("b").await["metadata"]["uid"].clone();
    let path = format!("{MEMBERS_PATH}/b");
    federation
        .on_host("DELETE", &path, &Value::Null)
        .await
        .unwrap();
    federation
        .wait_until("back", 3, async |federation| {
            let object = federation.member_cluster("b").await;
            !object.is_null() && object["metadata"]["uid"] != uid && is_ready(federation, "b").await
        })
        .await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_before_it_expires_and_no_replica_moves() {
    // Twenty minutes; the controller renews the token after ten.
    let federation = joined(12, 1200).await;
    let text = federation.kubeconfig_of("a").await;
    let first = federation.member_cluster("a").await["status"]["tokenExpires"].clone();
    let version = async |object: &SimFederation| {
        object.frs("web").await["metadata"]["resourceVersion"].clone()
    };
    minutes(9).await;
    let before = version(&federation).await;
    assert_eq!(federation.kubeconfig_of("a").await, text);
    for _ in 0..8 {
        minutes(3).await;
        for name in federation.member_names() {
            assert!(
                is_ready(&federation, &name).await,
                "{name} at {}",
                federation.now()
            );
        }
    }
    assert_ne!(federation.kubeconfig_of("a").await, text);
    let expires = federation.member_cluster("a").await["status"]["tokenExpires"].clone();
    assert_ne!(expires, first);
    assert_eq!(version(&federation).await, before, "no local set changed");
    assert_eq!(federation.available("web"), 12);
    for name in federation.member_names() {
        assert_eq!(federation.event_reasons(&name).await, ["TokenRenewed"; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn f40_a_member_cluster_of_another_federation_is_never_written() {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    let theirs = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "MemberCluster",
        "metadata": { "name": "a" },
        "spec": { "federation": "blue" },
    });
    let made = federation
        .on_host("POST", MEMBERS_PATH, &theirs)
        .await
        .unwrap();
    federation.start_controller().await;
    // The file in the directory makes it a member nevertheless.
    federation.run(9).await;
    assert_eq!(federation.sorted_layout("web"), [3, 3, 3]);
    minutes(1).await;
    let now = federation.member_cluster("a").await;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&now), version(&made));
    let path = format!("{MEMBERS_PATH}/a");
    federation
        .on_host("DELETE", &path, &Value::Null)
        .await
        .unwrap();
    federation
        .wait_until(
            "the MemberCluster is created once the name is free",
            12,
            async |federation| {
                let ours = federation.member_cluster("a").await;
                ours["spec"]["federation"].is_null() && !ours["status"]["conditions"].is_null()
            },
        )
        .await;
}
