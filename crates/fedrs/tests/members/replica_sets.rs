//! `fedrs replica-set-controller` as a process, with the CRD that `fedrs crds` prints.

use std::fs;

use serde_json::{Value, json};

use crate::{
    clusters::{Cluster, wait_until},
    federation::Federation,
};

const FEDRS: &str = "fedrs.dev/v1alpha1";
const KIND: &str = "LocalReplicaSet";

#[tokio::test(flavor = "multi_thread")]
async fn l13_two_processes_run_a_set_and_one_of_them_leads() {
    let federation = Federation::start(&["a"]).await;
    let cluster = federation.member("a");
    let crds = federation.fedrs("crds --replica-set-controller").await;
    let crds: Vec<Value> = serde_saphyr::from_multiple(&crds.succeeded().stdout).unwrap();
    for crd in crds {
        cluster.create(crd);
    }
    let run = |name: &str| {
        let options = format!("--kubeconfig a.yaml --listen 127.0.0.1:0 --identity {name}");
        federation.start_fedrs(&format!("replica-set-controller {options}"))
    };
    let processes = [run("one"), run("two")];
    cluster.create(web());
    until_available(cluster, 3).await;
    let lease = || lease(cluster);
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

fn web() -> Value {
    json!({
        "apiVersion": FEDRS, "kind": KIND,
        "metadata": { "namespace": "default", "name": "web" },
        "spec": {
            "replicas": 3, "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    })
}

async fn until_available(cluster: &Cluster, replicas: u64) {
    wait_until("the replicas are available", || {
        let set = cluster.get(FEDRS, KIND, "default", "web");
        set.is_some_and(|set| set["status"]["availableReplicas"] == replicas)
    })
    .await;
}

/// Who leads in a cluster.
fn lease(cluster: &Cluster) -> Value {
    let name = "fedrs-replica-set-controller";
    let lease = cluster.get("coordination.k8s.io/v1", "Lease", "fedrs-system", name);
    lease.unwrap()["spec"]["holderIdentity"].clone()
}

/// One process for several clusters: each has an election of its own, and one that can't be reached stops no other.
#[tokio::test(flavor = "multi_thread")]
async fn l13_a_remote_process_runs_the_sets_of_each_cluster_with_a_kubeconfig() {
    let federation = Federation::start(&["a", "b", "c"]).await;
    let directory = federation.path("clusters");
    fs::create_dir(&directory).unwrap();
    let add = |name: &str| {
        let file = format!("{name}.yaml");
        fs::copy(federation.path(&file), directory.join(&file)).unwrap();
    };
    for name in ["a", "b", "c"] {
        let cluster = federation.member(name);
        for crd in fedrs_api::crd::local() {
            cluster.create(json!(crd));
        }
        cluster.create(web());
    }
    federation.member("c").sim.faults().set_unreachable(true);
    add("a");
    add("c");
    let options = "--members clusters --listen 127.0.0.1:0 --identity remote";
    let process = federation.start_fedrs(&format!("replica-set-controller --remote {options}"));
    let [a, b, c] = ["a", "b", "c"].map(|name| federation.member(name));
    until_available(a, 3).await;
    add("b");
    until_available(b, 3).await;
    federation.member("c").sim.faults().set_unreachable(false);
    until_available(c, 3).await;
    assert_eq!(lease(b), "remote");
    fs::remove_file(directory.join("b.yaml")).unwrap();
    wait_until("the controller of b has released its Lease", || {
        lease(b) == ""
    })
    .await;
    a.create(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "other" },
    }));
    let mut other = web();
    other["metadata"]["namespace"] = "other".into();
    a.create(other);
    wait_until("a still has a controller", || {
        let set = a.get(FEDRS, KIND, "other", "web");
        set.is_some_and(|set| set["status"]["availableReplicas"] == 3)
    })
    .await;
    end(process);
    assert_eq!(lease(a), "");
}

/// Ends a process gracefully.
fn end(mut process: std::process::Child) {
    crate::federation::signal("TERM", &process);
    assert!(process.wait().unwrap().success());
}
