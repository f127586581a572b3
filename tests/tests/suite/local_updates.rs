//! What the controller of LocalReplicaSets does to the pods of a member: updates, in place or recreated, within budget and speed;
//! evictions; and what is left to do when it is killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::Duration,
};

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use futures::TryStreamExt;
use jiff::Timestamp;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use crate::{
    local_sets, local_updates,
    member_set::{Kind, MEMBER, MemberSet, name_of, text},
};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario!(
            local_updates::l13_a_set_is_scaled_to_many_pods_and_back,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l12_l14_an_image_is_updated_in_place,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l12_cpu_is_changed_in_running_pods,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l12_l14_other_fields_recreate_pods_under_their_names,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l22_a_bad_image_does_not_lock,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l14_a_controller_killed_during_an_update_continues,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l15_the_speed_holds_by_the_times_of_the_pods,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l17_clients_leave_pods_before_they_are_removed_or_restarted,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l18_l20_pods_are_evicted_by_annotation_and_by_node,
            LocalReplicaSets
        ),
        scenario!(
            local_updates::l20_kubectl_drains_nodes_during_an_update,
            LocalReplicaSets,
            Kubectl
        ),
        scenario!(
            local_updates::c1_kubectl_shows_and_scales_a_set,
            LocalReplicaSets,
            Kubectl
        ),
    ]
}

pub(crate) fn local(env: &TestEnvironment) -> MemberSet<'_> {
    MemberSet {
        env,
        kind: Kind::Local,
    }
}

/// Starts the controller, and a set of which `unavailable` pods may be unavailable.
pub(crate) async fn started(env: &mut TestEnvironment, replicas: usize, unavailable: usize) {
    started_with(env, replicas, unavailable, 0).await;
}

/// As [`started`], with pods that are available after so many seconds.
async fn started_with(
    env: &mut TestEnvironment,
    replicas: usize,
    unavailable: usize,
    min_ready_seconds: u32,
) {
    env.start_local_controller(MEMBER).await;
    let fields = json!({
        "updateMode": "Rolling",
        "minReadySeconds": min_ready_seconds,
        "deploymentStrategy": { "maxUnavailable": unavailable },
    });
    local(env).create(replicas, fields).await;
    until_updated(env, replicas).await;
}

/// Waits until the set has exactly `replicas` pods, all of the current template and available.
pub(crate) async fn until_updated(env: &TestEnvironment, replicas: usize) {
    let set = local(env);
    set.settle(replicas).await;
    set.until("all pods are updated", async || {
        set.count("updatedAvailableReplicas").await == replicas as u64
            && set.condition("Ready").await.starts_with("True")
    })
    .await;
}

fn container(image: &str, env: &Value) -> Value {
    let container = json!({ "name": "main", "image": image, "env": env });
    json!({ "spec": { "template": { "spec": { "containers": [container] } } } })
}

fn image(image: &str) -> Value {
    container(image, &Value::Null)
}

/// Something of each pod, by name.
pub(crate) async fn of_pods(
    env: &TestEnvironment,
    of: impl Fn(&Value) -> String,
) -> BTreeMap<String, String> {
    let pods = local(env).owned().await;
    pods.iter().map(|pod| (name_of(pod), of(pod))).collect()
}

fn uid(pod: &Value) -> String {
    text(&pod["metadata"]["uid"]).to_owned()
}

/// What an update in place keeps.
fn place(pod: &Value) -> String {
    format!(
        "{} {} {}",
        uid(pod),
        pod["spec"]["nodeName"],
        pod["status"]["podIP"]
    )
}

fn container_id(pod: &Value) -> String {
    text(&pod["status"]["containerStatuses"][0]["containerID"]).to_owned()
}

