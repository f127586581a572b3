//! Who gets what, by the permissions on the host: with the client of Rust, by TLS.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use axum::http::{Request, Response};
use discovery::{
    Credentials, DiscoveryMetrics, LoadedSnapshots, Service, Tls, UpstreamMetrics, Upstreams,
};
use endpoint_resolver::{Endpoints, Reason, Resolver};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use sim_cluster::SimCluster;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::{ServiceExt, service_fn};

use crate::{
    certificates::{Authority, Pair},
    grpc::Server,
    world::{PATIENCE, World, answer, create_pod, write},
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

/// The host, which knows the token `right`.
fn host(cluster: &SimCluster) -> Client {
    let cluster = cluster.direct_service();
    let service = service_fn(move |request: Request<Body>| {
        let cluster = cluster.clone();
        async move {
            if !request.uri().path().ends_with("/tokenreviews") {
                return cluster
                    .oneshot(request)
                    .await
                    .map(|response| response.map(axum::body::Body::new));
            }
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            let is_right = review["spec"]["token"] == "right";
            review["status"] = json!({
                "authenticated": is_right, "audiences": ["fedrs-discovery"], "user": { "username": "checkout" },
            });
            Ok(Response::new(axum::body::Body::from(review.to_string())))
        }
    });
    Client::new(service, "default")
}

/// A service by TLS, and the permission of `subject` to get the set `web`.
async fn start(authority: &Authority, has_clients: bool, subject: &Value) -> (World, Server) {
    let world = World::start(async |[eu, _]: &[SimCluster; 2]| create_pod(eu, "a").await).await;
    world.answer(|answer| answer.endpoints.len() == 1).await;
    let rules = json!([{
        "apiGroups": ["fedrs.dev"], "resources": ["endpointsets"], "resourceNames": ["web"], "verbs": ["get"],
    }]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "get-web" }, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": "get-web" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "get-web" },
        "subjects": [subject],
    });
    write(&world.host, "POST", &format!("{RBAC}/roles"), &role).await;
    write(
        &world.host,
        "POST",
        &format!("{RBAC}/rolebindings"),
        &binding,
    )
    .await;
    let tls = Tls::load(authority.files(has_clients)).unwrap();
    let service = Service::new(Arc::clone(world.catalog()), DiscoveryMetrics::default());
    let service = service.with_tls(Some(tls));
    let service = service.with_reviews(host(&world.host), "fedrs-discovery".to_owned());
    let server = Server::lazy(service).await;
    (world, server)
}

async fn until(what: &str, endpoints: &Endpoints, is_met: impl Fn(&Endpoints) -> bool) {
    let mut endpoints = endpoints.clone();
    let met = async {
        while !is_met(&endpoints) {
            endpoints.changed().await.unwrap();
        }
    };
    let met = timeout(Duration::from_secs(60), met).await;
    met.unwrap_or_else(|_| panic!("no {what}: {:?}", endpoints.problem()));
}

fn has_one(endpoints: &Endpoints) -> bool {
    let current = endpoints.current();
    current.is_some_and(|current| current.endpoints.len() == 1 && current.is_live())
}

fn has_problem(endpoints: &Endpoints, reason: Reason) -> bool {
    let problem = endpoints.problem();
    problem.is_some_and(|problem| problem.reason == reason)
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

#[tokio::test]
async fn the_group_of_a_client_certificate_gets_what_it_may_get() {
    let (authority, files) = (Authority::new(), Files::new());
    let subject =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "shop" });
    let (_world, server) = start(&authority, true, &subject).await;
    let resolver = |group: &str| {
        let Pair { certificate, key } = authority.client("checkout", group);
        let certificate = files.write(&format!("{group}.crt"), &certificate);
        let key = files.write(&format!("{group}.key"), &key);
        Resolver::builder()
            .server(server.uri.replace("http:", "https:"))
            .ca_file(files.write("ca.crt", &authority.pem()))
            .client_certificate(certificate, key)
            .build()
            .unwrap()
    };
    let shop = resolver("shop");
    until(
        "endpoints",
        &shop.endpoints("default/web").unwrap(),
        has_one,
    )
    .await;
    let other = shop.endpoints("default/other").unwrap();
    until("problem", &other, |found| {
        has_problem(found, Reason::Forbidden)
    })
    .await;
    let text = "endpointsets.fedrs.dev \"other\" is forbidden: User \"checkout\" cannot get resource \"endpointsets\" in API group \"fedrs.dev\" in the namespace \"default\"";
    assert_eq!(other.problem().unwrap().message, text);
    let strangers = resolver("strangers");
    let web = strangers.endpoints("default/web").unwrap();
    until("problem", &web, |found| {
        has_problem(found, Reason::Forbidden)
    })
    .await;
    assert!(web.current().is_none());
}

#[tokio::test]
async fn a_token_that_changes_is_read_again() {
    let (authority, files) = (Authority::new(), Files::new());
    let subject =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "checkout" });
    let (_world, server) = start(&authority, false, &subject).await;
    let token = files.write("token", "old");
    let resolver = Resolver::builder()
        .server(server.uri.replace("http:", "https:"))
        .ca_file(files.write("ca.crt", &authority.pem()))
        .token_file(&token)
        .build()
        .unwrap();
    let web = resolver.endpoints("default/web").unwrap();
    until("problem", &web, |found| {
        has_problem(found, Reason::Unavailable)
    })
    .await;
    let problem = web.problem().unwrap();
    assert!(problem.message.contains("Unauthorized"), "{problem}");
    files.write("token", "right\n");
    until("endpoints", &web, has_one).await;
}

/// A replica of the service reads another one by TLS, with the token of a user who may list all sets.
#[tokio::test]
async fn a_replica_gets_everything_with_the_right_to_list_all_sets() {
    let (authority, files) = (Authority::new(), Files::new());
    let subject =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "checkout" });
    let (world, server) = start(&authority, false, &subject).await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "list-all" },
        "rules": [{ "apiGroups": ["fedrs.dev"], "resources": ["endpointsets"], "verbs": ["list"] }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "list-all" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "list-all" },
        "subjects": [subject],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    write(&world.host, "POST", &format!("{rbac}/clusterroles"), &role).await;
    write(
        &world.host,
        "POST",
        &format!("{rbac}/clusterrolebindings"),
        &binding,
    )
    .await;
    let credentials = Credentials {
        ca: Some(files.write("ca.crt", &authority.pem())),
        token: Some(files.write("token", "right")),
        ..Credentials::default()
    };
    let uri = server.uri.replace("http:", "https:");
    let upstreams = Upstreams::new([uri.as_str()], credentials).unwrap();
    let catalog = Upstreams::catalog(LoadedSnapshots::default());
    let metrics = UpstreamMetrics::register(&mut Registry::default());
    let cancel = CancellationToken::new();
    let follow = upstreams.follow(Arc::clone(&catalog), metrics, PATIENCE, cancel.clone());
    let following = tokio::spawn(follow);
    answer(&catalog, |answer| answer.endpoints.len() == 1).await;
    cancel.cancel();
    following.await.unwrap();
}
