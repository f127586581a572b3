//! Rollouts of FederatedDeployments: one budget over all members (L6, L8, L10, L14, L15), watched by the pods that are ready.

use std::{collections::BTreeSet, time::Duration};

use control_plane::ProxyMode;
use fedrs_tests::{ReadyWatcher, even, frs, test_environment::TestEnvironment};
use serde_json::{Value, json};

/// A FederatedDeployment `web` of 9 replicas, of which 2 may be unavailable, with `fields` in its spec.
pub(crate) fn web(fields: Value) -> Value {
    let mut object = frs("web", 9, &even(true));
    let spec = object["spec"].as_object_mut().unwrap();
    spec.insert("strategy".to_owned(), strategy(2, 0));
    let Value::Object(fields) = fields else {
        panic!("{fields} are no fields");
    };
    spec.extend(fields);
    object
}

pub(crate) fn strategy(unavailable: u32, surge: u32) -> Value {
    json!({ "rollingUpdate": { "maxUnavailable": unavailable, "maxSurge": surge } })
}

/// A patch of the template: a version whose pods become ready, or never do.
pub(crate) fn version(number: u32, is_good: bool) -> Value {
    let image = format!("registry.example/main:{number}");
    let gates = if is_good {
        Value::Null
    } else {
        json!([{ "conditionType": "example.com/never" }])
    };
    let containers = json!([{ "name": "main", "image": image }]);
    let pods = json!({ "containers": containers, "readinessGates": gates });
    json!({ "spec": { "template": { "spec": pods } } })
}

/// The number of the version in the template of each member's Deployment.
async fn versions(env: &TestEnvironment) -> Vec<String> {
    let mut versions = Vec::new();
    for member in env.member_names() {
        let deployment = env.local_set(&member, "web").await;
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        let image = image.as_str().unwrap_or_default();
        versions.push(image.rsplit(':').next().unwrap_or_default().to_owned());
    }
    versions
}

/// Waits until all members have the version, and all of `replicas` are updated and available.
pub(crate) async fn until_rolled_out(env: &TestEnvironment, version: &str, replicas: u64) {
    env.wait_until("the version is rolled out", 180, async |env| {
        let set = env.frs("web").await;
        let (status, generation) = (&set["status"], &set["metadata"]["generation"]);
        let is_everywhere = versions(env).await.iter().all(|found| found == version);
        is_everywhere
            && status["observedGeneration"] == *generation
            && status["updatedReplicas"] == replicas
            && status["availableReplicas"] == replicas
            && env.condition("web", "Ready").await.as_deref() == Some("True")
    })
    .await;
}

/// Waits until the status says what the controller has decided about the spec.
async fn until_observed(env: &TestEnvironment) {
    env.wait_until("the spec is observed", 30, async |env| {
        let set = env.frs("web").await;
        set["status"]["observedGeneration"] == set["metadata"]["generation"]
    })
    .await;
}

async fn reason(env: &TestEnvironment, type_: &str) -> String {
    of_condition(env, type_, "reason").await
}

async fn of_condition(env: &TestEnvironment, type_: &str, field: &str) -> String {
    let status = env.frs("web").await["status"].clone();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == type_);
    let text = found.and_then(|condition| condition[field].as_str());
    text.unwrap_or_default().to_owned()
}

/// The condition names a pod that is not available, and says why.
async fn assert_names_failing_pod(env: &TestEnvironment) {
    let message = of_condition(env, "Progressing", "message").await;
    assert!(message.contains(": pod web-"), "{message}");
}

/// Starts the set and watches it from the moment at which all of its replicas are available.
pub(crate) async fn started(env: &TestEnvironment, set: &Value) -> ReadyWatcher {
    env.run(set).await;
    env.wait_until("the set is settled", 30, async |env| {
        env.condition("web", "Ready").await.as_deref() == Some("True")
    })
    .await;
    env.watch("web").await
}

pub(crate) async fn l6_l14_a_template_is_rolled_out_within_one_budget(env: &mut TestEnvironment) {
    let pods = started(env, &web(json!({ "revisionHistoryLimit": 0 }))).await;
    env.patch("web", &version(2, true)).await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(7);
    pods.assert_never_above(9);
    let set = env.frs("web").await;
    assert_eq!(
        set["status"]["currentRevision"],
        set["status"]["updateRevision"]
    );
    // With a surge nothing is unavailable.
    env.patch("web", &json!({ "spec": { "strategy": strategy(0, 2) } }))
        .await;
    until_observed(env).await;
    pods.reset();
    env.patch("web", &version(3, true)).await;
    until_rolled_out(env, "3", 9).await;
    pods.assert_never_below(9);
    pods.assert_never_above(11);
    // Those before the one that was rolled out last are deleted.
    let path = format!(
        "/apis/apps/v1/namespaces/{}/controllerrevisions",
        env.namespace()
    );
    let revisions = env.on_host("GET", &path, &Value::Null).await.unwrap();
    assert_eq!(
        revisions["items"].as_array().unwrap().len(),
        2,
        "{revisions}"
    );
}