fn differ_everywhere(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> bool {
    before.keys().eq(after.keys()) && before.iter().all(|(name, value)| after[name] != *value)
}

async fn l13_a_set_is_scaled_to_many_pods_and_back(env: &mut TestEnvironment) {
    started(env, 0, 1).await;
    for replicas in [60, 5, 0] {
        local(env).scale(replicas).await;
        until_updated(env, replicas).await;
    }
}

async fn l12_l14_an_image_is_updated_in_place(env: &mut TestEnvironment) {
    started(env, 6, 2).await;
    let (places, ids) = (of_pods(env, place).await, of_pods(env, container_id).await);
    let pods = env.watch(local(env).name()).await;
    local(env).patch(&image("registry.example/main:2")).await;
    until_updated(env, 6).await;
    assert_eq!(of_pods(env, place).await, places);
    assert!(differ_everywhere(&ids, &of_pods(env, container_id).await));
    let images = of_pods(env, |pod| {
        let status = &pod["status"]["containerStatuses"][0];
        format!("{} {}", status["image"], status["restartCount"])
    });
    let images = images.await;
    let is_restarted = |text: &String| text == "\"registry.example/main:2\" 1";
    assert!(images.values().all(is_restarted), "{images:?}");
    pods.assert_never_below(4);
}

async fn l12_cpu_is_changed_in_running_pods(env: &mut TestEnvironment) {
    started(env, 6, 2).await;
    let cpu = |amount: &str| {
        let resources = json!({ "requests": { "cpu": amount } });
        let container =
            json!({ "name": "main", "image": "registry.example/main:1", "resources": resources });
        json!({ "spec": {
            "deploymentStrategy": { "resourceUpdates": "Resize" },
            "template": { "spec": { "containers": [container] } },
        } })
    };
    local(env).patch(&cpu("100m")).await;
    until_updated(env, 6).await;
    let running = |pod: &Value| format!("{} {}", place(pod), container_id(pod));
    let before = of_pods(env, running).await;
    let pods = env.watch(local(env).name()).await;
    local(env).patch(&cpu("200m")).await;
    until_updated(env, 6).await;
    let after = of_pods(env, running).await;
    assert_eq!(after, before, "no container is restarted");
    let amounts = of_pods(env, |pod| {
        text(&pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"]).to_owned()
    });
    let amounts = amounts.await;
    assert!(amounts.values().all(|cpu| cpu == "200m"), "{amounts:?}");
    // Their containers run on.
    pods.assert_never_below(6);
}

async fn l12_l14_other_fields_recreate_pods_under_their_names(env: &mut TestEnvironment) {
    started(env, 6, 2).await;
    let node = |pod: &Value| text(&pod["spec"]["nodeName"]).to_owned();
    let (uids, nodes) = (of_pods(env, uid).await, of_pods(env, node).await);
    let pods = env.watch(local(env).name()).await;
    let variables = json!([{ "name": "LEVEL", "value": "debug" }]);
    let change = container("registry.example/main:1", &variables);
    local(env).patch(&change).await;
    until_updated(env, 6).await;
    assert!(differ_everywhere(&uids, &of_pods(env, uid).await));
    assert_eq!(of_pods(env, node).await, nodes);
    pods.assert_never_below(4);
    pods.assert_never_above(6);
}

/// Its pods use up the budget, and the next template replaces them.
async fn l22_a_bad_image_does_not_lock(env: &mut TestEnvironment) {
    started(env, 6, 2).await;
    let pods = env.watch(local(env).name()).await;
    let mut bad = image("registry.invalid/main:2");
    // On embedded clusters.
    let fails = json!({ "sim-cluster.dev/fail": "image-pull" });
    bad["spec"]["template"]["metadata"] = json!({ "annotations": fails });
    let set = local(env);
    set.patch(&bad).await;
    set.until("the failed pods use the budget", async || {
        set.condition("BudgetUsedByFailures").await == "True PodsFailed"
    })
    .await;
    let mut good = image("registry.example/main:3");
    good["spec"]["template"]["metadata"] = json!({ "annotations": null });
    set.patch(&good).await;
    until_updated(env, 6).await;
    pods.assert_never_below(4);
}

async fn l14_a_controller_killed_during_an_update_continues(env: &mut TestEnvironment) {
    started(env, 20, 3).await;
    let pods = env.watch(local(env).name()).await;
    let variables = json!([{ "name": "LEVEL", "value": "debug" }]);
    let changes = [
        image("registry.example/main:2"),
        container("registry.example/main:3", &variables),
        image("registry.example/main:4"),
    ];
    for (change, pause) in changes.iter().zip([150, 400, 900]) {
        local(env).patch(change).await;
        for _ in 0..3 {
            sleep(Duration::from_millis(pause)).await;
            env.kill_local_controller(MEMBER).await;
            env.start_local_controller(MEMBER).await;
        }
        until_updated(env, 20).await;
    }
    pods.assert_never_below(17);
    pods.assert_never_above(20);
}

/// Creations are times of the API server in whole seconds; a deletion and its creation are apart by less than one more.
async fn l15_the_speed_holds_by_the_times_of_the_pods(env: &mut TestEnvironment) {
    const DELAY: i64 = 8;
    started(env, 6, 4).await;
    let speed = json!({ "updatePortion": 2, "minDelay": DELAY });
    let variables = json!([{ "name": "LEVEL", "value": "debug" }]);
    let mut change = container("registry.example/main:1", &variables);
    change["spec"]["deploymentStrategy"] = json!({ "deploySpeed": speed });
    let before = of_pods(env, uid).await;
    local(env).patch(&change).await;
    until_updated(env, 6).await;
    assert!(differ_everywhere(&before, &of_pods(env, uid).await));
    let created = |pod: &Value| text(&pod["metadata"]["creationTimestamp"]).to_owned();
    let created = of_pods(env, created).await;
    let created = created
        .values()
        .map(|time| time.parse::<Timestamp>().unwrap());
    let mut created: Vec<_> = created.map(Timestamp::as_second).collect();
    created.sort_unstable();
    for window in created.windows(3) {
        assert!(window[2] - window[0] >= DELAY - 2, "{created:?}");
    }
}

/// `drainSeconds`, by the times of the pods: in place, recreated, and with fewer replicas.
async fn l17_clients_leave_pods_before_they_are_removed_or_restarted(env: &mut TestEnvironment) {
    const DRAIN: i64 = 4;
    env.start_local_controller(MEMBER).await;
    // Embedded clusters remove a pod at once, unless it takes time to stop.
    let stops = json!({ "sim-cluster.dev/stop-seconds": "1" });
    let fields = json!({
        "updateMode": "Rolling",
        "drainSeconds": DRAIN,
        "deploymentStrategy": { "maxUnavailable": 2 },
        "template": { "metadata": { "annotations": stops } },
    });
    local(env).create(6, fields).await;
    until_updated(env, 6).await;
    let pods = env.watch(local(env).name()).await;
    let mut removals = Removals::watch(env).await;
    let uids = of_pods(env, uid).await;
    local(env).patch(&image("registry.example/main:2")).await;
    until_updated(env, 6).await;
    assert_eq!(of_pods(env, uid).await, uids);
    for pod in local(env).owned().await {
        let record = text(&pod["metadata"]["annotations"]["fedrs.dev/in-place-update"]);
        let record: Value = serde_json::from_str(record).unwrap();
        let drained = time(&record["at"]) - time(&record["drained"]);
        assert!(drained >= DRAIN, "{record}");
    }
    let variables = json!([{ "name": "LEVEL", "value": "debug" }]);
    local(env)
        .patch(&container("registry.example/main:2", &variables))
        .await;
    assert_drained(&removals.next(6).await, DRAIN);
    until_updated(env, 6).await;
    pods.assert_never_below(4);
    local(env).scale(3).await;
    assert_drained(&removals.next(3).await, DRAIN);
    until_updated(env, 3).await;
}

/// The pods of the set as they were when their removal began.
struct Removals(mpsc::UnboundedReceiver<Value>);

impl Removals {
    /// Watches from now on. A pod may be gone a moment later: only a watch sees each.
    async fn watch(env: &TestEnvironment) -> Self {
        let client = env.clients().1[MEMBER].clone();
        let path = format!("/api/v1/namespaces/{}/pods", env.namespace());
        let list = env.on_member(MEMBER, "GET", &path, &Value::Null).await;
        let list = list.unwrap();
        let version = text(&list["metadata"]["resourceVersion"]);
        let watch = http::Request::get(format!("{path}?watch=1&resourceVersion={version}"));
        let watch = watch.body(Vec::new()).unwrap();
        let (seen, pods) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let events = client.request_events::<Value>(watch).await.unwrap();
            let mut events = pin!(events);
            let mut known = BTreeSet::new();
            while let Ok(Some(event)) = events.try_next().await {
                if let WatchEvent::Modified(pod) = event
                    && !pod["metadata"]["deletionTimestamp"].is_null()
                    && known.insert(uid(&pod))
                    && seen.send(pod).is_err()
                {
                    break;
                }
            }
        });
        Self(pods)
    }

    /// So many that are removed next.
    async fn next(&mut self, count: usize) -> Vec<Value> {
        let mut pods = Vec::new();
        while pods.len() < count {
            let pod = timeout(Duration::from_secs(90), self.0.recv()).await;
            pods.push(pod.expect("pods are removed").expect("pods are watched"));
        }
        pods
    }
}

