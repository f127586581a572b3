//! Compares the recorded objects with those that the controller writes in scenarios on embedded clusters.
//! `INSTA_UPDATE=always cargo test -p fedrs-tests --test recorded` records them again.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::fs;

use fedrs_tests::{SimFederation, SimFederationSpec, even, frs, minutes, recorded::Recorded};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

/// Invalid preferences.
const INVALID: &str = r#"{"clusters": 5}"#;
/// The annotation for preferences.
const PREFERENCES: &str = "federation.kubernetes.io/replica-set-preferences";

/// Compares an object with the recorded one of this name.
fn assert_recorded(name: &str, mut object: Value) {
    let recorded = Recorded::named(name).unwrap();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["managedFields", "resourceVersion", "uid"] {
        metadata.remove(field);
    }
    let text = serde_saphyr::to_string(&object).unwrap();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(recorded.path(), &text).unwrap();
    }
    let before = fs::read_to_string(recorded.path()).unwrap_or_default();
    assert!(
        before == text,
        "{name} is no longer what the controller writes: read it and record it again \
         (INSTA_UPDATE=always)\n{text}"
    );
}

/// The spec is the user's: a tool that applies it from git would undo what the controller changes there.
fn assert_owns_no_spec(object: &Value) {
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    assert!(!managers.is_empty());
    for entry in managers {
        let is_ours = entry["manager"] == fedrs_api::names::FIELD_MANAGER;
        let has_spec = entry["fieldsV1"].get("f:spec").is_some();
        assert!(!(is_ours && has_spec), "{entry}");
    }
}

/// Waits until the condition of `web` has this status, with the reason, if one is given.
async fn wait_for_condition(
    federation: &SimFederation,
    type_: &str,
    status: &str,
    reason: Option<&str>,
) {
    let what = format!("{type_}={status} {reason:?}");
    federation
        .wait_until(&what, 120, async |federation| {
            let frs = federation.frs("web").await;
            let conditions = frs["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|condition| {
                condition["type"] == type_
                    && condition["status"] == status
                    && reason.is_none_or(|reason| condition["reason"] == reason)
            })
        })
        .await;
}

async fn record_set(federation: &SimFederation, name: &str) {
    let set = federation.frs("web").await;
    assert_owns_no_spec(&set);
    assert_recorded(name, set);
}

async fn record_member(federation: &SimFederation, name: &str) {
    assert_recorded(name, federation.member_cluster("a").await);
}

#[tokio::test(start_paused = true)]
async fn a_set_is_new_then_reconciling_then_ready_then_edited_then_deleting() {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    federation.create(&frs("web", 6, &even(true))).await;
    record_set(&federation, "set-new").await;
    federation.start_controller().await;
    wait_for_condition(&federation, "Reconciling", "True", None).await;
    record_set(&federation, "set-reconciling").await;
    wait_for_condition(&federation, "Ready", "True", None).await;
    record_set(&federation, "set-ready").await;
    federation.stop_controller().await;
    let scaled = json!({ "spec": { "replicas": 9 } });
    federation.patch("web", &scaled).await;
    record_set(&federation, "set-edited").await;
    federation.delete("web").await;
    record_set(&federation, "set-deleting").await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_set() {
    let federation = SimFederation::running(6).await;
    wait_for_condition(&federation, "Ready", "True", None).await;
    let paused = json!({ "spec": { "paused": true } });
    federation.patch("web", &paused).await;
    wait_for_condition(&federation, "Paused", "True", None).await;
    record_set(&federation, "set-paused").await;
}

#[tokio::test(start_paused = true)]
async fn f4_a_new_set_with_invalid_preferences() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let mut set = frs("web", 6, &Value::Null);
    set["spec"].as_object_mut().unwrap().remove("placement");
    set["metadata"]["annotations"] = json!({ PREFERENCES: INVALID });
    federation.create(&set).await;
    wait_for_condition(&federation, "Stalled", "True", Some("InvalidSpec")).await;
    record_set(&federation, "set-invalid-new").await;
}

