//! Migrations by MigrationPolicy and MigrationRequest (M1 to M15).

use serde_json::{Value, json};

use crate::world::{HISTORY, PODS, SET, World, image, seconds, set, text};

pub(crate) const POLICIES: &str = "/apis/fedrs.dev/v1alpha1/namespaces/shop/migrationpolicies";
pub(crate) const REQUESTS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/shop/migrationrequests";

/// A policy for all sets of the namespace.
pub(crate) fn policy(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationPolicy",
        "metadata": { "name": "all", "namespace": "shop" },
        "spec": { "selector": {} },
    });
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

/// A request of a person for a pod.
pub(crate) fn request(name: &str, pod: &str) -> Value {
    json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
        "metadata": { "name": name, "namespace": "shop" },
        "spec": { "podName": pod, "reason": "the disk makes noises" },
    })
}

pub(crate) async fn status(world: &World, name: &str) -> Value {
    world.get(&format!("{REQUESTS}/{name}")).await["status"].clone()
}

pub(crate) async fn phase(world: &World, name: &str) -> String {
    text(&status(world, name).await["phase"])
}

pub(crate) async fn reaches(world: &World, name: &str, expected: &str) {
    let what = format!("{name} is {expected}");
    world
        .wait_until(&what, 300, async |world: &World| {
            phase(world, name).await == expected
        })
        .await;
}

/// The phases in their order.
pub(crate) fn phases(status: &Value) -> Vec<String> {
    let steps = status["history"].as_array().unwrap();
    steps.iter().map(|step| text(&step["phase"])).collect()
}

#[tokio::test(start_paused = true)]
async fn m5_a_pod_moves_to_another_node_under_its_name_and_the_request_tells_how() {
    let mut template = set(&json!({}))["spec"]["template"].clone();
    template["metadata"]["annotations"] = json!({ "sim-cluster.dev/start-seconds": "20" });
    let world = World::running(3, &json!({ "template": template, "drainSeconds": 5 })).await;
    world.create(POLICIES, &policy(&json!({}))).await;
    let before = world.pods().await;
    let moved = &before[0];
    // Otherwise it may be scheduled to the same node again.
    let node = format!("/api/v1/nodes/{}", moved.node);
    let cordon = json!({ "spec": { "unschedulable": true } });
    world.patch(&node, &cordon).await;
    world.create(REQUESTS, &request("one", &moved.name)).await;
    reaches(&world, "one", "Done").await;
    world.settle(3).await;
    let after = world.pods().await;
    let names = |pods: &[crate::world::Pod]| -> Vec<String> {
        pods.iter().map(|pod| pod.name.clone()).collect()
    };
    assert_eq!(names(&after), names(&before));
    assert_ne!(after[0].node, moved.node);
    assert_ne!(after[0].uid, moved.uid);
    assert_eq!(after[1..], before[1..], "no other pod");
    let status = status(&world, "one").await;
    assert_eq!(
        phases(&status).last_chunk(),
        Some(&["ShuttingDown", "Evicting", "Starting", "Done"].map(str::to_owned)),
        "{status:#}"
    );
    let expected = [
        ("replicaSet", "web"),
        ("podUid", &*moved.uid),
        ("node", &*moved.node),
        ("newPod", &*moved.name),
        ("newNode", &*after[0].node),
    ];
    for (field, expected) in expected {
        assert_eq!(status[field], expected, "{field}: {status:#}");
    }
    let revision = world.status().await["updateRevision"].clone();
    let current = world.status().await["currentRevision"].clone();
    assert_eq!(revision, current, "no new revision");
}