/// The pods had been out of endpoints for so many seconds when they were deleted.
fn assert_drained(removed: &[Value], seconds: i64) {
    for pod in removed {
        let metadata = &pod["metadata"];
        let grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap();
        let deleted = time(&metadata["deletionTimestamp"]) - grace;
        for type_ in ["fedrs.dev/InPlaceUpdate", "Ready"] {
            let mut conditions = pod["status"]["conditions"].as_array().unwrap().iter();
            let condition = conditions.find(|condition| condition["type"] == type_);
            let condition = condition.unwrap();
            assert_eq!(condition["status"], "False");
            let since = time(&condition["lastTransitionTime"]);
            assert!(deleted - since >= seconds, "{type_}: {pod}");
        }
    }
}

/// In whole seconds.
fn time(value: &Value) -> i64 {
    let time: Timestamp = text(value).parse().unwrap();
    time.as_second()
}

async fn l18_l20_pods_are_evicted_by_annotation_and_by_node(env: &mut TestEnvironment) {
    started(env, 6, 1).await;
    let pods = env.watch(local(env).name()).await;
    let set = local(env);
    let before = set.owned().await;
    let evict = json!({ "metadata": { "annotations": { "fedrs.dev/evict": "true" } } });
    for pod in &before[..2] {
        set.patch_pod(&name_of(pod), &evict).await;
    }
    set.until("both are replaced", async || {
        let uids = of_pods(env, uid).await;
        before[..2]
            .iter()
            .all(|pod| uids.values().all(|found| *found != uid(pod)))
    })
    .await;
    until_updated(env, 6).await;
    // Of a node that is cordoned, so that they do not come back.
    let node = format!("/api/v1/nodes/{MEMBER}-node-1");
    let label = |value: Value| json!({ "metadata": { "labels": { "fedrs.dev/evict": value } } });
    let mut drained = label("true".into());
    drained["spec"] = json!({ "unschedulable": true });
    set.request("PATCH", &node, &drained).await;
    let node_of = |pod: &Value| text(&pod["spec"]["nodeName"]).to_owned();
    set.until("no pod is on the node", async || {
        let nodes = of_pods(env, node_of).await;
        nodes
            .values()
            .all(|node| *node != format!("{MEMBER}-node-1"))
    })
    .await;
    until_updated(env, 6).await;
    pods.assert_never_below(5);
    let mut back = label(Value::Null);
    back["spec"] = json!({ "unschedulable": null });
    set.request("PATCH", &node, &back).await;
}

