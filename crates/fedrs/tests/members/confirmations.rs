//! `fedrs migrate confirm` and `start`: persons shut pods down, confirm that, and start the ones in their places (M4, M7, M12).

use serde_json::{Value, json};

use crate::{
    clusters::wait_until,
    federation::Outcome,
    lrs::{FEDRS, World},
};

/// A pod of `policy` that is asked to leave its cordoned node, which has a MigrationRequest of this name.
struct Asked {
    world: World,
    pod: String,
    uid: String,
    request: String,
}

impl Asked {
    async fn start(policy: Value) -> Self {
        let policy = json!({
            "apiVersion": FEDRS, "kind": "MigrationPolicy",
            "metadata": { "namespace": "default", "name": "all" }, "spec": policy,
        });
        let world = World::start_with(&[policy]).await;
        let pod = world.pods().remove(0);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let [pod_name, uid] = ["name", "uid"].map(|of| text(&pod["metadata"][of]));
        let node = text(&pod["spec"]["nodeName"]);
        let api = world.cluster().api();
        let nodes = api.kind_of("v1", "Node").unwrap();
        let cordon = |node: &mut Value| node["spec"]["unschedulable"] = true.into();
        api.modify(&nodes, None, "", &node, cordon).unwrap();
        let asked = Self {
            world,
            pod: pod_name,
            uid,
            request: String::new(),
        };
        let outcome = asked.fedrs(&format!("migrate pod {}", asked.pod)).await;
        let stdout = outcome.succeeded().stdout;
        let request = stdout.trim().rsplit('/').next().unwrap().to_owned();
        Self { request, ..asked }
    }

    async fn fedrs(&self, arguments: &str) -> Outcome {
        let arguments = format!("{arguments} --kubeconfig a.yaml");
        self.world.federation.fedrs(&arguments).await
    }

    /// `fedrs migrate confirm` of the request.
    async fn confirm(&self) -> Outcome {
        self.fedrs(&format!("migrate confirm {}", self.request))
            .await
    }

    fn status(&self) -> Value {
        let kind = "MigrationRequest";
        let request = (self.world.cluster()).get(FEDRS, kind, "default", &self.request);
        request.unwrap()["status"].clone()
    }

    async fn until(&self, phase: &str, awaits: &str) {
        let is_there = || {
            let status = self.status();
            status["phase"] == phase && status["awaits"].as_str().unwrap_or_default() == awaits
        };
        wait_until(&format!("{phase} {awaits}"), is_there).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m7_m12_a_person_shuts_a_pod_down_confirms_that_and_starts_the_one_in_its_place() {
    let asked = Asked::start(json!({ "selector": {}, "method": "Manual" })).await;
    asked.until("WaitingForConfirmation", "ShutDown").await;
    let outcome = asked.confirm().await.failed();
    outcome.contains(&["its pod has not been shut down", "kubectl delete pod"]);
    let outcome = asked
        .fedrs(&format!("migrate start {}", asked.pod))
        .await
        .failed();
    outcome.contains(&["has no scheduling gate fedrs.dev/start"]);

    asked
        .world
        .cluster()
        .delete("v1", "Pod", "default", &asked.pod);
    asked
        .until("WaitingForConfirmation", "ConfirmStopped")
        .await;
    let uids = |world: &World| {
        let pods = world.pods();
        let uids = pods
            .iter()
            .map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned());
        uids.collect::<Vec<_>>()
    };
    assert!(
        uids(&asked.world).contains(&asked.uid),
        "nothing takes its place"
    );
    let outcome = asked.confirm().await.succeeded();
    let expected = " has confirmed that the pod was shut down\n";
    assert!(outcome.stdout.ends_with(expected), "{}", outcome.stdout);

    asked.until("Placing", "Start").await;
    let new = asked
        .world
        .cluster()
        .get("v1", "Pod", "default", &asked.pod)
        .unwrap();
    assert_ne!(new["metadata"]["uid"], *asked.uid);
    assert_eq!(
        new["spec"]["schedulingGates"],
        json!([{ "name": "fedrs.dev/start" }])
    );
    let outcome = asked.confirm().await.failed();
    outcome.contains(&["fedrs migrate start"]);
    asked
        .fedrs(&format!("migrate start {}", asked.pod))
        .await
        .succeeded();
    asked.until("Done", "").await;
    asked.world.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn m2_m4_a_pod_is_copied_and_a_person_confirms_both_steps() {
    let asked = Asked::start(json!({
        "selector": {}, "method": "Copy",
        "copy": { "confirmBeforeActivation": true, "confirmBeforeShutdown": true },
    }))
    .await;
    let replicas = asked.world.pods().len();
    asked
        .until("WaitingForConfirmation", "ConfirmActivation")
        .await;
    assert_eq!(asked.world.pods().len(), replicas + 1, "n + 1 for the time");
    let outcome = asked.confirm().await.succeeded();
    let expected = " has confirmed that clients may reach the new pod\n";
    assert!(outcome.stdout.ends_with(expected), "{}", outcome.stdout);
    asked
        .until("WaitingForConfirmation", "ConfirmShutdown")
        .await;
    let outcome = asked.confirm().await.succeeded();
    let expected = " has confirmed that the old pod may be shut down\n";
    assert!(outcome.stdout.ends_with(expected), "{}", outcome.stdout);
    asked.until("Done", "").await;
    let status = asked.status();
    assert_ne!(status["newPod"], *asked.pod);
    assert_eq!(asked.world.pods().len(), replicas);
    asked.world.end();
}
