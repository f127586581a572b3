//! Members that reject, hang or do not act: their replicas are rescheduled to other clusters, and return.

use control_plane::Program;
use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use serde_json::{Value, json};

/// Four sets at once, each with another problem.
pub(crate) async fn f28_f32_what_members_cannot_run_goes_elsewhere_and_returns(
    env: &mut TestEnvironment,
) {
    for name in ["port", "finalizer", "foreground", "manager"] {
        env.run(&frs(name, 9, &even(true))).await;
    }
    let running = env.watch_all().await;
    reject_the_template(env).await;
    // A finalizer of somebody else in a; in b the deletion waits for a pod on a dead node.
    let path = env.set_path("finalizer");
    let finalizers = json!({ "metadata": { "finalizers": ["example.com/held"] } });
    on(env, "a", "PATCH", &path, &finalizers).await;
    let background = json!({ "propagationPolicy": "Background" });
    on(env, "a", "DELETE", &path, &background).await;
    let node = node_of(env, "b", "foreground").await;
    env.lose_node("b", node, true).await;
    let foreground = json!({ "propagationPolicy": "Foreground" });
    on(env, "b", "DELETE", &env.set_path("foreground"), &foreground).await;
    env.kill_component("c", Program::ControllerManager).await;
    env.patch("manager", &json!({ "spec": { "replicas": 18 } }))
        .await;
    for (name, member, replicas) in [
        ("finalizer", "a", 9),
        ("foreground", "b", 9),
        ("manager", "c", 18),
    ] {
        env.wait_until(&format!("{name}: all replicas run"), 60, async |env| {
            env.available(name).await >= replicas
        })
        .await;
        env.wait_until(&format!("{name} says why"), 30, async |env| {
            let reason = reason(env, name, member).await;
            matches!(&*reason, "ReplicaSetTerminating" | "ControllersNotActing")
        })
        .await;
    }
    let free = json!({ "metadata": { "finalizers": null } });
    on(env, "a", "PATCH", &path, &free).await;
    env.lose_node("b", node, false).await;
    env.start_component("c", Program::ControllerManager).await;
    for (name, replicas) in [("finalizer", 9), ("foreground", 9), ("manager", 18)] {
        env.wait_until(&format!("{name} is balanced"), 90, async |env| {
            env.sorted_layout(name).await == [replicas / 3; 3]
                && env.available(name).await == replicas
        })
        .await;
    }
    // The fault deleted some; the controller removed no others.
    running.assert_never_below(6);
}

/// Every API server rejects this port: the current template stays, and everything else continues.
async fn reject_the_template(env: &TestEnvironment) {
    let path = "/spec/template/spec/containers";
    let mut containers = env.frs("port").await.pointer(path).unwrap().clone();
    containers[0]["ports"] = json!([{ "containerPort": 99_999_999 }]);
    let template = |containers: &Value| json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    env.patch("port", &template(&containers)).await;
    env.wait_until("the template is rejected", 30, async |env| {
        env.condition("port", "Accepted").await.as_deref() == Some("False")
    })
    .await;
    env.patch("port", &json!({ "spec": { "replicas": 12 } }))
        .await;
    env.wait_until("the set scales", 30, async |env| {
        env.available("port").await == 12
    })
    .await;
    containers[0]["ports"] = json!([{ "containerPort": 80 }]);
    env.patch("port", &template(&containers)).await;
    env.wait_until("the template is accepted", 30, async |env| {
        env.condition("port", "Accepted").await.as_deref() == Some("True")
    })
    .await;
}

async fn on(env: &TestEnvironment, member: &str, method: &str, path: &str, body: &Value) -> Value {
    let answer = env.on_member(member, method, path, body).await;
    answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// The number of a node that runs a pod of the set.
async fn node_of(env: &TestEnvironment, member: &str, set: &str) -> u32 {
    let pods = env.pods(member).await;
    let of_set = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["name"] == set;
    let node = pods.iter().find(of_set).unwrap()["spec"]["nodeName"].clone();
    let number = node.as_str().and_then(|name| name.rsplit('-').next());
    number.unwrap().parse().unwrap()
}

/// The reason of a member in the status of a set.
async fn reason(env: &TestEnvironment, name: &str, member: &str) -> String {
    let frs = env.frs(name).await;
    let mut clusters = frs["status"]["clusters"].as_array().into_iter().flatten();
    let cluster = clusters.find(|cluster| cluster["name"] == member);
    let reason = cluster.and_then(|cluster| cluster["reason"].as_str());
    reason.unwrap_or_default().to_owned()
}