/// Nodes are drained while pods are updated: first in place, then recreated. Both share the budget.
async fn l20_kubectl_drains_nodes_during_an_update(env: &mut TestEnvironment) {
    started_with(env, 9, 2, 2).await;
    let pods = env.watch(local(env).name()).await;
    let variables = json!([{ "name": "LEVEL", "value": "debug" }]);
    for change in [
        image("registry.example/main:2"),
        container("registry.example/main:2", &variables),
    ] {
        local(env).patch(&change).await;
        local(env)
            .until("the update has begun", async || {
                let updated = local(env).count("updatedReplicas").await;
                updated > 0 && updated < 9
            })
            .await;
        let nodes = of_pods(env, |pod| text(&pod["spec"]["nodeName"]).to_owned()).await;
        let node = nodes.into_values().find(|node| !node.is_empty());
        let node = node.expect("a pod has a node");
        local_sets::drain(env, MEMBER, &node).await;
        let nodes = of_pods(env, |pod| text(&pod["spec"]["nodeName"]).to_owned()).await;
        assert!(nodes.values().all(|found| *found != node), "{nodes:?}");
        until_updated(env, 9).await;
        let uncordon = format!("uncordon {node}");
        env.kubectl_of(MEMBER).must(&uncordon).await;
    }
    pods.assert_never_below(7);
    pods.assert_never_above(9);
}

async fn c1_kubectl_shows_and_scales_a_set(env: &mut TestEnvironment) {
    started(env, 3, 1).await;
    let mut session = env.kubectl_of(MEMBER);
    session.must("scale lrs/local --replicas=5").await;
    // The condition of the generation before does not count.
    session
        .must("wait --for=condition=Ready lrs/local --timeout=60s")
        .await;
    let count = local(env).count("availableReplicas").await;
    assert_eq!(count, 5, "ready means available");
    session.must("get lrs").await;
    session.must("get lrs local -o wide").await;
    session.must("delete lrs local --wait --timeout=60s").await;
    session.assert_recorded("local-replica-set");
}
