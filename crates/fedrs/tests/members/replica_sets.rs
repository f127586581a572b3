//! `fedrs replica-set-controller` as a process, with the CRD that `fedrs crds` prints.

use serde_json::{Value, json};

use crate::{clusters::wait_until, federation::Federation};

const FEDRS: &str = "fedrs.dev/v1alpha1";
const KIND: &str = "LocalReplicaSet";

#[tokio::test(flavor = "multi_thread")]
async fn l13_two_processes_run_a_set_and_one_of_them_leads() {
    let federation = Federation::start(&["a"]).await;
    let cluster = federation.member("a");
    let crd = federation.fedrs("crds --replica-set-controller").await;
    let crd: Value = serde_saphyr::from_str(&crd.succeeded().stdout).unwrap();
    cluster.create(crd);
    let run = |name: &str| {
        let options = format!("--kubeconfig a.yaml --listen 127.0.0.1:0 --identity {name}");
        federation.start_fedrs(&format!("replica-set-controller {options}"))
    };
    let processes = [run("one"), run("two")];
    cluster.create(json!({
        "apiVersion": FEDRS, "kind": KIND,
        "metadata": { "namespace": "default", "name": "web" },
        "spec": {
            "replicas": 3, "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    }));
    wait_until("three replicas are available", || {
        let set = cluster.get(FEDRS, KIND, "default", "web");
        set.is_some_and(|set| set["status"]["availableReplicas"] == 3)
    })
    .await;
    let lease = || {
        let name = "fedrs-replica-set-controller";
        let lease = cluster.get("coordination.k8s.io/v1", "Lease", "fedrs-system", name);
        lease.unwrap()["spec"]["holderIdentity"].clone()
    };
    let leader = lease();
    let [one, two] = processes;
    let (first, second) = if leader == "one" {
        (one, two)
    } else {
        (two, one)
    };
    end(first);
    wait_until("the other one leads", || {
        let now = lease();
        now != leader && !["", "null"].contains(&now.as_str().unwrap_or("null"))
    })
    .await;
    end(second);
}

/// Ends a process gracefully.
fn end(mut process: std::process::Child) {
    crate::federation::signal("TERM", &process);
    assert!(process.wait().unwrap().success());
}
