//! What users write: specs of sets, and changes of them.

use rand::{RngExt, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::plan::START_SECONDS;

/// The annotation of a pod that says how it fails.
const FAIL: &str = "sim-cluster.dev/fail";
/// The annotation of a pod with the time in which it stops.
const STOP_SECONDS: &str = "sim-cluster.dev/stop-seconds";
/// The label of a node with its name.
pub(in crate::local) const HOSTNAME: &str = "kubernetes.io/hostname";
/// The most replicas of a set.
const MOST: i32 = 12;

/// The spec of the set `name` at the start, in a cluster of so many `nodes`.
pub(super) fn spec_of(name: &str, nodes: u32, random: &mut StdRng) -> Value {
    let mut annotations = json!({});
    // The slower pods start and stop, the more happens meanwhile.
    if random.random_bool(0.5) {
        annotations[START_SECONDS] = random.random_range(2..40).to_string().into();
    }
    if random.random_bool(0.3) {
        annotations[STOP_SECONDS] = random.random_range(2..25).to_string().into();
    }
    let mut spec = json!({
        "replicas": random.random_range(1..=MOST),
        "selector": { "matchLabels": { "app": name } },
        "template": {
            "metadata": { "labels": { "app": name }, "annotations": annotations },
            "spec": { "containers": [{ "name": "main", "image": "web:0" }] },
        },
        "deploymentStrategy": { "maxUnavailable": (max_unavailable(random)) },
        "nodeTimeoutSeconds": ([0, 30, 300].choose(random)),
        "evictionTimeoutSeconds": ([30, 600].choose(random)),
        "removalTimeoutSeconds": ([60, 1800].choose(random)),
        "progressDeadlineSeconds": ([60, 600].choose(random)),
    });
    if random.random_bool(0.6) {
        spec["deploymentStrategy"]["deploySpeed"] = speed(random);
    }
    if random.random_bool(0.3) {
        spec["minReadySeconds"] = random.random_range(1..20).into();
    }
    if random.random_bool(0.2) {
        spec["constraints"] = spread(nodes, random);
    }
    spec
}

/// The most pods that users take out of sets in one plan.
pub(super) const RELEASED: usize = 3;

/// A pod that leaves its set.
pub(super) fn released() -> Value {
    json!({ "metadata": { "labels": { "app": "other" } } })
}

/// No more pods on one node than these: all replicas fit on all nodes together, beside pods that have left the set, which keep others
/// of their slot off their node.
fn spread(nodes: u32, random: &mut StdRng) -> Value {
    let all = u32::try_from(RELEASED).expect("it is small") + MOST.unsigned_abs();
    let least = all.div_ceil(nodes);
    let most = least + random.random_range(0..2);
    json!({ "antiaffinity": [{ "key": HOSTNAME, "maxPods": most }] })
}

fn max_unavailable(random: &mut StdRng) -> Value {
    let values = [json!(1), json!(2), json!(3), json!("25%"), json!("50%")];
    let rare = [json!(0), json!("100%")];
    let values = if random.random_bool(0.15) {
        &rare[..]
    } else {
        &values[..]
    };
    values.choose(random).cloned().unwrap_or_default()
}

fn speed(random: &mut StdRng) -> Value {
    json!({ "updatePortion": random.random_range(1..=3), "minDelay": ([1, 5, 20, 60].choose(random)) })
}

/// Another number of replicas.
pub(super) fn scale(random: &mut StdRng) -> Value {
    json!({ "replicas": random.random_range(0..=MOST) })
}

/// Another image, which is good.
pub(super) fn image(random: &mut StdRng) -> Value {
    let image = format!("web:{}", random.random_range(0..5));
    json!({ "template": {
        "metadata": { "annotations": { FAIL: null } },
        "spec": { "containers": [{ "name": "main", "image": image }] },
    } })
}

/// An image whose pods never become ready.
pub(super) fn bad_image(random: &mut StdRng) -> Value {
    let failures = ["never-ready", "crash", "image-pull"];
    json!({ "template": {
        "metadata": { "annotations": { FAIL: (failures.choose(random)) } },
        "spec": { "containers": [{ "name": "main", "image": "web:bad" }] },
    } })
}

/// Another change of the template: in place or not, with a restart or without.
pub(super) fn template(random: &mut StdRng) -> Value {
    let value = random.random_range(0..3).to_string();
    match random.random_range(0..4) {
        0 => json!({ "template": { "metadata": { "labels": { "version": value } } } }),
        1 => json!({ "template": { "metadata": { "annotations": { "note": value } } } }),
        2 => {
            json!({ "template": { "spec": { "terminationGracePeriodSeconds": 30 + random.random_range(0..3) } } })
        }
        _ => json!({ "template": { "metadata": { "annotations": {
            "kubectl.kubernetes.io/restartedAt": format!("2027-01-01T00:00:0{value}Z"),
        } } } }),
    }
}

/// Another budget, speed, or readiness.
pub(super) fn strategy(random: &mut StdRng) -> Value {
    match random.random_range(0..5) {
        0 | 1 => json!({ "deploymentStrategy": { "maxUnavailable": max_unavailable(random) } }),
        2 => json!({ "deploymentStrategy": { "deploySpeed": speed(random) } }),
        3 => json!({ "deploymentStrategy": { "deploySpeed": null } }),
        _ => json!({ "minReadySeconds": random.random_range(0..15) }),
    }
}

/// Another limit of pods on one node, or none.
pub(super) fn constraints(nodes: u32, random: &mut StdRng) -> Value {
    let limit = random.random_bool(0.6).then(|| spread(nodes, random));
    json!({ "constraints": limit })
}

/// Updates or all changes are switched off, or on again.
pub(super) fn pause(random: &mut StdRng) -> Value {
    let on = random.random_bool(0.5);
    match random.random_range(0..3) {
        0 => json!({ "paused": on }),
        1 => json!({ "stopped": on }),
        _ => json!({ "updateMode": if on { "Never" } else { "Rolling" } }),
    }
}

/// What a user writes at the end: an image that works, and updates that go on.
pub(in crate::local) fn healthy_template(spec: &Value) -> Value {
    let mut patch = json!({ "paused": false, "stopped": false, "updateMode": "Rolling" });
    if spec["deploymentStrategy"]["maxUnavailable"] == 0 {
        patch["deploymentStrategy"] = json!({ "maxUnavailable": 1 });
    }
    let template = &spec["template"];
    if !template["metadata"]["annotations"][FAIL].is_null() {
        patch["template"] = json!({
            "metadata": { "annotations": { FAIL: null } },
            "spec": { "containers": [{ "name": "main", "image": "web:good" }] },
        });
    }
    patch
}