#[tokio::test(start_paused = true)]
async fn f4_a_set_that_is_edited_to_invalid_preferences_keeps_its_counts_up_to_date() {
    let federation = SimFederation::running(6).await;
    wait_for_condition(&federation, "Ready", "True", None).await;
    let patch = json!({
        "metadata": { "annotations": { PREFERENCES: INVALID } },
        "spec": { "placement": null, "replicas": 30 },
    });
    federation.patch("web", &patch).await;
    wait_for_condition(&federation, "Stalled", "True", Some("InvalidSpec")).await;
    record_set(&federation, "set-invalid-edited").await;
    let path = "/api/v1/namespaces/default/pods";
    let pods = federation.on_member("a", "GET", path, &Value::Null).await;
    let pod = pods.unwrap()["items"][0]["metadata"]["name"].clone();
    let creations = RequestMatcher::all().verb(Verb::Create).resource("pods");
    let refusal = Status::new(403, "Forbidden", "the quota is exceeded");
    federation
        .member("a")
        .faults()
        .refuse(creations, 1000, refusal);
    let path = format!("{path}/{}", pod.as_str().unwrap());
    let deleted = federation
        .on_member("a", "DELETE", &path, &Value::Null)
        .await;
    deleted.unwrap();
    federation
        .wait_until("the status counts five pods", 10, async |federation| {
            federation.frs("web").await["status"]["readyReplicas"] == 5
        })
        .await;
    wait_for_condition(&federation, "Stalled", "True", Some("InvalidSpec")).await;
}

#[tokio::test(start_paused = true)]
async fn f18_a_set_that_no_cluster_has_capacity_for() {
    let mut spec = SimFederationSpec::default();
    for member in &mut spec.members {
        (member.nodes, member.pods_per_node) = (1, 1);
    }
    let federation = SimFederation::start(spec).await;
    federation.create(&frs("web", 6, &even(true))).await;
    wait_for_condition(&federation, "Placed", "False", Some("InsufficientCapacity")).await;
    record_set(&federation, "set-no-capacity").await;
}

#[tokio::test(start_paused = true)]
async fn f3_a_set_whose_placement_names_no_member() {
    let federation = SimFederation::running(6).await;
    wait_for_condition(&federation, "Ready", "True", None).await;
    let clusters = json!({ "*": null, "aa": { "weight": 1 } });
    let patch = json!({ "spec": { "placement": { "clusters": clusters } } });
    federation.patch("web", &patch).await;
    wait_for_condition(&federation, "Placed", "False", Some("NoMatchingCluster")).await;
    record_set(&federation, "set-no-matching-cluster").await;
}

/// A federation with the FederatedDeployment `web`, complete, with `fields` in its spec.
async fn deployed(fields: &Value) -> SimFederation {
    let mut federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.deploys("web");
    let mut set = frs("web", 6, &even(true));
    let spec = set["spec"].as_object_mut().unwrap();
    spec.extend(fields.as_object().unwrap().clone());
    federation.create(&set).await;
    wait_for_condition(&federation, "Ready", "True", None).await;
    federation
}

/// A patch of the template: a version whose pods become ready, or never do.
fn version(number: u32, is_good: bool) -> Value {
    let gates = json!([{ "conditionType": "example.com/never" }]);
    let containers =
        json!([{ "name": "main", "image": format!("registry.example/main:{number}") }]);
    let pods = json!({ "containers": containers, "readinessGates": if is_good { Value::Null } else { gates } });
    json!({ "spec": { "template": { "spec": pods } } })
}

async fn wait_until_observed(federation: &SimFederation) {
    federation
        .wait_until("the spec is observed", 60, async |federation| {
            let set = federation.frs("web").await;
            set["status"]["observedGeneration"] == set["metadata"]["generation"]
        })
        .await;
}