pub(crate) async fn l10_an_edit_and_an_undo_in_the_middle_replace_what_is_rolled_out(
    env: &mut TestEnvironment,
) {
    let pods = started(env, &web(json!({}))).await;
    for (number, is_good) in [(2, true), (3, false), (4, true), (1, true)] {
        env.patch("web", &version(number, is_good)).await;
        env.wait_until("a member has the version", 60, async |env| {
            versions(env).await.contains(&number.to_string())
        })
        .await;
    }
    until_rolled_out(env, "1", 9).await;
    pods.assert_never_below(7);
}

pub(crate) async fn l6_a_set_is_scaled_during_a_rollout(env: &mut TestEnvironment) {
    let pods = started(env, &web(json!({}))).await;
    env.patch("web", &version(2, true)).await;
    env.patch("web", &json!({ "spec": { "replicas": 15 } }))
        .await;
    until_rolled_out(env, "2", 15).await;
    pods.assert_never_below(7);
    pods.reset();
    env.patch("web", &version(3, true)).await;
    env.patch("web", &json!({ "spec": { "replicas": 6 } }))
        .await;
    until_rolled_out(env, "3", 6).await;
    pods.assert_never_below(4);
}

pub(crate) async fn l8_a_paused_rollout_scales_and_goes_on_later(env: &mut TestEnvironment) {
    let pods = started(env, &web(json!({ "paused": true }))).await;
    env.patch("web", &version(2, true)).await;
    env.patch("web", &json!({ "spec": { "replicas": 12 } }))
        .await;
    env.wait_until("it is scaled", 60, async |env| {
        env.available("web").await == 12
    })
    .await;
    assert_eq!(versions(env).await, ["1", "1", "1"]);
    env.wait_until("the status says so", 30, async |env| {
        reason(env, "Progressing").await == "RolloutPaused"
    })
    .await;
    env.patch("web", &json!({ "spec": { "paused": false } }))
        .await;
    until_rolled_out(env, "2", 12).await;
    pods.assert_never_below(9);
}

/// How many pods have the version in all members, as their Deployments say.
async fn updated(env: &TestEnvironment, version: &str) -> u64 {
    let mut updated = 0;
    for (member, has) in env.member_names().iter().zip(versions(env).await) {
        if has == version {
            let status = &env.local_set(member, "web").await["status"];
            updated += status["updatedReplicas"].as_u64().unwrap_or(0);
        }
    }
    updated
}

/// Whether the local workloads that have the version are paused, and what had begun by then has ended: all their pods are available.
async fn are_paused(env: &TestEnvironment, version: &str) -> bool {
    for (member, has) in env.member_names().iter().zip(versions(env).await) {
        let set = env.local_set(member, "web").await;
        let is_observed = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        let is_available = set["status"]["availableReplicas"] == set["spec"]["replicas"];
        let is_paused = set["spec"]["paused"] == true;
        if has == version && !(is_paused && is_observed && is_available) {
            return false;
        }
    }
    true
}

/// While a rollout is paused no more pods are updated; it is completed after that. The 15 s are for pods that must not change.
pub(crate) async fn l8_a_pause_stops_members_that_roll(env: &mut TestEnvironment) {
    members_that_roll_stop(env, "paused").await;
}

pub(crate) async fn l8_stopped_stops_members_that_roll(env: &mut TestEnvironment) {
    members_that_roll_stop(env, "stopped").await;
}

/// While the `field` of the spec is true, no pod is updated.
async fn members_that_roll_stop(env: &mut TestEnvironment, field: &str) {
    let pods = started(env, &web(json!({ "replicas": 15, "minReadySeconds": 4 }))).await;
    env.patch("web", &version(2, true)).await;
    env.wait_until("some pods are updated", 60, async |env| {
        updated(env, "2").await > 0
    })
    .await;
    env.patch("web", &json!({ "spec": { field: true } })).await;
    env.wait_until("the members that roll have stopped", 60, async |env| {
        are_paused(env, "2").await
    })
    .await;
    let at_pause = updated(env, "2").await;
    assert!(at_pause < 15, "the pause came too late");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(updated(env, "2").await, at_pause);
    env.patch("web", &json!({ "spec": { field: false } })).await;
    until_rolled_out(env, "2", 15).await;
    pods.assert_never_below(13);
    pods.assert_never_above(15);
}