#[tokio::test(start_paused = true)]
async fn m14_one_pod_an_hour_and_the_other_request_says_until_when_it_waits() {
    let mut world = World::running(4, &json!({})).await;
    world.create(POLICIES, &policy(&json!({}))).await;
    let pods = world.pods().await;
    for (name, pod) in [("one", &pods[0]), ("two", &pods[1])] {
        world.create(REQUESTS, &request(name, &pod.name)).await;
        reaches(
            &world,
            name,
            if name == "one" {
                "Done"
            } else {
                "WaitingForBudget"
            },
        )
        .await;
    }
    let waiting = status(&world, "two").await;
    assert_eq!(
        waiting["message"],
        "minSecondsBetween of the policy: the last migration is too recent"
    );
    let count = &world.status().await["waitingEvictions"];
    assert_eq!(*count, Value::Null, "more budget would not help");
    // Another leader knows it.
    world.stop_controller().await;
    seconds(1000).await;
    world.start_controller();
    seconds(60).await;
    world.writes();
    seconds(2400).await;
    let is_ours = |write: &String| !write.contains("leases");
    assert!(!world.writes().iter().any(is_ours), "nothing changes");
    assert_eq!(status(&world, "two").await, waiting);
    seconds(180).await;
    reaches(&world, "two", "Done").await;
    let moved = status(&world, "two").await;
    let at = |status: &Value, phase: &str| {
        let steps = status["history"].as_array().unwrap();
        let step = steps.iter().find(|step| step["phase"] == phase).unwrap();
        let at = text(&step["at"]);
        at.parse::<jiff::Timestamp>().unwrap().as_second()
    };
    let first = at(&status(&world, "one").await, "Evicting");
    let since = at(&moved, "Evicting") - first;
    assert!((3600..3660).contains(&since), "{since}");
}

