//! `fedrs migrate` and `fedrs migrations` against a cluster with the controller of LocalReplicaSets, as a process.

use std::{
    io::{BufRead, BufReader},
    process::Child,
};

use serde_json::{Value, json};

use crate::{
    clusters::wait_until,
    lrs::{FEDRS, World},
};

#[tokio::test(flavor = "multi_thread")]
async fn m5_pods_are_asked_to_move_and_the_list_says_how_far_they_are() {
    let world = World::start().await;
    let fedrs = async |arguments: &str| {
        let arguments = format!("{arguments} --kubeconfig a.yaml");
        world.federation.fedrs(&arguments).await
    };
    let none = fedrs("migrations -A").await.succeeded();
    assert_eq!(none.stderr, "no MigrationRequests\n");
    // The second one has to wait for an hour.
    world.cluster().create(json!({
        "apiVersion": FEDRS, "kind": "MigrationPolicy",
        "metadata": { "namespace": "default", "name": "all" }, "spec": { "selector": {} },
    }));
    let pods = world.pods();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let names = [0, 1].map(|index| text(&pods[index]["metadata"]["name"]));
    let request = async |pod: &str| {
        let asked = format!("migrate pod {pod} --deadline 2h --reason disk");
        fedrs(&asked).await.succeeded().stdout
    };
    let first = request(&names[0]).await;
    let prefix = |pod: &str| format!("migration of pod/{pod} in default requested: ");
    assert!(first.starts_with(&prefix(&names[0])), "{first}");
    let lines = async |arguments: &str| fedrs(arguments).await.succeeded().stdout;
    let until_listed = async |request: &str, phase: &str| {
        let name = request.trim().rsplit('/').next().unwrap();
        let read = || {
            let kind = "MigrationRequest";
            world.cluster().get(FEDRS, kind, "default", name).unwrap()
        };
        wait_until(phase, || read()["status"]["phase"] == phase).await;
        let listed = lines("migrations").await;
        let mut lines = listed.lines();
        let is_listed = lines.any(|line| line.contains(name) && line.contains(phase));
        assert!(is_listed, "{name} {phase}: {listed}");
    };
    until_listed(&first, "Done").await;
    world.settle().await;
    let now: Vec<_> = world
        .pods()
        .iter()
        .map(|pod| text(&pod["metadata"]["name"]))
        .collect();
    assert!(now.contains(&names[0]), "it has its name: {now:?}");
    let second = request(&names[1]).await;
    until_listed(&second, "WaitingForBudget").await;
    let again = request(&names[1]).await;
    assert!(again.contains("was requested before"), "{again}");
    let open = lines("migrations --open").await;
    assert!(open.contains("the last migration is too recent"), "{open}");
    assert!(!open.contains("Done"), "{open}");
    let name = second.trim().rsplit('/').next().unwrap();
    let node = text(&pods[1]["spec"]["nodeName"]);
    are_explained(&world, &names[1], &node, name).await;
    let mut followed = Followed::start(
        world
            .federation
            .start_fedrs("migrations --open --watch --kubeconfig a.yaml"),
    );
    assert!(followed.next().starts_with("NAME"));
    let shown = followed.next();
    assert!(
        shown.contains(name) && shown.contains("WaitingForBudget"),
        "{shown}"
    );
    let canceled = fedrs(&format!("migrate cancel {name}")).await.succeeded();
    assert_eq!(
        canceled.stdout,
        format!("migrationrequest/{name} canceled\n")
    );
    until_listed(&second, "Cancelled").await;
    // That it is to be cancelled is a change, too.
    let mut last = followed.next();
    while !last.contains("Cancelled") {
        assert!(last.contains(name), "{last}");
        last = followed.next();
    }
    drop(followed);
    let outcome = fedrs(&format!("migrate cancel {name}")).await.failed();
    outcome.contains(&["has ended: Cancelled"]);
    let outcome = fedrs("migrate node gone").await.failed();
    outcome.contains(&["node gone not found"]);
    let outcome = fedrs("migrate pod gone").await.failed();
    outcome.contains(&["pod default/gone not found"]);
    world.end();
}