/// The pods of the bad version use the budget; a good version replaces them at once.
pub(crate) async fn l10_a_bad_version_stops_by_itself_and_never_locks(env: &mut TestEnvironment) {
    let fields = json!({ "progressDeadlineSeconds": 15 });
    let pods = started(env, &web(fields)).await;
    env.patch("web", &version(2, false)).await;
    env.wait_until("the rollout has failed", 60, async |env| {
        reason(env, "Progressing").await == "ProgressDeadlineExceeded"
    })
    .await;
    assert_names_failing_pod(env).await;
    assert_eq!(reason(env, "Stalled").await, "ProgressDeadlineExceeded");
    assert!(
        versions(env).await.contains(&"1".to_owned()),
        "it has stopped"
    );
    env.patch("web", &version(3, true)).await;
    until_rolled_out(env, "3", 9).await;
    pods.assert_never_below(7);
    let events = env.event_reasons("web").await;
    assert!(events.contains(&"RolloutFailed".to_owned()), "{events:?}");
}

pub(crate) async fn l10_a_bad_version_is_undone_if_asked_for(env: &mut TestEnvironment) {
    let fields = json!({ "progressDeadlineSeconds": 15, "rollout": { "onFailure": "Undo" } });
    let pods = started(env, &web(fields)).await;
    let first = env.frs("web").await["status"]["currentRevision"].clone();
    env.patch("web", &version(2, false)).await;
    env.wait_until("the rollout is undone", 120, async |env| {
        let all = versions(env).await == ["1", "1", "1"] && env.available("web").await == 9;
        all && reason(env, "Progressing").await == "RolledBack"
    })
    .await;
    pods.assert_never_below(7);
    assert_names_failing_pod(env).await;
    let set = env.frs("web").await;
    assert_eq!(set["status"]["currentRevision"], first);
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["image"], "registry.example/main:2",
        "the spec is the user's"
    );
}

pub(crate) async fn l14_steps_have_an_order_and_wait_for_approval(env: &mut TestEnvironment) {
    let steps = json!([
        { "name": "canary", "clusters": ["b"] },
        { "name": "others", "clusters": ["*"], "approval": "Before", "maxConcurrentClusters": 1 },
    ]);
    let pods = started(env, &web(json!({ "rollout": { "steps": steps } }))).await;
    env.patch("web", &version(2, true)).await;
    env.wait_until("the canary is updated", 60, async |env| {
        reason(env, "Progressing").await == "WaitingForApproval"
    })
    .await;
    assert_eq!(versions(env).await, ["1", "2", "1"]);
    let status = env.frs("web").await["status"].clone();
    let old = json!([{ "step": "others", "revision": status["currentRevision"] }]);
    env.patch(
        "web",
        &json!({ "spec": { "rollout": { "approvals": old } } }),
    )
    .await;
    // What a step that begins is lent is in the status, before any cluster is updated.
    until_observed(env).await;
    let reason = reason(env, "Progressing").await;
    assert_eq!(
        reason, "WaitingForApproval",
        "approved for another revision"
    );
    assert_eq!(versions(env).await, ["1", "2", "1"]);
    let approval = json!([{ "step": "others", "revision": status["updateRevision"] }]);
    env.patch(
        "web",
        &json!({ "spec": { "rollout": { "approvals": approval } } }),
    )
    .await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(7);
}

pub(crate) async fn l14_a_controller_killed_during_a_rollout_continues(env: &mut TestEnvironment) {
    let pods = started(env, &web(json!({}))).await;
    env.patch("web", &version(2, true)).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        env.kill_controller().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        env.start_controller().await;
    }
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(7);
}

pub(crate) async fn l14_a_member_lost_during_a_rollout_is_updated_when_it_returns(
    env: &mut TestEnvironment,
) {
    let pods = started(env, &web(json!({}))).await;
    env.set_network("b", ProxyMode::Blackhole);
    env.patch("web", &version(2, true)).await;
    env.wait_until("the other members have the version", 120, async |env| {
        let layout = env.layout("web").await;
        layout["a"] + layout["c"] == 9 && versions(env).await == ["2", "1", "2"]
    })
    .await;
    env.set_network("b", ProxyMode::Forward(Duration::ZERO));
    env.wait_until("the member is back", 120, async |env| {
        env.sorted_layout("web").await == [3, 3, 3]
    })
    .await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(7);
}

