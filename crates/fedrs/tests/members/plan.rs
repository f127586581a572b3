//! `fedrs plan` with the state of a host: what it requests, needs and prints.

use serde_json::{Value, json};
use sim_cluster::{Kubeconfig, RequestMatcher, Status, User, Verb};

use crate::{controlled::running, federation::Federation};

/// The ClusterRole of the user in `viewer.yaml`.
const VIEWER: &str = "plan-viewer";

/// Writes `viewer.yaml`, the kubeconfig of a user who may read these resources and nothing else.
fn write_viewer(federation: &Federation, resources: &[&str]) {
    let host = &federation.host;
    let user = User::named("viewer", &["system:authenticated"]);
    host.api().admit_token("a-viewer", user);
    let kubeconfig = Kubeconfig {
        token: "a-viewer".to_owned(),
        ..host.server.kubeconfig().clone()
    };
    federation.write("viewer.yaml", &kubeconfig.to_yaml());
    let rbac = "rbac.authorization.k8s.io/v1";
    host.create(json!({
        "apiVersion": rbac, "kind": "ClusterRole", "metadata": { "name": VIEWER },
        "rules": [{ "apiGroups": ["fedrs.dev"], "resources": resources, "verbs": ["get", "list"] }],
    }));
    host.create(json!({
        "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": { "name": VIEWER },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": VIEWER },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer" }],
    }));
}

/// Rejects, and counts, all requests of the host but reads, and all of Secrets; the members can't be reached.
fn reject_all_but_reads(federation: &Federation, members: &[&str]) {
    let faults = federation.host.sim.faults();
    let writes = [
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Watch,
    ];
    let writes = writes.map(|verb| RequestMatcher::all().verb(verb));
    let secrets = RequestMatcher::all().resource("secrets");
    for requests in writes.into_iter().chain([secrets]) {
        faults.refuse(requests, 1000, Status::new(418, "Teapot", "not a read"));
    }
    for name in members {
        federation.member(name).sim.faults().set_unreachable(true);
    }
}

fn manifest(name: &str, replicas: u32, clusters: &Value) -> String {
    manifest_of("FederatedReplicaSet", name, replicas, clusters)
}

fn manifest_of(kind: &str, name: &str, replicas: u32, clusters: &Value) -> String {
    let set = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": kind, "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "placement": { "rebalance": true, "clusters": clusters },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    });
    set.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_reads_sets_and_members_and_writes_nothing() {
    let mut federation = running().await;
    federation.create_kind("FederatedDeployment", "api", 4);
    federation.wait_for_kind("FederatedDeployment", "api").await;
    federation.stop_controller();
    let all = [
        "federatedreplicasets",
        "federateddeployments",
        "memberclusters",
    ];
    write_viewer(&federation, &all);
    let before = federation.contents();
    reject_all_but_reads(&federation, &["eu", "us"]);
    let plan = async |arguments: &str| {
        let arguments = format!("plan --kubeconfig viewer.yaml {arguments}");
        federation.fedrs(&arguments).await
    };

    let outcome = plan("web").await.succeeded();
    outcome.contains(&["default/web: 4 replicas desired, nothing changes"]);
    let outcome = plan("default/web --lose eu").await.succeeded();
    let outcome = outcome.contains(&["default/web: 4 replicas desired, 2 move"]);
    assert_eq!(
        row(&outcome.stdout, "eu")[..4],
        ["eu", "us", "2", ""],
        "{}",
        outcome.stdout
    );
    let outcome = plan("-A --drain eu").await.succeeded();
    outcome.contains(&[
        "default    FederatedDeployment  api",
        "default    FederatedReplicaSet  web",
        "eu 2->0, us 2->4",
        "2 of 2 sets change, 4 replicas move, 0 are unplaced",
    ]);
    let outcome = plan("--lose eu --cordon us -n default").await.succeeded();
    outcome.contains(&["eu 2->0", "4 are unplaced"]);
    let outcome = plan("web --set-replicas 9 -o json").await.succeeded();
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(json["sets"][0]["replicas"], 9);
    assert_eq!(json["summary"]["changedSets"], 1);

    federation.write(
        "new.yaml",
        &manifest(
            "new",
            5,
            &json!({ "eur": { "weight": 1 }, "us": { "weight": 1 } }),
        ),
    );
    let outcome = plan("-f new.yaml").await.succeeded();
    outcome.contains(&[
        "default/new: 5 replicas desired, 5 added",
        "no member cluster is named \"eur\"; did you mean \"eu\"?",
    ]);
    federation.write(
        "web.yaml",
        &manifest("web", 4, &json!({ "us": { "weight": 1 } })),
    );
    let outcome = plan("-f web.yaml").await.succeeded();
    outcome.contains(&["default/web: 4 replicas desired, 2 move"]);
    plan_rollouts(&federation).await;

    assert_eq!(federation.host.sim.faults().counts().refused, 0);
    assert_eq!(federation.contents(), before);
}

