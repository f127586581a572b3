//! `fedrs rollout` against a host whose controller is the test: it writes statuses and revisions.

use std::{
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
};

use fedrs_api::FederatedDeployment;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

use crate::{
    clusters::wait_until,
    federation::{Federation, Outcome},
};

const FEDRS: &str = "fedrs.dev/v1alpha1";
const KIND: &str = "FederatedDeployment";

/// A host with the FederatedDeployment `default/web`.
struct World(Federation);

impl World {
    /// The set has the steps canary and all; the latter needs an approval.
    async fn start() -> Self {
        let federation = Federation::start(&[]).await;
        let steps = json!([
            { "name": "canary", "clusters": ["eu"] },
            { "name": "all", "clusters": ["*"], "approval": "Before" },
        ]);
        federation.host.create(json!({
            "apiVersion": FEDRS, "kind": KIND,
            "metadata": { "namespace": "default", "name": "web" },
            "spec": {
                "replicas": 4, "selector": { "matchLabels": { "app": "web" } }, "template": template("web:2"),
                "rollout": { "steps": steps },
            },
        }));
        Self(federation)
    }

    async fn run(&self, arguments: &str) -> Outcome {
        self.0.fedrs(&format!("rollout {arguments}")).await
    }

    fn web(&self) -> Value {
        self.0.host.get(FEDRS, KIND, "default", "web").unwrap()
    }

    /// Writes a status of the current spec with these fields.
    fn set_status(&self, fields: &Value) {
        let api = self.0.host.api();
        let kind = api.kind_of(FEDRS, KIND).unwrap();
        api.modify(&kind, Some("status"), "default", "web", |web| {
            let mut status = json!({
                "observedGeneration": web["metadata"]["generation"],
                "currentRevision": "web-2", "updateRevision": "web-2", "replicas": 4, "updatedReplicas": 4,
                "availableReplicas": 4, "conditions": [condition("Ready", "True", "AllReplicasAvailable", "4 of 4")],
            });
            for (field, value) in fields.as_object().unwrap() {
                status[field] = value.clone();
            }
            web["status"] = status;
        })
        .unwrap();
    }