/// Each node has 64 CPUs: two replicas of 30. Two nodes of `c` take no new pods: of its three replicas, two find room.
pub(crate) async fn f34_capacity_is_lost_and_found_during_a_rollout(env: &mut TestEnvironment) {
    let mut set = web(json!({}));
    let requests = json!({ "requests": { "cpu": "30" } });
    set["spec"]["template"]["spec"]["containers"][0]["resources"] = requests.clone();
    let pods = started(env, &set).await;
    cordon(env, true).await;
    let mut next = version(2, true);
    next["spec"]["template"]["spec"]["containers"][0]["resources"] = requests;
    env.patch("web", &next).await;
    env.wait_until(
        "all run the version, one of c elsewhere",
        180,
        async |env| {
            let layout = env.layout("web").await;
            let set = env.frs("web").await;
            let is_everywhere = versions(env).await == ["2", "2", "2"];
            layout["a"] + layout["b"] == 7
                && is_everywhere
                && set["status"]["availableReplicas"] == 9
                && set["status"]["currentRevision"] == set["status"]["updateRevision"]
        },
    )
    .await;
    pods.assert_never_below(7);
    cordon(env, false).await;
    env.wait_until("the replicas are evenly spread", 120, async |env| {
        env.sorted_layout("web").await == [3, 3, 3]
    })
    .await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(7);
}

/// Of 9 replicas, the preferences let 6 have a cluster: no other pod may become unavailable until they all have one.
pub(crate) async fn l14_replicas_without_a_cluster_use_the_budget(env: &mut TestEnvironment) {
    let most = |replicas: u32| json!({ "weight": 1, "maxReplicas": replicas });
    let limits = |replicas| json!({ "a": most(replicas), "b": most(2), "c": most(2) });
    let mut set = web(json!({ "replicas": 6 }));
    set["spec"]["placement"]["clusters"] = limits(2);
    let pods = started(env, &set).await;
    let mut next = version(2, true);
    next["spec"]["replicas"] = json!(9);
    env.patch("web", &next).await;
    let in_use = "the budget: 3 of 2 unavailable pods are in use (3 without a cluster)";
    env.wait_until("the set says what it waits for", 30, async |env| {
        of_condition(env, "Progressing", "message")
            .await
            .contains(in_use)
    })
    .await;
    pods.assert_never_below(6);
    let placement = json!({ "spec": { "placement": { "clusters": limits(5) } } });
    env.patch("web", &placement).await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(6);
}

/// Whether two of the three nodes of `c` take new pods.
async fn cordon(env: &TestEnvironment, is_cordoned: bool) {
    for node in ["c-node-1", "c-node-2"] {
        let cordon = json!({ "spec": { "unschedulable": is_cordoned } });
        let path = format!("/api/v1/nodes/{node}");
        env.on_member("c", "PATCH", &path, &cordon).await.unwrap();
    }
}

/// The Deployment of another user is taken over: no pod restarts, as its template is that of the set.
pub(crate) async fn f29_f30_existing_deployments_are_taken_over_without_a_restart(
    env: &mut TestEnvironment,
) {
    let set = web(json!({}));
    let mut deployment = set.clone();
    deployment["apiVersion"] = json!("apps/v1");
    deployment["kind"] = json!("Deployment");
    deployment["metadata"] = json!({ "name": "web" });
    let spec = deployment["spec"].as_object_mut().unwrap();
    spec.remove("placement");
    spec.insert("replicas".to_owned(), json!(3));
    let path = env.set_path("");
    for member in env.member_names() {
        let path = path.trim_end_matches('/');
        env.on_member(&member, "POST", path, &deployment)
            .await
            .unwrap();
    }
    env.wait_until("all run", 60, async |env| env.available("web").await == 9)
        .await;
    let before = pod_names(env).await;
    let pods = env.watch("web").await;
    env.create(&set).await;
    env.wait_until("the set is ready", 60, async |env| {
        let labels = labels(env).await;
        env.condition("web", "Ready").await.as_deref() == Some("True")
            && labels.iter().all(|label| label == "web")
    })
    .await;
    assert_eq!(pod_names(env).await, before);
    pods.assert_never_below(9);
    // Its pods get our labels by their template once the user changes it.
    env.patch("web", &version(2, true)).await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(7);
}

