//! Three embedded clusters, and the controller over them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use controller_base::{calls, clock::Clock, election::Fence, running::Running};
use fedrs_api::names;
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::{Client, client::Body};
use mcs_controller::{LEASE, McsController, McsMetrics, Members, rbac};
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sim_cluster::{AuditEvent, SimCluster, User};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::crds;

pub(crate) const EXPORTS: &str =
    "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/shop/serviceexports";
pub(crate) const IMPORTS: &str =
    "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/shop/serviceimports";
pub(crate) const IMPORT: &str =
    "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/shop/serviceimports/web";
pub(crate) const EXPORT: &str =
    "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/shop/serviceexports/web";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/shop/services";
pub(crate) const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
/// How long the controller waits for members that can't be listed.
const PATIENCE: Duration = Duration::from_secs(30);
/// The token of the controller's account.
const TOKEN: &str = "of-the-controller";

/// A request of the controller: its member, method, path and code.
pub(crate) type Sent = (String, String, String, u16);

pub(crate) struct World {
    pub(crate) clusters: Vec<SimCluster>,
    controller: Option<(CancellationToken, Running, Members)>,
    requests: Arc<Mutex<Vec<Sent>>>,
}

impl World {
    /// The clusters `ap`, `eu` and `us` with the CRDs and the namespace `shop`, without the controller.
    pub(crate) async fn new() -> Self {
        let mut world = Self {
            clusters: Vec::new(),
            controller: None,
            requests: Arc::default(),
        };
        for name in ["ap", "eu", "us"] {
            let cluster = SimCluster::builder(name).nodes(0).start();
            world.clusters.push(cluster);
            world.install_crds(name).await;
            world.grant(name).await;
            let namespace = json!({ "metadata": { "name": "shop" } });
            world.create(name, "/api/v1/namespaces", &namespace).await;
        }
        world
    }

    /// The same, with the controller over all of them.
    pub(crate) async fn start() -> Self {
        let mut world = Self::new().await;
        world.start_controller(&["ap", "eu", "us"]);
        world
    }

    pub(crate) async fn install_crds(&self, name: &str) {
        for crd in crds::all() {
            self.create(name, crds::CRDS, &crd).await;
        }
    }

    /// Grants the controller's account the permissions of the manifests, and no others.
    async fn grant(&self, name: &str) {
        const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
        for manifest in rbac::member_manifests(None, None) {
            let object = manifest.to_value();
            let namespace = names::SYSTEM_NAMESPACE;
            let path = match object["kind"].as_str().unwrap() {
                "Namespace" => "/api/v1/namespaces".to_owned(),
                "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
                "ClusterRole" => format!("{RBAC}/clusterroles"),
                "ClusterRoleBinding" => format!("{RBAC}/clusterrolebindings"),
                kind => panic!("{kind} is not applied"),
            };
            self.create(name, &path, &object).await;
        }
        let account = User::service_account(names::SYSTEM_NAMESPACE, LEASE);
        self.cluster(name).api().admit_token(TOKEN, account);
    }

    pub(crate) fn start_controller(&mut self, members: &[&str]) {
        let (now, started) = (self.clusters[0].clock().now(), Instant::now());
        let cancel = CancellationToken::new();
        let controller = McsController {
            patience: PATIENCE,
            clock: Clock::new(move || now + started.elapsed()),
            seed: 7,
            metrics: McsMetrics::default(),
            fence: Fence::open(),
        };
        let (running, mut handle) = controller.start(&cancel);
        for name in members {
            handle.add(name);
            handle.set(name, &self.controller_client(name));
        }
        handle.complete();
        self.controller = Some((cancel, running, handle));
    }

    fn controller_client(&self, name: &str) -> Client {
        let requests = Arc::clone(&self.requests);
        let cluster = name.to_owned();
        let audited = self
            .cluster(name)
            .service()
            .audited(move |event: &AuditEvent| {
                let (method, path) = (event.method.to_string(), event.uri.to_string());
                let sent = (cluster.clone(), method, path, event.code.as_u16());
                requests.lock().push(sent);
            });
        let authenticated = audited.map_request(|mut request: Request<Body>| {
            let token = HeaderValue::from_static("Bearer of-the-controller");
            request.headers_mut().insert(AUTHORIZATION, token);
            request
        });
        Client::new(authenticated, "default")
    }

    /// The members of the running controller.
    pub(crate) fn members(&mut self) -> &mut Members {
        &mut self.controller.as_mut().unwrap().2
    }

    pub(crate) async fn stop_controller(&mut self) {
        let (cancel, running, _members) = self.controller.take().unwrap();
        cancel.cancel();
        running.joined().await;
    }

    /// All requests of the controller so far.
    pub(crate) fn requests(&self) -> Vec<Sent> {
        self.requests.lock().clone()
    }