/// Their Deployment replaces them, under other names.
#[tokio::test(flavor = "multi_thread")]
async fn m5_pods_of_deployments_are_asked_to_move() {
    let world = World::start().await;
    let labels = json!({ "app": "shop" });
    world.cluster().create(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": "default", "name": "shop" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": "shop:1" }] } },
        },
    }));
    let ready = || -> Vec<String> {
        let pods = world.pods().into_iter().filter(|pod| {
            let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
            let mut ready = conditions.filter(|of| of["type"] == "Ready" && of["status"] == "True");
            pod["metadata"]["labels"]["app"] == "shop" && ready.next().is_some()
        });
        pods.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    wait_until("they are ready", || ready().len() == 2).await;
    let pod = ready().remove(0);
    let asked = format!("migrate pod {pod} --kubeconfig a.yaml");
    let asked = world.federation.fedrs(&asked).await.succeeded().stdout;
    let request = asked.trim().rsplit('/').next().unwrap();
    wait_until("it has moved", || {
        let read = world
            .cluster()
            .get(FEDRS, "MigrationRequest", "default", request);
        read.is_some_and(|read| read["status"]["phase"] == "Done")
    })
    .await;
    let now = ready();
    assert!(now.len() == 2 && !now.contains(&pod), "{now:?}");
    world.end();
}

/// A pod that waits, its node and its request.
async fn are_explained(world: &World, pod: &str, node: &str, request: &str) {
    let explain = async |arguments: &str| {
        let arguments = format!("explain {arguments} --kubeconfig a.yaml");
        world.federation.fedrs(&arguments).await
    };
    let explained = explain(&format!("pod/{pod}")).await.succeeded();
    explained.contains(&[
        &format!("Pod default/{pod} waits to move: minSecondsBetween"),
        "MigrationPolicy: all",
        request,
        "(in ",
    ]);
    let explained = explain(&format!("node/{node}")).await.succeeded();
    explained.contains(&[
        pod,
        request,
        "WaitingForBudget",
        "nothing asks pods to leave it",
    ]);
    let json = explain(&format!("pod/{pod} -o json")).await.succeeded();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["requests"][0]["waitReason"], "TooSoon");
    let outcome = explain("pod/gone").await.failed();
    outcome.contains(&["pod default/gone not found"]);
    let outcome = explain("node/gone").await.failed();
    outcome.contains(&["node gone not found"]);
}

/// The lines of a command that does not end by itself.
struct Followed {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Followed {
    fn start(mut process: Child) -> Self {
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn next(&mut self) -> String {
        tokio::task::block_in_place(|| self.lines.next().unwrap().unwrap())
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m11_a_person_confirms_that_a_machine_is_destroyed() {
    let world = World::start().await;
    let fedrs = async |arguments: &str| {
        let arguments = format!("{arguments} --kubeconfig a.yaml");
        world.federation.fedrs(&arguments).await
    };
    world.cluster().create(json!({
        "apiVersion": FEDRS, "kind": "MigrationPolicy",
        "metadata": { "namespace": "default", "name": "all" },
        "spec": { "selector": {}, "shutdown": { "timeoutSeconds": 1, "onTimeout": "HandsUp" } },
    }));
    let is_guarded = |pod: &Value| pod["metadata"]["finalizers"] == json!(["fedrs.dev/shutdown"]);
    wait_until("the pods have the finalizer", || {
        world.pods().iter().all(is_guarded)
    })
    .await;
    let pod = world.pods().remove(0);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let [name, uid] = ["name", "uid"].map(|of| text(&pod["metadata"][of]));
    let node = text(&pod["spec"]["nodeName"]);
    // The pod in its place is not to wait until it is known that the node is lost.
    let api = world.cluster().api();
    let nodes = api.kind_of("v1", "Node").unwrap();
    let cordon = |node: &mut Value| node["spec"]["unschedulable"] = true.into();
    api.modify(&nodes, None, "", &node, cordon).unwrap();
    world.cluster().sim.fail_node(&node);
    let asked = fedrs(&format!("migrate pod {name}")).await.succeeded();
    let request = text(&json!(asked.stdout.trim().rsplit('/').next().unwrap()));
    let confirm = format!("migrate confirm {request}");
    let phase = || {
        let kind = "MigrationRequest";
        let request = world.cluster().get(FEDRS, kind, "default", &request);
        request.unwrap()["status"]["phase"].clone()
    };
    wait_until("a person is asked", || phase() == "HandsUp").await;
    fedrs(&confirm).await.failed().contains(&[
        &format!("the kubelet of node {node} has not reported that the containers have stopped"),
        "--machine-is-destroyed",
    ]);
    let confirmed = format!("{confirm} --machine-is-destroyed");
    let outcome = fedrs(&confirmed).await.succeeded();
    let expected = " has confirmed that the machine is destroyed\n";
    assert!(outcome.stdout.ends_with(expected), "{}", outcome.stdout);
    wait_until("the pod is gone", || {
        let is_other = |pod: &Value| pod["metadata"]["uid"] != *uid;
        world.pods().iter().all(is_other)
    })
    .await;
    wait_until("it has moved", || phase() == "Done").await;
    let outcome = fedrs(&confirmed).await.failed();
    outcome.contains(&["has ended: Done"]);
    world.end();
}