async fn plan_rollouts(federation: &Federation) {
    let plan = async |arguments: &str| {
        let arguments = format!("rollout plan --kubeconfig viewer.yaml {arguments}");
        federation.fedrs(&arguments).await.succeeded()
    };
    let outcome = plan("api --pod-start 10s").await;
    let outcome = outcome.contains(&[
        "FederatedDeployment default/api: 4 replicas in 2 clusters, at most 1 unavailable and 1 surplus pods",
        "the plan is that of a restart",
    ]);
    assert_eq!(
        row(&outcome.stdout, "eu")[..4],
        ["eu", "-", "2", "1+1"],
        "{}",
        outcome.stdout
    );

    let all = json!({ "*": { "weight": 1 } });
    let kind = "FederatedDeployment";
    federation.write("api.yaml", &manifest_of(kind, "api", 4, &all));
    let outcome = plan("-f api.yaml").await;
    let outcome = outcome.contains(&["nothing is to be rolled out"]);
    assert!(!outcome.stdout.contains("Takes"), "{}", outcome.stdout);
    let image = |image: &str| format!("\"image\":\"{image}\"");
    let changed = manifest_of(kind, "api", 4, &json!({ "us": { "weight": 1 } }));
    federation.write(
        "api.yaml",
        &changed.replace(&image("main"), &image("main:2")),
    );
    let outcome = plan("-f api.yaml").await;
    outcome.contains(&["Takes as long as pods take to become ready: see --pod-start."]);
    let outcome = plan("-f api.yaml -o json").await;
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(json["clusters"][0]["name"], "us");
    assert_eq!(json["clusters"][0]["replicas"], 4);
    assert_eq!(json["clusters"][1], Value::Null);
    assert_eq!(json["atLeastSeconds"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_planned_without_a_host() {
    let federation = Federation::start(&[]).await;
    let all = json!({ "*": { "weight": 1 } });
    federation.write(
        "api.yaml",
        &manifest_of("FederatedDeployment", "api", 4, &all),
    );
    let plan = "rollout plan -f api.yaml --kubeconfig none.yaml --clusters eu,us --pod-start 10s";
    let outcome = federation.fedrs(plan).await.succeeded();
    outcome.contains(&["/api: 4 replicas in 2 clusters", "Takes at least 20s"]);
    federation.write("web.yaml", &manifest("web", 4, &all));
    for (arguments, expected) in [
        (
            "-f web.yaml --clusters eu",
            "a FederatedReplicaSet has no rollouts",
        ),
        ("-f web.yaml", "a FederatedReplicaSet has no rollouts"),
        ("frs/web", "a FederatedReplicaSet has no rollouts"),
        ("api", "federateddeployment default/api not found"),
        ("", "<[NAMESPACE/]NAME>"),
    ] {
        let outcome = federation.fedrs(&format!("rollout plan {arguments}")).await;
        assert_eq!(outcome.stdout, "", "{arguments}");
        outcome.contains(&[expected]);
    }
}

/// The first line of a table that begins with `name`, by its words, with an empty one at the end.
fn row<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let rows = text.lines().map(|line| line.split_whitespace());
    let mut rows = rows.filter(|words| words.clone().next() == Some(name));
    rows.next().unwrap().chain([""]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_it_can_not_read() {
    let federation = Federation::start(&[]).await;
    federation.create_web(4);
    write_viewer(&federation, &["federatedreplicasets"]);
    let outcome = federation.fedrs("plan web --kubeconfig viewer.yaml").await;
    outcome.failed().contains(&[
        "host: failed to list memberclusters",
        "A plan needs the permission to list memberclusters.fedrs.dev",
    ]);
    let outcome = federation
        .fedrs("explain web --kubeconfig viewer.yaml")
        .await;
    outcome
        .succeeded()
        .contains(&["default/web: 4 replicas desired"]);
    let outcome = federation
        .fedrs("explain shop --kubeconfig viewer.yaml")
        .await;
    outcome.failed().contains(&[
        "the permission to get federateddeployments.fedrs.dev in the namespace default",
    ]);
    let outcome = federation.fedrs("plan shop").await.failed();
    outcome.contains(&["federatedreplicaset or federateddeployment default/shop not found"]);
    let outcome = federation.fedrs("plan fdeploy/web").await.failed();
    outcome.contains(&["federateddeployment default/web not found"]);
    let outcome = federation.fedrs("plan web").await.succeeded();
    outcome.contains(&["the controller has not observed the latest spec yet"]);
    for crd in fedrs_api::crd::all() {
        let name = crd.metadata.name.unwrap();
        let kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        federation.host.delete(kind.0, kind.1, "", &name);
    }
    let outcome = federation.fedrs("plan -A").await.failed();
    outcome.contains(&["the CRDs of fedrs are not installed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_input_of_a_plan_is_named() {
    let federation = Federation::start(&[]).await;
    federation.host.create(json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MemberCluster", "metadata": { "name": "eu-west" }, "spec": {},
    }));
    federation.create_web(4);
    let outcome = federation.fedrs("plan web --lose eu-wst").await.failed();
    outcome.contains(&["no member cluster is named \"eu-wst\"; did you mean \"eu-west\"?"]);
    let outcome = federation.fedrs("plan web").await.succeeded();
    outcome.contains(&["eu-west: the controller has not observed the member yet"]);
    let outcome = federation.fedrs("plan web --clusters eu-west").await;
    assert_eq!(outcome.stdout, "");
    outcome.contains(&["--clusters describes clusters for the manifest of --filename"]);
    let outcome = federation.fedrs("plan --set-replicas 3").await.failed();
    outcome.contains(&["--set-replicas needs the name of one"]);
    let outcome = federation.fedrs("plan a/b/c").await.failed();
    outcome.contains(&["invalid name \"a/b/c\""]);
    let selector = |app: &str| format!("\"matchLabels\":{{\"app\":\"{app}\"}}");
    let broken = manifest("web", 4, &json!({})).replace(&selector("web"), &selector("shop"));
    federation.write("web.yaml", &broken);
    let outcome = federation.fedrs("plan -f web.yaml").await;
    assert_eq!(outcome.stdout, "");
    outcome.contains(&["web.yaml: spec.selector: does not match spec.template.metadata.labels"]);
    let other = manifest("web", 4, &json!({})).replace("\"app\":\"web\"", "\"app\":\"shop\"");
    federation.write("web.yaml", &other);
    let outcome = federation.fedrs("plan -f web.yaml").await.failed();
    outcome.contains(&["spec.selector: the field is immutable"]);
}