    /// The writes of the controller since this was asked for last, as method and path.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *self.requests.lock()).into_iter();
        let writes = requests.filter(|(_, method, ..)| method != "GET");
        writes
            .map(|(cluster, method, path, code)| format!("{cluster} {method} {path} {code}"))
            .collect()
    }

    pub(crate) fn cluster(&self, name: &str) -> &SimCluster {
        let mut clusters = self.clusters.iter();
        clusters.find(|cluster| cluster.name() == name).unwrap()
    }

    /// The administrator's client.
    pub(crate) fn client(&self, name: &str) -> Client {
        Client::new(self.cluster(name).direct_service(), "default")
    }

    pub(crate) async fn create(&self, name: &str, path: &str, object: &Value) {
        let _: IgnoredAny = calls::post(&self.client(name), path, object).await.unwrap();
    }

    pub(crate) async fn patch(&self, name: &str, path: &str, patch: &Value) {
        let client = self.client(name);
        let _: IgnoredAny = calls::merge_patch(&client, path, patch).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str, path: &str) {
        calls::delete(&self.client(name), path, &json!({}))
            .await
            .unwrap();
    }

    /// The object, if it exists.
    pub(crate) async fn find(&self, name: &str, path: &str) -> Option<Value> {
        calls::get(&self.client(name), path).await.ok()
    }

    /// Creates the Service `web` with an endpoint, and exports it.
    pub(crate) async fn export(&self, name: &str, address: &str) {
        self.service(name, &json!({})).await;
        self.endpoint(name, "web-1", address).await;
        let export = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport",
            "metadata": { "name": "web" },
        });
        self.create(name, EXPORTS, &export).await;
    }

    pub(crate) async fn service(&self, name: &str, spec: &Value) {
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": {
                "ports": [{ "name": "http", "port": 80 }],
                "internalTrafficPolicy": "Cluster",
            },
        });
        for (field, value) in spec.as_object().unwrap() {
            service["spec"][field] = value.clone();
        }
        self.create(name, SERVICES, &service).await;
    }

    pub(crate) async fn endpoint(&self, name: &str, slice: &str, address: &str) {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": slice, "labels": { "kubernetes.io/service-name": "web" } },
            "addressType": "IPv4",
            "ports": [{ "name": "http", "port": 8080 }],
            "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }],
        });
        self.create(name, SLICES, &slice).await;
    }

    /// The addresses that a member has imported, with their members.
    pub(crate) async fn imported(&self, name: &str) -> BTreeSet<(String, String)> {
        let slices = self.find(name, SLICES).await.unwrap();
        let mut imported = BTreeSet::new();
        for slice in slices["items"].as_array().unwrap() {
            let labels = &slice["metadata"]["labels"];
            let source = &labels["multicluster.kubernetes.io/source-cluster"];
            let Some(source) = source.as_str() else {
                continue;
            };
            for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
                let address = endpoint["addresses"][0].as_str().unwrap();
                imported.insert((source.to_owned(), address.to_owned()));
            }
        }
        imported
    }

    /// Waits until a member has imported exactly these endpoints.
    pub(crate) async fn until_imported(&self, name: &str, expected: &[(&str, &str)]) {
        let expected = expected.iter();
        let expected: BTreeSet<_> = expected
            .map(|&(source, address)| (source.to_owned(), address.to_owned()))
            .collect();
        let imported = async || self.imported(name).await;
        until(name, imported, |found| *found == expected).await;
    }

    /// Waits until a condition of an export has this reason.
    pub(crate) async fn until_condition(&self, name: &str, of_type: &str, reason: &str) {
        let export = async || self.find(name, EXPORT).await;
        let has_reason = |export: &Option<Value>| {
            let export = export.as_ref();
            let conditions = export.and_then(|export| export["status"]["conditions"].as_array());
            let mut conditions = conditions.into_iter().flatten();
            conditions
                .any(|condition| condition["type"] == of_type && condition["reason"] == reason)
        };
        until(name, export, has_reason).await;
    }

    /// Waits until the object exists, or does not.
    pub(crate) async fn until_exists(&self, name: &str, path: &str, exists: bool) {
        let object = async || self.find(name, path).await;
        until(path, object, |object| object.is_some() == exists).await;
    }
}

/// Looks again and again, for two minutes, until what is found `is_expected`.
pub(crate) async fn until<T: std::fmt::Debug>(
    of: &str,
    mut look: impl AsyncFnMut() -> T,
    is_expected: impl Fn(&T) -> bool,
) -> T {
    for _ in 0..1_200 {
        let found = look().await;
        if is_expected(&found) {
            return found;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("{of}: not as expected: {:#?}", look().await);
}
