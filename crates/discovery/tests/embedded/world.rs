//! Embedded clusters, and discovery over them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    http::{Request, StatusCode, header},
};
use discovery::{Answer, Catalog, Discovery, DiscoveryMetrics, LoadedSnapshots, Service, router};
use kube::Client;
use serde_json::{Value, json};
use sim_cluster::SimCluster;
use tower::ServiceExt;

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const SETS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/endpointsets";
/// How long answers wait for members that can't be listed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The clusters, and what watches them.
pub(crate) struct World {
    pub(crate) host: SimCluster,
    pub(crate) members: [SimCluster; 2],
    discovery: Discovery,
    /// The watches of members that have begun.
    watches: Arc<AtomicUsize>,
}

impl World {
    /// Starts the clusters, with a set of the pods with the label `app=web`, and what watches them.
    pub(crate) async fn start(prepare: impl AsyncFnOnce(&[SimCluster; 2])) -> Self {
        let host = SimCluster::builder("host").start();
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for crd in fedrs_api::crd::all() {
            write(&host, "POST", crds, &json!(crd)).await;
        }
        let set = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": "web" },
            "spec": {
                "source": { "selector": { "matchLabels": { "app": "web" } } },
                "ports": [{ "name": "http", "port": "http" }],
                "labels": ["version"],
            },
        });
        write(&host, "POST", SETS, &set).await;
        let members = ["eu", "us"].map(|name| SimCluster::builder(name).nodes(2).start());
        prepare(&members).await;
        Self::over(host, members, LoadedSnapshots::default(), &["eu", "us"])
    }

    fn over(
        host: SimCluster,
        members: [SimCluster; 2],
        loaded: LoadedSnapshots,
        with_kubeconfig: &[&str],
    ) -> Self {
        let mut world = Self {
            discovery: Discovery::start_from(loaded, &client(&host), PATIENCE),
            host,
            members,
            watches: Arc::default(),
        };
        for member in &world.members {
            if with_kubeconfig.contains(&member.name()) {
                let client = counted(member, &world.watches);
                world.discovery.set_member(member.name(), &client);
            }
        }
        world.discovery.members_known();
        world
    }

    /// Another replica of the service, over the same clusters.
    pub(crate) fn another(&self) -> Discovery {
        let mut another = Discovery::start(&client(&self.host), PATIENCE);
        for member in &self.members {
            another.set_member(member.name(), &counted(member, &self.watches));
        }
        another.members_known();
        another
    }

    /// How many watches of members have begun.
    pub(crate) fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }

    /// Ends what watches, and starts it from what `load` returns after that, with these members.
    pub(crate) async fn restart(
        self,
        load: impl AsyncFnOnce() -> LoadedSnapshots,
        with_kubeconfig: &[&str],
    ) -> Self {
        self.discovery.stop().await;
        Self::over(self.host, self.members, load().await, with_kubeconfig)
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        self.discovery.catalog()
    }

    pub(crate) async fn get(
        &self,
        path: &str,
        etag: Option<&str>,
    ) -> (StatusCode, String, Option<String>) {
        get(self.catalog(), path, etag).await
    }

    /// The answer for the set, once there is one of which `expected` is true.
    pub(crate) async fn answer(&self, expected: impl Fn(&Answer) -> bool) -> Answer {
        answer(self.catalog(), expected).await
    }
}

/// What a service answers from this catalog: its status, body, and ETag.
pub(crate) async fn get(
    catalog: &Arc<Catalog>,
    path: &str,
    etag: Option<&str>,
) -> (StatusCode, String, Option<String>) {
    let mut request = Request::get(path);
    if let Some(etag) = etag {
        request = request.header(header::IF_NONE_MATCH, etag);
    }
    let request = request.body(Body::empty()).unwrap();
    let service = Service::new(Arc::clone(catalog), DiscoveryMetrics::default());
    let response = router(service).oneshot(request).await;
    let response = response.unwrap();
    let etag = response.headers().get(header::ETAG);
    let etag = etag.map(|etag| etag.to_str().unwrap().to_owned());
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap(), etag)
}

/// The answer of this catalog for the set, once there is one of which `expected` is true.
pub(crate) async fn answer(catalog: &Arc<Catalog>, expected: impl Fn(&Answer) -> bool) -> Answer {
    let path = "/v1/endpoints/default/web";
    for _ in 0..2_000 {
        let (status, body, _) = get(catalog, path, None).await;
        if status == StatusCode::OK {
            let answer = serde_json::from_str(&body).unwrap();
            if expected(&answer) {
                return answer;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not answered: {:?}", get(catalog, path, None).await);
}

/// A client of a member that counts the watches that begin.
fn counted(member: &SimCluster, watches: &Arc<AtomicUsize>) -> Client {
    let watches = Arc::clone(watches);
    let service = member.service().audited(move |event| {
        if event
            .uri
            .query()
            .is_some_and(|query| query.contains("watch="))
        {
            watches.fetch_add(1, Ordering::Relaxed);
        }
    });
    Client::new(service, "default")
}

fn client(cluster: &SimCluster) -> Client {
    Client::new(cluster.service(), "default")
}

pub(crate) async fn write(cluster: &SimCluster, method: &str, path: &str, body: &Value) {
    let client = Client::new(cluster.direct_service(), "default");
    let request = Request::builder().method(method).uri(path);
    let body = if body.is_null() {
        vec![]
    } else {
        body.to_string().into_bytes()
    };
    let format = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = request.header(header::CONTENT_TYPE, format).body(body);
    client.request::<Value>(request.unwrap()).await.unwrap();
}

/// Creates a pod that becomes ready.
pub(crate) async fn create_pod(cluster: &SimCluster, name: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web", "version": "1", "other": "x" } },
        "spec": { "containers": [{
            "name": "main", "image": "web:1", "ports": [{ "name": "http", "containerPort": 8080 }],
        }] },
    });
    write(cluster, "POST", PODS, &pod).await;
}

/// Deletes a pod.
pub(crate) async fn delete_pod(cluster: &SimCluster, name: &str) {
    write(cluster, "DELETE", &format!("{PODS}/{name}"), &Value::Null).await;
}