/// The recipe of docs/rollouts.md: delete the FederatedReplicaSet without its replicas, then create the FederatedDeployment.
pub(crate) async fn f29_f30_a_federated_replica_set_is_handed_over_without_a_restart(
    env: &mut TestEnvironment,
) {
    let mut replica_set = frs("web", 9, &even(true));
    replica_set["spec"]["deletionPolicy"] = json!("Orphan");
    let namespace = env.namespace();
    replica_set["metadata"]["namespace"] = json!(namespace);
    let sets = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/federatedreplicasets");
    env.on_host("POST", &sets, &replica_set).await.unwrap();
    let path = format!("{sets}/web");
    env.wait_until("all run", 60, async |env| {
        let set = env.on_host("GET", &path, &Value::Null).await.unwrap();
        set["status"]["availableReplicas"] == 9
    })
    .await;
    let before = pod_names(env).await;
    let pods = env.watch("web").await;
    env.on_host("DELETE", &path, &Value::Null).await.unwrap();
    env.wait_until("it is gone", 60, async |env| {
        env.on_host("GET", &path, &Value::Null).await.is_err()
    })
    .await;
    env.create(&web(json!({}))).await;
    env.wait_until("the set is ready", 60, async |env| {
        env.condition("web", "Ready").await.as_deref() == Some("True")
            && labels(env).await.iter().all(|label| label == "web")
    })
    .await;
    assert_eq!(pod_names(env).await, before);
    pods.assert_never_below(9);
    env.patch("web", &version(2, true)).await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(7);
}

async fn pod_names(env: &TestEnvironment) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for member in env.member_names() {
        let pods = env.pods(&member).await;
        names.extend(pods.iter().map(|pod| pod["metadata"]["name"].to_string()));
    }
    names
}

async fn labels(env: &TestEnvironment) -> Vec<Value> {
    let mut labels = Vec::new();
    for member in env.member_names() {
        let pods = env.pods(&member).await;
        labels.extend(
            pods.iter()
                .map(|pod| pod["metadata"]["labels"]["fedrs.dev/replica-set"].clone()),
        );
    }
    labels
}

/// People who pause, roll or scale the Deployment of a member.
pub(crate) async fn f29_what_others_do_to_a_deployment_is_undone(env: &mut TestEnvironment) {
    let pods = started(env, &web(json!({}))).await;
    let path = env.set_path("web");
    for (member, change) in [
        ("a", json!({ "spec": { "paused": true } })),
        ("b", version(7, true)),
        ("c", json!({ "spec": { "minReadySeconds": 60 } })),
    ] {
        env.on_member(member, "PATCH", &path, &change)
            .await
            .unwrap();
    }
    env.wait_until("all is as it was", 60, async |env| {
        let mut is_restored = versions(env).await == ["1", "1", "1"];
        for member in env.member_names() {
            let spec = env.local_set(&member, "web").await["spec"].clone();
            let is_paused = spec["paused"] == true;
            let seconds = spec["minReadySeconds"].as_u64().unwrap_or_default();
            is_restored &= !is_paused && seconds == 0;
        }
        is_restored
    })
    .await;
    until_rolled_out(env, "1", 9).await;
    // The change of the template was rolled out by the member itself, with the strategy that it had: one pod more.
    pods.assert_never_below(7);
}

/// No more than two pods start within any five seconds.
pub(crate) async fn l15_the_speed_limits_how_many_pods_start_in_a_time(env: &mut TestEnvironment) {
    let speed = json!({ "updatePortion": 2, "minDelaySeconds": 5 });
    let fields = json!({ "rollout": { "speed": speed }, "replicas": 6 });
    let mut set = web(fields);
    set["spec"]["strategy"] = strategy(4, 0);
    let pods = started(env, &set).await;
    let began = tokio::time::Instant::now();
    env.patch("web", &version(2, true)).await;
    until_rolled_out(env, "2", 6).await;
    assert!(
        began.elapsed() >= Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    pods.assert_never_below(4);
}

/// One cluster after the other replaces all of its pods at once.
pub(crate) async fn l14_recreate_updates_one_cluster_at_a_time(env: &mut TestEnvironment) {
    let mut set = web(json!({}));
    set["spec"]["strategy"] = json!({ "type": "Recreate" });
    let pods = started(env, &set).await;
    env.patch("web", &version(2, true)).await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(6);
    pods.assert_never_above(9);
}