    /// Creates the ControllerRevision `web-NUMBER` for pods of `web:NUMBER`.
    fn create_revision(&self, number: u32, cause: &str) {
        let annotations = json!({ "kubernetes.io/change-cause": cause });
        let owner = json!({
            "apiVersion": FEDRS, "kind": KIND, "name": "web", "uid": self.web()["metadata"]["uid"], "controller": true,
        });
        self.0.host.create(json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": number,
            "metadata": {
                "namespace": "default", "name": format!("web-{number}"), "annotations": annotations,
                "labels": { "fedrs.dev/federated-deployment": "web" }, "ownerReferences": [owner],
            },
            "data": { "spec": { "template": template(&format!("web:{number}")) } },
        }));
    }

    fn image(&self) -> Value {
        self.web()["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    }
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": image }] },
    })
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-11-01T00:00:00Z",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_followed_to_its_end() {
    let world = World::start().await;
    let outcome = world.run("status web --watch=false").await.succeeded();
    let unobserved = "Waiting for federateddeployment spec update to be observed...\n";
    assert_eq!(outcome.stdout, unobserved);
    let progressing = condition("Progressing", "True", "RollingOut", "rolling out");
    let conditions = json!([progressing]);
    world.set_status(&json!({ "updatedReplicas": 1, "conditions": conditions }));
    let updating = "Waiting for rollout to finish: 1 out of 4 new replicas have been updated...";
    let outcome = world.run("status web --timeout=1s").await.failed();
    outcome.contains(&[
        updating,
        "federateddeployment default/web: the rollout is not complete after 1s",
    ]);
    let mut command = world.0.start_fedrs("rollout status fdeploy/web -n default");
    let mut lines = BufReader::new(command.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), updating);
    // An API server that is busy for a while does not end the wait.
    let gets = RequestMatcher::all().resource("federateddeployments");
    let busy = Status::new(503, "ServiceUnavailable", "busy");
    let faults = world.0.host.sim.faults();
    faults.refuse(gets, 2, busy);
    wait_until("requests were refused", || faults.counts().refused == 2).await;
    world.set_status(&json!({}));
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    let done = "federateddeployment \"web\" successfully rolled out";
    assert_eq!(rest, [done]);
    assert!(command.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_has_failed_is_an_error() {
    let world = World::start().await;
    let message = "no pod of revision web-2 became available for 600 s";
    let failed = condition("Progressing", "False", "ProgressDeadlineExceeded", message);
    world.set_status(&json!({ "updatedReplicas": 1, "conditions": [failed] }));
    for arguments in ["web", "web --watch=false"] {
        let outcome = world.run(&format!("status {arguments}")).await.failed();
        let expected = format!("error: federateddeployment default/web: {message}\n");
        assert_eq!((&*outcome.stdout, outcome.stderr), ("", expected));
    }
    let outcome = world.run("status shop/web").await.failed();
    outcome.contains(&["federateddeployment shop/web not found"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_is_shown_compared_and_undone() {
    let world = World::start().await;
    let outcome = world.run("history web").await.succeeded();
    outcome.contains(&["federateddeployment.fedrs.dev/web\nNo revisions yet.\n"]);
    world.run("undo web").await.failed().contains(&[
        "federateddeployment default/web: nothing to undo: no revision differs from spec.template",
    ]);
    world.create_revision(1, "the first");
    world.create_revision(2, "a new image");
    let clusters = json!([
        { "name": "eu", "revision": "web-2" }, { "name": "us", "revision": "web-1" }, { "name": "asia", "revision": "web-1" },
    ]);
    world.set_status(&json!({ "currentRevision": "web-1", "clusters": clusters }));
    let outcome = world.run("history web").await.succeeded();
    insta::assert_snapshot!(outcome.stdout);
    let outcome = world.run("history web --revision 1").await.succeeded();
    insta::assert_snapshot!(outcome.stdout);
    let outcome = world.run("history web --revision=1 -o json").await;
    let revision: Value = serde_json::from_str(&outcome.succeeded().stdout).unwrap();
    let shown = (&revision["name"], &revision["template"]);
    assert_eq!(shown, (&json!("web-1"), &template("web:1")));

    let outcome = world.run("diff web").await.succeeded();
    outcome.contains(&[
        "--- revision 1 (web-1)\n+++ spec.template\n",
        "-  - image: web:1\n+  - image: web:2\n",
    ]);
    let outcome = world.run("diff web --revision 2").await.succeeded();
    assert_eq!(outcome.stdout, "");
    let outcome = world.run("diff web --to-revision 9").await.failed();
    outcome.contains(&["federateddeployment default/web has no revision 9"]);

    world.run("pause web").await.succeeded();
    let outcome = world.run("undo web").await.succeeded();
    outcome.contains(&[
        "federateddeployment.fedrs.dev/web rolled back\n",
        "The rollout is paused: it begins when it is resumed.",
    ]);
    assert_eq!(world.image(), "web:1");
    let annotations = world.web()["metadata"]["annotations"].clone();
    assert_eq!(annotations["kubernetes.io/change-cause"], "the first");
    let outcome = world.run("undo web --to-revision=1").await.succeeded();
    outcome.contains(&["skipped rollback (current template already matches revision 1)"]);
    world.run("undo web --to-revision=2").await.succeeded();
    assert_eq!(world.image(), "web:2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_paused_resumed_and_restarted() {
    let world = World::start().await;
    let name = "federateddeployment.fedrs.dev/web";
    let outcome = world.run("resume web").await.failed();
    outcome.contains(&["federateddeployment default/web is not paused: spec.paused is false"]);
    let outcome = world.run("pause default/web").await.succeeded();
    assert_eq!(outcome.stdout, format!("{name} paused\n"));
    assert_eq!(world.web()["spec"]["paused"], true);
    let outcome = world.run("pause web").await.failed();
    outcome.contains(&["federateddeployment default/web is already paused: spec.paused is true"]);
    let outcome = world.run("restart web").await.failed();
    outcome.contains(&["is paused", "run `fedrs rollout resume` first"]);
    let outcome = world.run("resume web").await.succeeded();
    assert_eq!(outcome.stdout, format!("{name} resumed\n"));
    assert_eq!(world.web()["spec"]["paused"], Value::Null);
    let outcome = world.run("restart web").await.succeeded();
    assert_eq!(outcome.stdout, format!("{name} restarted\n"));
    let metadata = &world.web()["spec"]["template"]["metadata"];
    let restarted = metadata["annotations"]["kubectl.kubernetes.io/restartedAt"].as_str();
    assert!(restarted.unwrap().ends_with('Z'), "{metadata}");
    assert_eq!(metadata["labels"], json!({ "app": "web" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_step_that_waits_is_approved_once() {
    let world = World::start().await;
    let unobserved = ["the controller has not observed the latest spec yet"];
    let outcome = world.run("approve web").await.failed();
    outcome.contains(&unobserved);
    let outcome = world.run("approve web --if-waiting").await.succeeded();
    outcome.contains(&unobserved);
    let outcome = world.run("approve web2 --if-waiting").await.failed();
    outcome.contains(&["not found"]);
    let waits = |reason| condition("Progressing", "True", reason, "rolling out revision web-2");
    let status = |reason| json!({ "rollout": { "step": "all", "record": "{}" }, "conditions": [waits(reason)] });
    world.set_status(&status("RollingOut"));
    let outcome = world.run("approve web").await.failed();
    let nothing = "default/web: no step waits for an approval: rolling out revision web-2";
    outcome.contains(&[nothing]);
    let outcome = world.run("approve web --if-waiting").await.succeeded();
    outcome.contains(&[nothing]);
    let outcome = world.run("approve canary web").await.failed();
    outcome.contains(&["spec.rollout.steps[canary].approval is None: the step needs no approval"]);
    world.set_status(&status("WaitingForApproval"));
    let outcome = world.run("status web --watch=false").await.succeeded();
    outcome.contains(&["Waiting for rollout to finish: step all needs an approval..."]);
    let outcome = world.run("approve web").await.succeeded();
    let name = "federateddeployment.fedrs.dev/web";
    assert_eq!(
        outcome.stdout,
        format!("{name} step all approved for revision web-2\n")
    );
    let approvals = json!([{ "step": "all", "revision": "web-2" }]);
    assert_eq!(world.web()["spec"]["rollout"]["approvals"], approvals);
    world.set_status(&status("WaitingForApproval"));
    for arguments in ["all web", "web"] {
        let outcome = world.run(&format!("approve {arguments}")).await;
        let expected = "step all already approved for revision web-2";
        outcome.succeeded().contains(&[expected]);
    }
    assert_eq!(world.web()["spec"]["rollout"]["approvals"], approvals);
}

/// A tool that applies a manifest server-side leaves alone what this does not have: docs/rollouts.md.
#[tokio::test(flavor = "multi_thread")]
async fn l14_approvals_and_replicas_that_git_leaves_out_stay_when_it_is_applied_again() {
    let world = World::start().await;
    let mut manifest = world.web();
    world.0.host.delete(FEDRS, KIND, "default", "web");
    manifest["metadata"] = json!({ "namespace": "default", "name": "web" });
    manifest.as_object_mut().unwrap().remove("status");
    let spec = manifest["spec"].as_object_mut().unwrap();
    spec.remove("replicas");
    let client = Client::new(world.0.host.sim.service(), "default");
    let deployments: Api<FederatedDeployment> = Api::default_namespaced(client);
    let from_git = PatchParams::apply("kustomize-controller").force();
    let apply = async || {
        let patch = Patch::Apply(&manifest);
        let applied = deployments.patch("web", &from_git, &patch).await;
        applied.unwrap()
    };
    assert_eq!(apply().await.spec.replicas, 1);
    let scaled = Patch::Merge(json!({ "spec": { "replicas": 7 } }));
    let by_autoscaler = PatchParams::default();
    let scaled = deployments.patch_scale("web", &by_autoscaler, &scaled);
    scaled.await.unwrap();
    let waits = condition("Progressing", "True", "WaitingForApproval", "rolling out");
    let rollout = json!({ "step": "all", "record": "{}" });
    world.set_status(&json!({ "rollout": rollout, "conditions": [waits] }));
    world.run("approve web").await.succeeded();
    let before = world.web()["spec"].clone();
    apply().await;
    let after = world.web()["spec"].clone();
    assert_eq!(after, before);
    let approvals = json!([{ "step": "all", "revision": "web-2" }]);
    assert_eq!(
        (&after["replicas"], &after["rollout"]["approvals"]),
        (&json!(7), &approvals)
    );
}

/// A status that is written between the read and the write of a command does not make it fail.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_conflicts_with_a_status_is_tried_again() {
    let world = World::start().await;
    let patches = RequestMatcher::all()
        .verb(Verb::Patch)
        .resource("federateddeployments");
    let conflict = || Status::new(409, "Conflict", "the object has been modified");
    let faults = world.0.host.sim.faults();
    faults.refuse(patches.clone(), 4, conflict());
    world.run("pause web").await.succeeded();
    faults.refuse(patches, 5, conflict());
    let outcome = world.run("resume web").await.failed();
    outcome.contains(&[
        "failed to patch federateddeployment/web",
        "the object has been modified",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_of_kubectl_is_the_same_program_under_another_name() {
    let world = World::start().await;
    let plugin = world.0.path("kubectl-fedrs");
    symlink(env!("CARGO_BIN_EXE_fedrs"), &plugin).unwrap();
    let outcome = world
        .0
        .run(&plugin, &[], "rollout pause web")
        .await
        .succeeded();
    assert_eq!(outcome.stdout, "federateddeployment.fedrs.dev/web paused\n");
    let outcome = world
        .0
        .run(&plugin, &[], "rollout -n default restart web")
        .await;
    outcome
        .failed()
        .contains(&["run `kubectl fedrs rollout resume` first"]);
    let outcome = world
        .0
        .run(&plugin, &[], "rollout undo --help")
        .await
        .succeeded();
    outcome.contains(&[
        "Usage: kubectl fedrs rollout undo [OPTIONS]",
        "`kubectl fedrs rollout history`",
        "\n  kubectl fedrs rollout undo web\n",
    ]);
}