async fn wait_for_rollout(federation: &SimFederation, status: &str, reason: &str) {
    wait_for_condition(federation, "Progressing", status, Some(reason)).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_new_then_reconciling_then_ready_then_edited_then_deleting() {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    federation.deploys("web");
    federation.create(&frs("web", 6, &even(true))).await;
    record_set(&federation, "deployment-new").await;
    federation.start_controller().await;
    wait_for_condition(&federation, "Reconciling", "True", None).await;
    record_set(&federation, "deployment-reconciling").await;
    wait_for_condition(&federation, "Ready", "True", None).await;
    record_set(&federation, "deployment-ready").await;
    let paused = json!({ "spec": { "paused": true } });
    federation.patch("web", &paused).await;
    wait_until_observed(&federation).await;
    record_set(&federation, "deployment-ready-paused").await;
    federation.stop_controller().await;
    federation.patch("web", &version(2, true)).await;
    record_set(&federation, "deployment-edited").await;
    federation.delete("web").await;
    record_set(&federation, "deployment-deleting").await;
}

#[tokio::test(start_paused = true)]
async fn l8_l14_a_deployment_rolls_out_is_paused_and_stopped_then_soaks_and_waits_for_its_approval()
{
    let steps = json!([
        { "name": "canary", "clusters": ["a"], "soakSeconds": 600 },
        { "name": "others", "clusters": ["*"], "approval": "Before" },
    ]);
    let federation = deployed(&json!({ "rollout": { "steps": steps } })).await;
    federation.patch("web", &version(2, true)).await;
    wait_for_rollout(&federation, "True", "RollingOut").await;
    record_set(&federation, "deployment-rolling-out").await;
    for (field, reason, name) in [
        ("paused", "RolloutPaused", "deployment-paused"),
        ("stopped", "RolloutPaused", "deployment-stopped"),
    ] {
        let held = |is_held: bool| json!({ "spec": { field: is_held } });
        federation.patch("web", &held(true)).await;
        wait_until_observed(&federation).await;
        let progressing = federation.frs("web").await["status"]["conditions"].clone();
        let has_reason = |condition: &Value| condition["reason"] == reason;
        assert!(progressing.as_array().unwrap().iter().any(has_reason));
        record_set(&federation, name).await;
        federation.patch("web", &held(false)).await;
    }
    wait_for_rollout(&federation, "True", "Soaking").await;
    record_set(&federation, "deployment-soaking").await;
    minutes(10).await;
    wait_for_rollout(&federation, "True", "WaitingForApproval").await;
    record_set(&federation, "deployment-waiting-for-approval").await;
    let revision = federation.frs("web").await["status"]["updateRevision"].clone();
    let approvals = json!([{ "step": "others", "revision": revision }]);
    let approved = json!({ "spec": { "rollout": { "approvals": approvals } } });
    federation.patch("web", &approved).await;
    wait_for_condition(&federation, "Ready", "True", None).await;
    record_set(&federation, "deployment-rolled-out").await;
}

#[tokio::test(start_paused = true)]
async fn l10_a_deployment_whose_rollout_has_failed_and_one_that_is_undone() {
    for (policy, reason, name) in [
        ("Stop", "ProgressDeadlineExceeded", "deployment-failed"),
        ("Undo", "RolledBack", "deployment-undone"),
    ] {
        let rollout = json!({ "onFailure": policy });
        let fields = json!({ "progressDeadlineSeconds": 60, "rollout": rollout });
        let federation = deployed(&fields).await;
        federation.patch("web", &version(2, false)).await;
        wait_for_rollout(&federation, "False", reason).await;
        if policy == "Undo" {
            federation
                .wait_until("all pods are available", 60, async |federation| {
                    federation.frs("web").await["status"]["availableReplicas"] == 6
                })
                .await;
        }
        record_set(&federation, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn f4_a_deployment_with_invalid_preferences() {
    let mut federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.deploys("web");
    let mut set = frs("web", 6, &Value::Null);
    set["spec"].as_object_mut().unwrap().remove("placement");
    set["metadata"]["annotations"] = json!({ PREFERENCES: INVALID });
    federation.create(&set).await;
    wait_for_condition(&federation, "Stalled", "True", Some("InvalidSpec")).await;
    record_set(&federation, "deployment-invalid").await;
}

#[tokio::test(start_paused = true)]
async fn a_member_is_new_then_ready_then_cordoned_then_draining_then_drained() {
    let mut federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "MemberCluster",
        "metadata": { "name": "a" },
        "spec": {},
    });
    let members = fedrs_tests::MEMBERS_PATH;
    federation.on_host("POST", members, &object).await.unwrap();
    record_member(&federation, "member-new").await;
    federation.start_controller().await;
    federation.run(6).await;
    let ready = async |federation: &SimFederation| {
        let status = federation.member_cluster("a").await["status"].clone();
        let condition = federation.member_condition("a", "Ready").await;
        condition.starts_with("True") && status["workloads"] == 1
    };
    federation.wait_until("a is ready", 60, ready).await;
    record_member(&federation, "member-ready").await;
    let observed = async |federation: &SimFederation| {
        let member = federation.member_cluster("a").await;
        member["status"]["observedGeneration"] == member["metadata"]["generation"]
    };
    let cordon = json!({ "spec": { "unschedulable": true } });
    federation.patch_member("a", &cordon).await;
    federation
        .wait_until("the cordon is observed", 60, observed)
        .await;
    record_member(&federation, "member-cordoned").await;
    let drain = json!({ "spec": { "drain": true } });
    federation.patch_member("a", &drain).await;
    for (status, name) in [("False", "member-draining"), ("True", "member-drained")] {
        federation
            .wait_until(name, 120, async |federation| {
                let drained = federation.member_condition("a", "Drained").await;
                drained.starts_with(status)
            })
            .await;
        record_member(&federation, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn f33_a_member_that_is_unreachable() {
    let federation = SimFederation::running(6).await;
    federation.member("a").faults().set_unreachable(true);
    federation
        .wait_until("a is unreachable", 120, async |federation| {
            let ready = federation.member_condition("a", "Ready").await;
            ready.starts_with("False Unreachable")
        })
        .await;
    record_member(&federation, "member-unreachable").await;
}