/// M8's history: what a node asks for has a request of its own, which ends if the node asks no more.
#[tokio::test(start_paused = true)]
async fn m1_a_node_that_has_to_be_left_makes_a_request_for_each_pod() {
    let world = World::running(5, &json!({})).await;
    let seldom = json!({ "minSecondsBetween": { "hardware": 100_000 } });
    world.create(POLICIES, &policy(&seldom)).await;
    let pods = world.pods().await;
    let path = |pod: &crate::world::Pod| format!("/api/v1/nodes/{}", pod.node);
    let evict = |value: &str| {
        let labels = json!({ "fedrs.dev/evict": value });
        json!({ "metadata": { "labels": labels }, "spec": { "unschedulable": true } })
    };
    world.patch(&path(&pods[0]), &evict("true")).await;
    let requests = async |world: &World| {
        let list = world.get(REQUESTS).await;
        list["items"].as_array().unwrap().clone()
    };
    world
        .wait_until("it has moved", 120, async |world: &World| {
            let requests = requests(world).await;
            requests.len() == 1 && requests[0]["status"]["phase"] == "Done"
        })
        .await;
    let first = &requests(&world).await[0];
    assert_eq!(first["spec"]["podName"], *pods[0].name);
    assert_eq!(first["spec"]["cause"], "Maintenance");
    assert_eq!(
        first["spec"]["reason"],
        format!("node {} has the label fedrs.dev/evict", pods[0].node)
    );
    assert_eq!(first["metadata"]["ownerReferences"][0]["name"], "web");
    // The next one waits for longer than the node asks for it.
    world.patch(&path(&pods[1]), &evict("true")).await;
    let second = async |world: &World| {
        let requests = requests(world).await;
        let of = requests
            .into_iter()
            .find(|request| request["spec"]["podName"] == *pods[1].name);
        of.map(|request| text(&request["status"]["phase"]))
    };
    world
        .wait_until("the second waits", 60, async |world: &World| {
            second(world).await.as_deref() == Some("WaitingForBudget")
        })
        .await;
    world.patch(&path(&pods[1]), &evict("false")).await;
    world
        .wait_until("the second is cancelled", 60, async |world: &World| {
            second(world).await.as_deref() == Some("Cancelled")
        })
        .await;
    let kept = world.uids().await;
    assert_eq!(kept[&pods[1].name], pods[1].uid);
    // It asks again: another request.
    world.patch(&path(&pods[1]), &evict("true")).await;
    world
        .wait_until("there is a third", 60, async |world: &World| {
            requests(world).await.len() == 3
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn m1_a_migration_waits_for_a_rollout_and_is_cancelled_by_its_request() {
    let mut template = set(&json!({}))["spec"]["template"].clone();
    template["metadata"]["annotations"] = json!({ "sim-cluster.dev/start-seconds": "60" });
    let strategy = json!({ "maxUnavailable": 1 });
    let spec = json!({ "template": template, "deploymentStrategy": strategy });
    let world = World::running(3, &spec).await;
    world.create(POLICIES, &policy(&json!({}))).await;
    let again = json!({ "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" });
    let restart = json!({ "spec": { "template": { "metadata": { "annotations": again } } } });
    world.patch_set(&restart).await;
    seconds(5).await;
    let pods = world.pods().await;
    let ready = pods.iter().find(|pod| pod.is_ready).unwrap();
    world.create(REQUESTS, &request("one", &ready.name)).await;
    reaches(&world, "one", "WaitingForBudget").await;
    let waiting = status(&world, "one").await;
    assert_eq!(waiting["message"], "the set is being updated");
    let cancel = json!({ "spec": { "cancel": true } });
    world.patch(&format!("{REQUESTS}/one"), &cancel).await;
    let again = json!({ "spec": { "cancel": false } });
    let refused = world.try_patch(&format!("{REQUESTS}/one"), &again).await;
    let expected = "spec.cancel: Invalid value: a request that was cancelled stays cancelled: make another one";
    assert!(refused.unwrap_err().to_string().contains(expected));
    reaches(&world, "one", "Cancelled").await;
    world.settle(3).await;
    assert_eq!(world.status().await["waitingEvictions"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn m15_a_request_is_forced_when_its_deadline_has_passed() {
    let strategy = json!({ "maxUnavailable": 0 });
    let world = World::running(2, &json!({ "deploymentStrategy": strategy })).await;
    let week = json!({ "deadlineSeconds": 600 });
    world.create(POLICIES, &policy(&week)).await;
    let pod = world.pods().await.remove(0);
    world.create(REQUESTS, &request("one", &pod.name)).await;
    seconds(590).await;
    let waiting = status(&world, "one").await;
    assert_eq!(waiting["phase"], "WaitingForBudget");
    assert_eq!(
        waiting["message"],
        "the budget of the set is in use: spec.deploymentStrategy.maxUnavailable, or less by an AvailabilitySet"
    );
    assert_eq!(world.uids().await[&pod.name], pod.uid);
    reaches(&world, "one", "Forced").await;
    assert_ne!(world.uids().await[&pod.name], pod.uid);
}

/// Also one that is set, or comes nearer, while pods wait.
#[tokio::test(start_paused = true)]
async fn m15_the_deadline_of_a_maintenance_holds_for_the_pods_of_its_nodes() {
    let strategy = json!({ "maxUnavailable": 0 });
    let world = World::running(2, &json!({ "deploymentStrategy": strategy })).await;
    world.create(POLICIES, &policy(&json!({}))).await;
    let pod = world.pods().await.remove(0);
    let node = format!("/api/v1/nodes/{}", pod.node);
    let label = json!({ "fedrs.dev/evict": "Maintenance" });
    let begun = json!({ "metadata": { "labels": label }, "spec": { "unschedulable": true } });
    world.patch(&node, &begun).await;
    seconds(3600).await;
    assert_eq!(world.uids().await[&pod.name], pod.uid);
    let at = world.cluster.clock().now() + jiff::SignedDuration::from_secs(600);
    let mark = json!({ "name": "rack-7", "uid": "m", "deadline": format!("{at:.0}") });
    let annotation = json!({ "fedrs.dev/maintenance": mark.to_string() });
    let marked = json!({ "metadata": { "annotations": annotation } });
    world.patch(&node, &marked).await;
    seconds(590).await;
    assert_eq!(world.uids().await[&pod.name], pod.uid);
    let requests = world.get(REQUESTS).await;
    let request = &requests["items"][0];
    assert_eq!(request["spec"]["cause"], "Maintenance");
    assert_eq!(request["status"]["deadline"], format!("{at:.0}"));
    let name = text(&request["metadata"]["name"]);
    reaches(&world, &name, "Forced").await;
    assert_ne!(world.uids().await[&pod.name], pod.uid);
}

/// The pods of a machine that is away for ten minutes stay, and start again with it. When it is not back, they move.
#[tokio::test(start_paused = true)]
async fn m9_pods_bear_short_work_where_they_are_and_move_when_it_overruns() {
    for overruns in [false, true] {
        let spec =
            json!({ "nodeTimeoutSeconds": 60, "deploymentStrategy": { "maxUnavailable": 1 } });
        let world = World::running(3, &spec).await;
        let tolerance = json!({ "tolerate": "All", "maxDowntimeSeconds": 1800 });
        world
            .create(POLICIES, &policy(&json!({ "maintenance": tolerance })))
            .await;
        let before = world.uids().await;
        let pod = world.pods().await.remove(0);
        let path = format!("/api/v1/nodes/{}", pod.node);
        let until = world.cluster.clock().now() + jiff::SignedDuration::from_secs(600);
        let mark = json!({ "uid": "m", "until": format!("{until:.0}"), "durationSeconds": 600 });
        let begun = json!({
            "metadata": {
                "labels": { "fedrs.dev/evict": "Maintenance" },
                "annotations": { "fedrs.dev/maintenance": mark.to_string() },
            },
            "spec": { "unschedulable": true },
        });
        world.patch(&path, &begun).await;
        seconds(60).await;
        world.cluster.fail_node(&pod.node);
        seconds(500).await;
        assert_eq!(
            world.uids().await,
            before,
            "it is away, and they wait for it"
        );
        let requests = world.get(REQUESTS).await;
        let request = &requests["items"][0];
        let name = text(&request["metadata"]["name"]);
        assert_eq!(request["status"]["phase"], "WaitingForBudget");
        assert_eq!(request["status"]["until"], format!("{until:.0}"));
        if overruns {
            world
                .wait_until("all run elsewhere", 300, async |world: &World| {
                    let pods = world.pods().await;
                    let elsewhere = pods.iter().filter(|is| is.is_ready && is.node != pod.node);
                    elsewhere.count() == 3
                })
                .await;
            continue;
        }
        world.cluster.recover_node(&pod.node);
        let ended = json!({
            "metadata": {
                "labels": { "fedrs.dev/evict": null },
                "annotations": { "fedrs.dev/maintenance": null },
            },
            "spec": { "unschedulable": null },
        });
        world.patch(&path, &ended).await;
        world.settle(3).await;
        assert_eq!(world.uids().await, before);
        reaches(&world, &name, "Cancelled").await;
    }
}

/// A set that names a policy which does not exist says so; its running pods stay.
#[tokio::test(start_paused = true)]
async fn m1_a_policy_that_does_not_exist_is_a_condition() {
    let spec = json!({ "migrationPolicy": "gone" });
    let world = World::running(2, &spec).await;
    let type_ = "MigrationPolicyUnknown";
    assert_eq!(world.condition(type_).await, "True NoValidMigrationPolicy");
    assert_eq!(
        world.message(type_).await,
        "there is no MigrationPolicy gone: running pods stay"
    );
    let pod = world.pods().await.remove(0);
    world.create(REQUESTS, &request("one", &pod.name)).await;
    reaches(&world, "one", "WaitingForBudget").await;
    let waiting = status(&world, "one").await;
    assert_eq!(waiting["message"], "there is no MigrationPolicy gone");
    let mut policy = policy(&json!({}));
    policy["metadata"]["name"] = "gone".into();
    world.create(POLICIES, &policy).await;
    reaches(&world, "one", "Done").await;
    assert_eq!(world.condition(type_).await, "");
}

/// Without a policy, pods are replaced under other names, and a request is answered all the same.
#[tokio::test(start_paused = true)]
async fn l18_without_a_policy_a_request_evicts() {
    let world = World::running(3, &json!({})).await;
    let pod = world.pods().await.remove(0);
    world.create(REQUESTS, &request("one", &pod.name)).await;
    reaches(&world, "one", "Done").await;
    world.settle(3).await;
    assert!(!world.uids().await.contains_key(&pod.name));
}

#[tokio::test(start_paused = true)]
async fn m8_a_request_of_no_pod_ends_and_history_is_kept_for_a_while() {
    let world = World::running(2, &json!({})).await;
    world.create(REQUESTS, &request("one", "nobody")).await;
    reaches(&world, "one", "Cancelled").await;
    let status = status(&world, "one").await;
    assert_eq!(
        status["message"],
        "pod nobody is gone, or belongs to no LocalReplicaSet or ReplicaSet: only pods of those are migrated"
    );
    seconds(HISTORY.as_secs() - 60).await;
    assert!(world.find(&format!("{REQUESTS}/one")).await.is_some());
    seconds(120).await;
    assert!(world.find(&format!("{REQUESTS}/one")).await.is_none());
}

/// M10: with several requests at once, as many move at a time as the policy allows.
#[tokio::test(start_paused = true)]
async fn m10_pods_move_within_the_budget_of_the_policy() {
    let mut template = set(&json!({}))["spec"]["template"].clone();
    template["metadata"]["annotations"] = json!({ "sim-cluster.dev/start-seconds": "20" });
    let strategy = json!({ "maxUnavailable": "100%" });
    let spec = json!({ "template": template, "deploymentStrategy": strategy });
    let world = World::running(6, &spec).await;
    let two = json!({ "maxUnavailable": 2, "minSecondsBetween": { "hardware": 0 } });
    world.create(POLICIES, &policy(&two)).await;
    let pods = world.pods().await;
    for pod in &pods {
        world.create(REQUESTS, &request(&pod.name, &pod.name)).await;
    }
    world
        .wait_until("all have moved", 300, async |world: &World| {
            let now = world.pods().await;
            let ready = now.iter().filter(|pod| pod.is_ready).count();
            assert!(ready >= 4, "{}", world.describe().await);
            let moved = |pod: &crate::world::Pod| now.iter().all(|is| is.uid != pod.uid);
            pods.iter().all(moved) && ready == 6
        })
        .await;
    for pod in &pods {
        reaches(&world, &pod.name, "Done").await;
    }
    assert_eq!(
        world.get(SET).await["status"]["record"]["evictions"],
        Value::Null
    );
    world.patch_set(&image("web:2")).await;
    world.settle(6).await;
}

/// Requests that can't be made hold up no pod, and are tried again less and less often.
#[tokio::test(start_paused = true)]
async fn m1_pods_move_also_while_no_request_can_be_made() {
    let world = World::running(3, &json!({})).await;
    world.create(POLICIES, &policy(&json!({}))).await;
    let quota = json!({
        "metadata": { "name": "none" },
        "spec": { "hard": { "count/migrationrequests.fedrs.dev": "0" } },
    });
    world
        .create("/api/v1/namespaces/shop/resourcequotas", &quota)
        .await;
    seconds(5).await;
    let pods = world.pods().await;
    let evict = json!({ "metadata": { "annotations": { "fedrs.dev/evict": "true" } } });
    for pod in &pods[..2] {
        world.patch(&format!("{PODS}/{}", pod.name), &evict).await;
    }
    world
        .wait_until("the first has moved", 60, async |world: &World| {
            let uids = world.uids().await;
            let moved = |pod: &crate::world::Pod| uids.get(&pod.name) != Some(&pod.uid);
            pods.iter().any(moved)
        })
        .await;
    seconds(100).await;
    world.writes();
    seconds(600).await;
    let writes = world.writes();
    let tried = writes
        .iter()
        .filter(|write| write.contains("migrationrequests"));
    assert!((8..30).contains(&tried.count()), "{writes:#?}");
}
