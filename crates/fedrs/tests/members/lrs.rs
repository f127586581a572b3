//! `fedrs lrs` against a cluster with the controller of LocalReplicaSets, as a process.

use std::{os::unix::fs::symlink, process::Child};

use serde_json::{Value, json};

use crate::{
    clusters::{Cluster, wait_until},
    federation::{Federation, Outcome, signal},
};

pub(crate) const FEDRS: &str = "fedrs.dev/v1alpha1";
const KIND: &str = "LocalReplicaSet";

/// A cluster with the LocalReplicaSet `default/web`, which has 3 pods of `web:1`.
pub(crate) struct World {
    pub(crate) federation: Federation,
    controller: Child,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The controller knows these objects from the beginning on.
    pub(crate) async fn start_with(objects: &[Value]) -> Self {
        let federation = Federation::start(&["a"]).await;
        let cluster = federation.member("a");
        for crd in fedrs_api::crd::local() {
            cluster.create(serde_json::to_value(crd).unwrap());
        }
        for object in objects {
            cluster.create(object.clone());
        }
        let options = "--kubeconfig a.yaml --listen 127.0.0.1:0 --identity one";
        let controller = federation.start_fedrs(&format!("replica-set-controller {options}"));
        let containers = json!([{ "name": "main", "image": "web:1" }]);
        cluster.create(json!({
            "apiVersion": FEDRS, "kind": KIND,
            "metadata": { "namespace": "default", "name": "web" },
            "spec": {
                "replicas": 3, "selector": { "matchLabels": { "app": "web" } },
                "deploymentStrategy": { "maxUnavailable": 3 },
                "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": containers } },
            },
        }));
        let world = Self {
            federation,
            controller,
        };
        world.settle().await;
        world
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        self.federation.member("a")
    }

    async fn run(&self, arguments: &str) -> Outcome {
        let arguments = format!("lrs --kubeconfig a.yaml {arguments}");
        self.federation.fedrs(&arguments).await
    }

    /// Waits until all pods have the template of the spec, and the revision of it is kept.
    pub(crate) async fn settle(&self) {
        self.run("status web --timeout=60s").await.succeeded();
        let name = self.web()["status"]["updateRevision"].clone();
        let name = name.as_str().unwrap();
        wait_until("the revision is kept", || {
            let kept = self
                .cluster()
                .get("apps/v1", "ControllerRevision", "default", name);
            kept.is_some()
        })
        .await;
    }

    fn web(&self) -> Value {
        self.cluster().get(FEDRS, KIND, "default", "web").unwrap()
    }

    fn change(&self, change: impl Fn(&mut Value)) {
        let api = self.cluster().api();
        let kind = api.kind_of(FEDRS, KIND).unwrap();
        api.modify(&kind, None, "default", "web", change).unwrap();
    }

    fn set_image(&self, image: &str) {
        self.change(|web| web["spec"]["template"]["spec"]["containers"][0]["image"] = image.into());
    }

    fn image(&self) -> Value {
        self.web()["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    }

    /// The pods, in the order of their names.
    pub(crate) fn pods(&self) -> Vec<Value> {
        let api = self.cluster().api();
        let pods = api.list(&api.kind_of("v1", "Pod").unwrap(), Some("default"));
        let mut pods: Vec<_> = pods
            .iter()
            .map(|pod| serde_json::to_value(&**pod).unwrap())
            .collect();
        pods.sort_by_key(|pod| pod["metadata"]["name"].to_string());
        pods
    }

    pub(crate) fn uids(&self) -> Vec<String> {
        let pods = self.pods();
        let uids = pods.iter().map(|pod| pod["metadata"]["uid"].to_string());
        uids.collect()
    }

    /// Ends the controller gracefully.
    pub(crate) fn end(mut self) {
        signal("TERM", &self.controller);
        assert!(self.controller.wait().unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_a_status_has_the_pods_of_each_revision_by_group() {
    let world = World::start().await;
    let done = "localreplicaset \"web\" successfully rolled out\n";
    let outcome = world.run("status default/web --watch=false").await;
    let stdout = outcome.succeeded().stdout;
    let lines: Vec<_> = stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .collect();
    let revision = world.web()["status"]["updateRevision"].clone();
    let header = [
        "REVISION",
        "READY",
        "IN-PROGRESS",
        "FAILED",
        "MARKED-REMOVE",
    ];
    assert_eq!(lines[0], header);
    assert_eq!(lines[1], [revision.as_str().unwrap(), "3", "0", "0", "0"]);
    assert!(stdout.ends_with(done), "{stdout}");

    let paused = world.run("pause web").await.succeeded();
    assert_eq!(paused.stdout, "localreplicaset.fedrs.dev/web paused\n");
    world.set_image("web:2");
    wait_until("the pause is observed", || {
        let web = world.web();
        web["status"]["observedGeneration"] == web["metadata"]["generation"]
    })
    .await;
    let outcome = world.run("status lrs/web --watch=false").await.succeeded();
    outcome.contains(&["Waiting for rollout to finish: spec.paused stops updates\n"]);
    let outcome = world.run("status web --timeout=1s").await.failed();
    outcome.contains(&["localreplicaset default/web: the rollout is not complete after 1s"]);
    // L8: with this mode, the update does not go on without a change.
    world.change(|web| web["spec"]["updateMode"] = "Never".into());
    let outcome = world.run("status web --timeout=60s").await.failed();
    outcome.contains(&["error: localreplicaset default/web: 3 pods of an earlier template stay"]);
    let outcome = world.run("status shop/web").await.failed();
    outcome.contains(&["localreplicaset shop/web not found"]);
    world.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_updates_are_paused_resumed_and_restarted() {
    let world = World::start().await;
    let outcome = world.run("resume web").await.failed();
    outcome.contains(&["localreplicaset default/web is not paused"]);
    world.run("pause web").await.succeeded();
    assert_eq!(world.web()["spec"]["paused"], true);
    let outcome = world.run("restart web").await.failed();
    outcome.contains(&["is paused", "run `fedrs lrs resume` first"]);
    let plugin = world.federation.path("kubectl-fedrs");
    symlink(env!("CARGO_BIN_EXE_fedrs"), &plugin).unwrap();
    let restart = "lrs restart -n default --kubeconfig a.yaml web";
    let outcome = world.federation.run(&plugin, &[], restart).await;
    outcome
        .failed()
        .contains(&["run `kubectl fedrs lrs resume` first"]);
    world.run("resume web").await.succeeded();
    let before = world.uids();
    let outcome = world.run("restart web").await.succeeded();
    assert_eq!(outcome.stdout, "localreplicaset.fedrs.dev/web restarted\n");
    world.settle().await;
    let after = world.uids();
    assert_eq!(after.len(), 3);
    assert!(after.iter().all(|uid| !before.contains(uid)));
    world.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn l2_the_history_is_shown_and_undone() {
    let world = World::start().await;
    let outcome = world.run("undo web").await.failed();
    outcome.contains(&[
        "localreplicaset default/web: nothing to undo",
        "`fedrs lrs history`",
    ]);
    let before = world.uids();
    world.change(|web| {
        let constraint = json!({ "key": "kubernetes.io/hostname", "maxPods": 3 });
        web["spec"]["constraints"]["antiaffinity"] = json!([constraint]);
    });
    world.settle().await;
    assert_ne!(world.uids(), before);
    world.set_image("web:2");
    world.settle().await;
    let outcome = world.run("history web").await.succeeded();
    let rows: Vec<Vec<_>> = outcome
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["localreplicaset.fedrs.dev/web"]);
    assert_eq!(rows[1], ["REVISION", "NAME", "CHANGE-CAUSE", "PODS"]);
    let numbers: Vec<_> = rows[2..].iter().map(|row| (row[0], row[3])).collect();
    assert_eq!(numbers, [("1", "0"), ("2", "0"), ("3", "3")]);
    let outcome = world.run("history web --revision=1 -o json").await;
    let revision: Value = serde_json::from_str(&outcome.succeeded().stdout).unwrap();
    let image = &revision["template"]["spec"]["containers"][0]["image"];
    assert_eq!((image, &revision["pods"]), (&json!("web:1"), &json!(0)));

    let outcome = world.run("undo web").await.succeeded();
    assert_eq!(
        outcome.stdout,
        "localreplicaset.fedrs.dev/web rolled back\n"
    );
    assert_eq!(world.image(), "web:1");
    world.settle().await;
    // The first revision differs in its constraints only.
    let outcome = world.run("undo web --to-revision=1").await.succeeded();
    assert_eq!(
        outcome.stdout,
        "localreplicaset.fedrs.dev/web rolled back\n"
    );
    let constraints = &world.web()["spec"]["constraints"];
    assert_eq!(*constraints, json!({ "antiaffinity": [] }));
    world.settle().await;
    let outcome = world.run("undo web --to-revision=9").await.failed();
    outcome.contains(&["has no revision 9: `fedrs lrs history` lists those that it has"]);
    let last = world.run("history web -o json").await.succeeded();
    let last: Value = serde_json::from_str(&last.stdout).unwrap();
    let number = &last.as_array().unwrap().last().unwrap()["revision"];
    let outcome = world.run(&format!("undo web --to-revision={number}")).await;
    outcome
        .succeeded()
        .contains(&["skipped rollback (current template already matches revision"]);
    world.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn l12_a_diff_says_whether_pods_are_updated_in_place() {
    let world = World::start().await;
    let outcome = world.run("diff web").await.succeeded();
    outcome.contains(&["localreplicaset default/web: no differences"]);
    world.run("pause web").await.succeeded();
    // Each change is a revision of its own, if the controller sees it.
    world.change(|web| {
        let template = &mut web["spec"]["template"];
        template["spec"]["containers"][0]["image"] = "web:2".into();
        template["metadata"]["labels"]["team"] = "b".into();
    });
    let outcome = world.run("diff web").await.succeeded();
    outcome.contains(&[
        "+++ spec.template\n",
        "-  - image: web:1\n+  - image: web:2\n",
        "Pods are updated in place: the images, with a restart, of containers main; labels team\n",
    ]);
    // It happens as it was said.
    let before = world.uids();
    world.run("resume web").await.succeeded();
    world.settle().await;
    assert_eq!(world.uids(), before);
    world.change(|web| {
        web["spec"]["updateMode"] = "Never".into();
        web["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["x"]);
    });
    let outcome = world.run("diff web --revision=1").await.succeeded();
    outcome.contains(&[
        "--- revision 1 (web-",
        "Pods are recreated, because these fields change: spec.containers[main].command\n",
        "spec.updateMode is Never: pods stay as they are",
    ]);
    let outcome = world.run("diff web --revision=2 --to-revision=1").await;
    outcome
        .succeeded()
        .contains(&["+++ revision 1 (web-", "Pods are updated in place"]);
    // Not in the template, but in the pods.
    world.change(|web| {
        let spec = &mut web["spec"];
        spec["template"]["spec"]["containers"][0]
            .as_object_mut()
            .unwrap()
            .remove("command");
        spec["accountId"] = "team-b".into();
    });
    let outcome = world.run("diff web --revision=2").await.succeeded();
    outcome.contains(&["Pods are updated in place: labels fedrs.dev/account\n"]);
    world.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn l18_pods_are_evicted_by_name_or_by_node() {
    let world = World::start().await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let pod = text(&world.pods()[0]["metadata"]["name"]);
    let outcome = world.run(&format!("evict pod/{pod}")).await.succeeded();
    assert_eq!(outcome.stdout, format!("pod/{pod} eviction requested\n"));
    wait_until("another pod replaces it", || {
        let pods = world.pods();
        pods.len() == 3 && pods.iter().all(|other| other["metadata"]["name"] != *pod)
    })
    .await;
    world.settle().await;

    let node = text(&world.pods()[0]["spec"]["nodeName"]);
    let read = || world.cluster().get("v1", "Node", "", &node).unwrap();
    let api = world.cluster().api();
    let nodes = api.kind_of("v1", "Node").unwrap();
    let cordon = |node: &mut Value| node["spec"]["unschedulable"] = true.into();
    api.modify(&nodes, None, "", &node, cordon).unwrap();
    let outcome = world.run(&format!("evict --node {node}")).await.succeeded();
    let expected = format!("node/{node} eviction requested\n");
    assert_eq!((outcome.stdout, &*outcome.stderr), (expected, ""));
    wait_until("its pods are elsewhere", || {
        let pods = world.pods();
        pods.len() == 3 && pods.iter().all(|pod| pod["spec"]["nodeName"] != *node)
    })
    .await;
    let cancel = format!("evict --node {node} --cancel");
    world.run(&cancel).await.succeeded();
    let labels = &read()["metadata"]["labels"];
    assert_eq!(labels["fedrs.dev/evict"], Value::Null, "{labels}");
    world.end();
}

/// An eviction that would have no effect, or another one than meant, is refused or explained.
#[tokio::test(flavor = "multi_thread")]
async fn l18_an_eviction_that_can_not_be_asked_for_is_refused() {
    let world = World::start().await;
    let containers = json!([{ "name": "main", "image": "main" }]);
    world.cluster().create(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "default", "name": "bare" },
        "spec": { "containers": containers },
    }));
    for (arguments, code, expected) in [
        (
            "evict bare",
            1,
            "pod default/bare belongs to no LocalReplicaSet",
        ),
        ("evict shop/gone", 1, "pod shop/gone not found"),
        ("evict --node gone", 1, "node gone not found"),
        ("evict", 2, "required arguments were not provided"),
        ("evict bare --node a-1", 2, "cannot be used with"),
    ] {
        let outcome = world.run(arguments).await;
        outcome.ended(code).contains(&[expected]);
    }
    // Nothing is evicted before the request is read.
    world.change(|web| web["spec"]["stopped"] = true.into());
    let outcome = world.run("evict --node a-1").await.succeeded();
    outcome.contains(&["node/a-1 is not cordoned", "run `kubectl cordon a-1`"]);
    world.run("evict --node a-1 --cancel").await.succeeded();
    let pod = world.pods().remove(1)["metadata"]["name"].clone();
    let pod = pod.as_str().unwrap();
    let asked = || {
        let pod = world.cluster().get("v1", "Pod", "default", pod).unwrap();
        pod["metadata"]["annotations"]["fedrs.dev/evict"].clone()
    };
    world.run(&format!("evict {pod}")).await.succeeded();
    assert_eq!(asked(), "true");
    let outcome = world.run(&format!("evict {pod} --cancel")).await;
    let outcome = outcome.succeeded();
    assert_eq!(outcome.stdout, format!("pod/{pod} eviction canceled\n"));
    assert_eq!(asked(), Value::Null);
    world.end();
}

/// C9: one up, one down, until the old set is gone; and back in the middle of it.
#[tokio::test(flavor = "multi_thread")]
async fn c9_a_rolling_update_from_one_set_to_another_can_be_reversed() {
    let world = World::start().await;
    let next = |app: &str| {
        let containers = json!([{ "name": "main", "image": "web:2" }]);
        json!({
            "apiVersion": FEDRS, "kind": KIND,
            "metadata": { "namespace": "default", "name": "next" },
            "spec": {
                "replicas": 0, "selector": { "matchLabels": { "app": app } },
                "template": { "metadata": { "labels": { "app": app } }, "spec": { "containers": containers } },
            },
        })
    };
    let missing = world.run("rolling-update web next").await;
    assert!(missing.failed().stderr.contains("next not found"));
    world.cluster().create(next("next"));
    let up = world.run("rolling-update web next --keep-old").await;
    let lines = [
        "localreplicaset/next scaled up to 1",
        "localreplicaset/web scaled down to 2",
        "localreplicaset/next scaled up to 2",
        "localreplicaset/web scaled down to 1",
        "localreplicaset/next scaled up to 3",
        "localreplicaset/web scaled down to 0",
        "localreplicaset/next has replaced web",
    ];
    assert_eq!(up.succeeded().stdout.lines().collect::<Vec<_>>(), lines);
    let back = world.run("rolling-update next web").await.succeeded();
    assert!(back.stdout.contains("localreplicaset/next deleted"));
    assert_eq!(world.web()["spec"]["replicas"], 3);
    let annotations = &world.web()["metadata"]["annotations"];
    assert!(annotations["fedrs.dev/rolling-update"].is_null());
    let gone = world.cluster().get(FEDRS, KIND, "default", "next");
    assert!(gone.is_none());
    let again = world.run("rolling-update next web").await;
    assert!(again.failed().stderr.contains("next not found"));
    world.end();
}
