//! `fedrs discovery` over the members that have joined, with the permissions that join and `fedrs rbac` grant it, and no others.

use std::{
    fs::File,
    process::{Child, Stdio},
};

use controller_base::rbac::Manifest;
use fedrs_api::ClusterType;
use serde_json::{Value, json};
use sim_cluster::{Kubeconfig, User};

use crate::{
    clusters::{Cluster, NAMESPACE, wait_until},
    federation::{Federation, signal},
};

const ACCOUNT: &str = "system:serviceaccount:fedrs-system:fedrs-discovery";
const TOKEN: &str = "of-discovery";
/// The file of its log.
const LOG: &str = "discovery.log";

/// The running service.
struct Service<'a> {
    federation: &'a Federation,
    process: Child,
    address: String,
}

impl<'a> Service<'a> {
    /// Starts it with the account on the host that `fedrs rbac discovery-host` is for, and an EndpointSet `web`.
    async fn start(federation: &'a Federation) -> Self {
        let host = &federation.host;
        let manifests = discovery::rbac::manifests(ClusterType::Host, None, None);
        let objects = manifests.iter().map(Manifest::to_value);
        // Join has created the namespace.
        for object in objects.filter(|object| object["kind"] != "Namespace") {
            host.create(object);
        }
        let groups = ["system:serviceaccounts", "system:authenticated"];
        host.api().admit_token(TOKEN, User::named(ACCOUNT, &groups));
        let kubeconfig = Kubeconfig {
            token: TOKEN.to_owned(),
            ..host.server.kubeconfig().clone()
        };
        federation.write("discovery.yaml", &kubeconfig.to_yaml());
        host.create(json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet",
            "metadata": { "namespace": "default", "name": "web" },
            "spec": { "source": { "selector": { "matchLabels": { "app": "web" } } } },
        }));
        let log = File::create(federation.path(LOG)).unwrap();
        let mut command = federation.command();
        let any = "127.0.0.1:0";
        command
            .args(["discovery", "--kubeconfig", "discovery.yaml"])
            .args(["--http", any, "--grpc", any, "--dns", any, "--listen", any])
            .stdout(Stdio::null())
            .stderr(log);
        let mut service = Self {
            federation,
            process: command.spawn().unwrap(),
            address: String::new(),
        };
        wait_until("it answers", || {
            let log = service.log();
            let address = log
                .split_once(" http=")
                .and_then(|(_, rest)| rest.split_once(' '));
            service.address = address.map_or_else(String::new, |(address, _)| address.to_owned());
            !service.address.is_empty()
        })
        .await;
        service
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.federation.path(LOG)).unwrap()
    }

    /// The clusters of the endpoints, and the members of which changes may be missing; nothing while there is no answer.
    async fn answer(&self) -> Option<(Vec<String>, Vec<String>)> {
        let command = format!(
            "resolve default/web --servers http://{} -o json",
            self.address
        );
        let answer: Value =
            serde_json::from_str(&self.federation.fedrs(&command).await.stdout).ok()?;
        let texts = |list: &Value, field: &str| {
            let list = list.as_array().into_iter().flatten();
            list.map(|one| one[field].as_str().unwrap().to_owned())
                .collect()
        };
        Some((
            texts(&answer["endpoints"], "cluster"),
            texts(&answer["staleMembers"], "name"),
        ))
    }

    /// Waits for this answer.
    async fn wait_for(&self, clusters: &[&str], stale: &[&str]) {
        let mut last = None;
        for _ in 0..300 {
            last = self.answer().await;
            if let Some((found, stale_members)) = &last
                && (found == clusters && stale_members == stale)
            {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("expected {clusters:?}, stale {stale:?}; the last answer is {last:?}");
    }
}

/// Prints the log when a test fails.
impl Drop for Service<'_> {
    fn drop(&mut self) {
        signal("KILL", &self.process);
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

fn create_pod(cluster: &Cluster) {
    cluster.create(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "default", "name": "web", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "main" }] },
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_join_are_followed_and_those_that_leave_keep_their_endpoints() {
    let federation = Federation::start(&["eu", "us"]).await;
    for name in ["eu", "us"] {
        create_pod(federation.member(name));
    }
    // No controller runs.
    let join = "--with-discovery --timeout 0s";
    let outcome = federation.join("eu", join).await.failed();
    outcome.contains(&[
        "host    secret/discovery-eu created: new token for serviceaccount/fedrs-discovery-",
        "host    role/discovery-eu created",
    ]);
    let service = Service::start(&federation).await;
    service.wait_for(&["eu"], &[]).await;

    // A member that discovery may not read is known, and its endpoints are not.
    federation.join("us", "--timeout 0s").await.failed();
    service.wait_for(&["eu"], &["us"]).await;
    federation.join("us", join).await.failed();
    service.wait_for(&["eu", "us"], &[]).await;

    let outcome = federation.fedrs("unjoin eu --force --yes").await;
    outcome.succeeded().contains(&[
        "host    secret/discovery-eu deleted",
        "host    role/discovery-eu deleted",
    ]);
    service.wait_for(&["eu", "us"], &["eu"]).await;
    let log = service.log();
    for text in ["discoverySecretRef is not set", "its endpoints stay"] {
        assert!(log.contains(text), "{text}: {log}");
    }
    assert!(!log.contains("eyJ"), "a token is in the log: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_taken_away_is_not_used_any_more_and_one_that_is_back_is() {
    let federation = Federation::start(&["eu"]).await;
    create_pod(federation.member("eu"));
    federation
        .join("eu", "--with-discovery --timeout 0s")
        .await
        .failed();
    let secret = federation
        .host
        .get("v1", "Secret", NAMESPACE, "discovery-eu")
        .unwrap();
    let service = Service::start(&federation).await;
    service.wait_for(&["eu"], &[]).await;
    federation
        .host
        .delete("v1", "Secret", NAMESPACE, "discovery-eu");
    service.wait_for(&["eu"], &["eu"]).await;
    federation.host.create(json!({
        "apiVersion": "v1", "kind": "Secret", "type": secret["type"], "data": secret["data"],
        "metadata": { "namespace": NAMESPACE, "name": "discovery-eu" },
    }));
    service.wait_for(&["eu"], &[]).await;
}
