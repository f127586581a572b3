//! Clients leave ready pods before these are removed, or their containers restart (`drainSeconds`; L12, L13, L17, L18).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use sim_cluster::{Change, ChangeEvent};
use tokio::{task::JoinHandle, time::Instant};

use crate::world::{PODS, World, image, seconds, text};

const DRAIN: u64 = 20;

/// When pods left endpoints, and what happened to them then.
struct Watcher {
    left: Arc<Mutex<Left>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Left {
    /// Pods that are not ready, by uid, since when.
    unready: BTreeMap<String, Instant>,
    /// Pods that were removed or whose image was changed: their names, and how long they had been out of endpoints.
    taken: Vec<(String, Duration)>,
}

impl Watcher {
    fn of(world: &World) -> Self {
        let left = Arc::<Mutex<Left>>::default();
        let mut changes = world.cluster.api().changes();
        let seen = Arc::clone(&left);
        let task = tokio::spawn(async move {
            loop {
                if let ChangeEvent::Change(change) = changes.next().await
                    && change.kind.plural == "pods"
                {
                    seen.lock().see(&change);
                }
            }
        });
        Self { left, task }
    }

    /// The pods that were removed or updated, each not before it was out of endpoints for `drainSeconds`, and not much later.
    fn taken(&self) -> Vec<String> {
        let taken = std::mem::take(&mut self.left.lock().taken);
        for (name, after) in &taken {
            let expected = DRAIN..DRAIN + 5;
            assert!(
                expected.contains(&after.as_secs()),
                "{name} after {after:?}"
            );
        }
        taken.into_iter().map(|(name, _)| name).collect()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Left {
    fn see(&mut self, change: &Change) {
        let now = Instant::now();
        let Some(old) = change.old.as_deref() else {
            return;
        };
        let new = change.new.as_deref().unwrap_or(&Value::Null);
        let uid = text(&old["metadata"]["uid"]);
        if is_ready(old) && !is_ready(new) {
            self.unready.insert(uid.clone(), now);
        } else if is_ready(new) {
            self.unready.remove(&uid);
        }
        let is_live =
            |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null() && !pod.is_null();
        let is_removed = is_live(old) && !is_live(new);
        let image = |pod: &Value| text(&pod["spec"]["containers"][0]["image"]);
        if is_removed || is_live(new) && image(old) != image(new) {
            let since = self.unready.get(&uid).copied();
            let after = since.map_or(Duration::ZERO, |since| now - since);
            self.taken.push((text(&old["metadata"]["name"]), after));
        }
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

async fn running(replicas: usize) -> World {
    let spec = json!({
        "drainSeconds": DRAIN, "deploymentStrategy": { "maxUnavailable": 2 },
    });
    World::running(replicas, &spec).await
}

async fn ready(world: &World) -> usize {
    world.pods().await.iter().filter(|pod| pod.is_ready).count()
}

#[tokio::test(start_paused = true)]
async fn l12_l13_l17_clients_leave_pods_that_are_removed_or_updated() {
    let world = running(6).await;
    let watcher = Watcher::of(&world);
    world.scale(4).await;
    world.settle(4).await;
    assert_eq!(watcher.taken().len(), 2);
    world.patch_set(&image("web:2")).await;
    world.settle(4).await;
    assert_eq!(watcher.taken().len(), 4, "in place");
    let annotations = json!({ "kubectl.kubernetes.io/restartedAt": "2027-01-15T09:00:00Z" });
    let restart = json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } });
    world.patch_set(&restart).await;
    world.settle(4).await;
    assert_eq!(watcher.taken().len(), 4, "recreated");
    let name = world.pods().await[0].name.clone();
    let evict = json!({ "metadata": { "annotations": { "fedrs.dev/evict": "true" } } });
    world.patch(&format!("{PODS}/{name}"), &evict).await;
    world
        .wait_until("the pod is replaced", 120, async |world: &World| {
            !world.uids().await.contains_key(&name)
        })
        .await;
    world.settle(4).await;
    assert_eq!(watcher.taken(), [name]);
    world.scale(0).await;
    world.settle(0).await;
    assert_eq!(watcher.taken().len(), 4);
}

/// Users see which pods clients leave, and until when.
#[tokio::test(start_paused = true)]
async fn l17_the_status_says_until_when_clients_leave_pods() {
    let world = running(4).await;
    world.scale(3).await;
    seconds(3).await;
    let message = world.message("Ready").await;
    let expected = "1 pod is to be created or removed; clients leave web-";
    assert!(message.starts_with(expected), "{message}");
    let pods = world.get(PODS).await["items"].clone();
    let conditions = pods.as_array().unwrap().iter().map(|pod| {
        let conditions = pod["status"]["conditions"].as_array().unwrap().iter();
        let mut gates =
            conditions.filter(|condition| condition["type"] == "fedrs.dev/InPlaceUpdate");
        text(&gates.next().unwrap()["reason"])
    });
    let mut reasons: Vec<_> = conditions.collect();
    reasons.sort();
    assert_eq!(reasons, ["Draining", "UpToDate", "UpToDate", "UpToDate"]);
    world.settle(3).await;
}

/// Whatever is not wanted any more while clients leave a pod: it returns, and nothing else happens.
#[tokio::test(start_paused = true)]
async fn l13_l17_l18_a_pod_returns_if_it_is_to_stay() {
    let world = running(4).await;
    let before = world.uids().await;
    let watcher = Watcher::of(&world);
    let name = before.first_key_value().unwrap().0;
    let pod = format!("{PODS}/{name}");
    let evict =
        |value: Value| json!({ "metadata": { "annotations": { "fedrs.dev/evict": value } } });
    let period = |seconds: Value| json!({ "spec": { "template": { "spec": { "terminationGracePeriodSeconds": seconds } } } });
    for leaving in [1, 3] {
        world.scale(4 - leaving).await;
        seconds(DRAIN - 5).await;
        assert_eq!(ready(&world).await, 4 - leaving);
        world.scale(4).await;
        world.settle(4).await;
    }
    world.patch(&pod, &evict("true".into())).await;
    seconds(DRAIN - 5).await;
    assert_eq!(ready(&world).await, 3);
    world.patch(&pod, &evict(Value::Null)).await;
    world.settle(4).await;
    for (change, undo) in [
        (image("web:2"), image("web:1")),
        (period(5.into()), period(Value::Null)),
    ] {
        world.patch_set(&change).await;
        seconds(DRAIN - 5).await;
        assert_eq!(ready(&world).await, 2);
        world.patch_set(&undo).await;
        world.settle(4).await;
    }
    seconds(3 * DRAIN).await;
    assert_eq!(world.uids().await, before);
    assert_eq!(watcher.taken(), [""; 0]);
}

/// Another controller continues: it begins no wait anew.
#[tokio::test(start_paused = true)]
async fn l17_restarts_of_the_controller_do_not_prolong_it() {
    let mut world = running(4).await;
    let watcher = Watcher::of(&world);
    world.scale(2).await;
    for _ in 0..3 {
        seconds(DRAIN / 4).await;
        world.stop_controller().await;
        world.start_controller();
    }
    world.settle(2).await;
    assert_eq!(watcher.taken().len(), 2);
}
