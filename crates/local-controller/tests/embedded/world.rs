//! A cluster, the controller, and one set `shop/web`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use controller_base::{calls, clock::Clock, election::Fence};
use fedrs_api::names;
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::{Client, client::Body};
use local_controller::{
    LEASE, LocalController, LocalControllerConfig, LocalMetrics, MigrationConfig, NotifyConfig,
    Running, Webhooks, rbac,
};
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sim_cluster::{AuditEvent, Settings, SimCluster, User, kinds};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::test_webhook::TestWebhook;

pub(crate) const NAMESPACE: &str = "/api/v1/namespaces/shop";
pub(crate) const SETS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/shop/localreplicasets";
pub(crate) const SET: &str = "/apis/fedrs.dev/v1alpha1/namespaces/shop/localreplicasets/web";
pub(crate) const BUDGETS: &str = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets";
pub(crate) const BUDGET: &str = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/lrs-web";
pub(crate) const PODS: &str = "/api/v1/namespaces/shop/pods";

/// How long MigrationRequests are kept after their end.
pub(crate) const HISTORY: Duration = Duration::from_hours(2);

/// The token of the controller's account.
const TOKEN: &str = "of-the-controller";

pub(crate) struct World {
    pub(crate) cluster: SimCluster,
    /// The administrator's.
    client: Client,
    controller: Option<(CancellationToken, Running)>,
    pub(crate) webhook: TestWebhook,
    /// How webhooks are reached, if not in the process.
    pub(crate) network: Option<Webhooks>,
    /// Who may be notified.
    pub(crate) notify: NotifyConfig,
    /// The writes of the controller: method and path.
    writes: Arc<Mutex<Vec<String>>>,
}

/// A pod, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) image: String,
    pub(crate) is_ready: bool,
    pub(crate) is_terminating: bool,
    pub(crate) hash: String,
    pub(crate) node: String,
}

/// The set `web` with this spec beside selector and template.
pub(crate) fn set(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "LocalReplicaSet",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
            },
        },
    });
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

/// A change of the image.
pub(crate) fn image(image: &str) -> Value {
    let containers = json!([{ "name": "main", "image": image }]);
    json!({ "spec": { "template": { "spec": { "containers": containers } } } })
}

impl World {
    /// A cluster with 5 nodes and the controller.
    pub(crate) async fn start() -> Self {
        let mut world = Self::without_controller(Settings::default()).await;
        world.start_controller();
        world
    }

    /// The same with a set of `replicas`, all of which are available.
    pub(crate) async fn running(replicas: usize, spec: &Value) -> Self {
        let world = Self::start().await;
        let mut object = set(spec);
        object["spec"]["replicas"] = replicas.into();
        world.create(SETS, &object).await;
        world.settle(replicas).await;
        world
    }

    pub(crate) async fn without_controller(settings: Settings) -> Self {
        let cluster = SimCluster::builder("one")
            .nodes(5)
            .settings(settings)
            .start();
        let client = Client::new(cluster.direct_service(), "default");
        let world = Self {
            cluster,
            client,
            controller: None,
            webhook: TestWebhook::default(),
            network: None,
            notify: NotifyConfig {
                allowed_hosts: vec!["tickets.example.com".to_owned()],
                cluster: "test".to_owned(),
                ..NotifyConfig::default()
            },
            writes: Arc::default(),
        };
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for crd in fedrs_api::crd::local() {
            world.create(crds, &json!(crd)).await;
        }
        world.grant().await;
        let namespace = json!({ "metadata": { "name": "shop" } });
        world.create("/api/v1/namespaces", &namespace).await;
        world
    }

    /// Grants the controller's account the permissions of the manifests, and no others.
    async fn grant(&self) {
        const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
        for manifest in rbac::manifests(None, None) {
            let object = manifest.to_value();
            let namespace = text(&object["metadata"]["namespace"]);
            let path = match text(&object["kind"]).as_str() {
                "Namespace" => "/api/v1/namespaces".to_owned(),
                "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
                "ClusterRole" => format!("{RBAC}/clusterroles"),
                "ClusterRoleBinding" => format!("{RBAC}/clusterrolebindings"),
                "Role" => format!("{RBAC}/namespaces/{namespace}/roles"),
                "RoleBinding" => format!("{RBAC}/namespaces/{namespace}/rolebindings"),
                kind => panic!("{kind} is not applied"),
            };
            self.create(&path, &object).await;
        }
        let account = User::service_account(names::SYSTEM_NAMESPACE, LEASE);
        self.cluster.api().admit_token(TOKEN, account);
    }

    pub(crate) fn start_controller(&mut self) {
        let writes = Arc::clone(&self.writes);
        let audited = self.cluster.service().audited(move |event: &AuditEvent| {
            if event.method != http::Method::GET {
                let path = event.uri.path();
                writes
                    .lock()
                    .push(format!("{} {path} {}", event.method, event.code.as_u16()));
            }
        });
        let authenticated = audited.map_request(|mut request: Request<Body>| {
            let token = HeaderValue::from_static("Bearer of-the-controller");
            request.headers_mut().insert(AUTHORIZATION, token);
            request
        });
        let (now, started) = (self.cluster.clock().now(), Instant::now());
        let cancel = CancellationToken::new();
        let controller = LocalController {
            client: Client::new(authenticated, "default"),
            config: LocalControllerConfig {
                migration: MigrationConfig {
                    history: HISTORY,
                    notify: self.notify.clone(),
                    ..MigrationConfig::default()
                },
                ..LocalControllerConfig::default()
            },
            clock: Clock::new(move || now + started.elapsed()),
            seed: 7,
            webhooks: (self.network.clone()).unwrap_or_else(|| self.webhook.webhooks()),
            metrics: LocalMetrics::default(),
            fence: Fence::open(),
        };
        let running = controller.start(&cancel);
        self.controller = Some((cancel, running));
    }

    /// The controller ends, and leaves what it was doing.
    pub(crate) async fn stop_controller(&mut self) {
        let (cancel, running) = self.controller.take().unwrap();
        cancel.cancel();
        running.joined().await;
    }

    /// What the controller has written since this was asked for last.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut *self.writes.lock())
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        calls::get(&self.client, path).await.unwrap()
    }

    /// The object, if it exists.
    pub(crate) async fn find(&self, path: &str) -> Option<Value> {
        calls::get(&self.client, path).await.ok()
    }

    /// Evicts a pod through the API server. Returns the HTTP status.
    pub(crate) async fn evict(&self, pod: &str) -> u16 {
        let eviction =
            json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod } });
        let path = format!("{PODS}/{pod}/eviction");
        match calls::post::<IgnoredAny>(&self.client, &path, &eviction).await {
            Ok(_) => 201,
            Err(kube::Error::Api(status)) => status.code,
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        calls::post(&self.client, path, object).await.unwrap()
    }

    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> Value {
        self.try_patch(path, patch).await.unwrap()
    }

    pub(crate) async fn try_patch(&self, path: &str, patch: &Value) -> kube::Result<Value> {
        calls::merge_patch(&self.client, path, patch).await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) {
        let IgnoredAny = calls::delete(&self.client, path, options).await.unwrap();
    }

    pub(crate) async fn patch_set(&self, patch: &Value) {
        self.patch(SET, patch).await;
    }

    pub(crate) async fn scale(&self, replicas: usize) {
        self.patch_set(&json!({ "spec": { "replicas": replicas } }))
            .await;
    }

    pub(crate) async fn status(&self) -> Value {
        self.get(SET).await["status"].clone()
    }

    /// `True Reason` of a condition; empty if there is none.
    pub(crate) async fn condition(&self, type_: &str) -> String {
        let status = self.status().await;
        let none = Vec::new();
        let conditions = status["conditions"].as_array().unwrap_or(&none);
        let found = conditions
            .iter()
            .find(|condition| condition["type"] == type_);
        found.map_or_else(String::new, |condition| {
            format!(
                "{} {}",
                text(&condition["status"]),
                text(&condition["reason"])
            )
        })
    }

    /// The message of a condition; empty if there is none.
    pub(crate) async fn message(&self, type_: &str) -> String {
        let status = self.status().await;
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|condition| condition["type"] == type_);
        found.map_or_else(String::new, |condition| text(&condition["message"]))
    }

    /// All pods, in the order of their names.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        // More than a client would read at a time.
        let list = self.cluster.api().list(&kinds::PODS, Some("shop"));
        sleep(Duration::from_millis(1)).await;
        let mut pods: Vec<_> = list.iter().map(|pod| Pod::of(pod)).collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        pods
    }

    /// The uids of all pods by their names.
    pub(crate) async fn uids(&self) -> BTreeMap<String, String> {
        let pods = self.pods().await.into_iter();
        pods.map(|pod| (pod.name, pod.uid)).collect()
    }

    /// Waits until exactly `replicas` pods exist, all available and of the current template, and the status says so.
    pub(crate) async fn settle(&self, replicas: usize) {
        self.wait_until("all pods are available", 900, async |world: &Self| {
            let object = world.get(SET).await;
            let status = &object["status"];
            let is_current = status["observedGeneration"] == object["metadata"]["generation"];
            is_current
                && status["updatedAvailableReplicas"] == replicas
                && status["replicas"] == replicas
                && world.condition("Ready").await.starts_with("True")
                && world.pods().await.len() == replicas
        })
        .await;
    }

    /// Waits until `holds`, for `seconds` at most.
    pub(crate) async fn wait_until(
        &self,
        what: &str,
        seconds: u64,
        holds: impl AsyncFn(&Self) -> bool,
    ) {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while !holds(self).await {
            let is_in_time = Instant::now() <= deadline;
            assert!(
                is_in_time,
                "not within {seconds} s: {what}\n{}",
                self.describe().await
            );
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The state, for the message of a test that fails.
    pub(crate) async fn describe(&self) -> String {
        let events = self.get(&format!("{NAMESPACE}/events")).await;
        let events = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| format!("{} {}", text(&event["reason"]), text(&event["message"])));
        format!(
            "{:#}\n{:#?}\n{:#?}\n{:#?}",
            self.get(SET).await["status"],
            self.pods().await,
            events.collect::<Vec<_>>(),
            self.writes()
        )
    }
}

impl Pod {
    fn of(object: &Value) -> Self {
        let conditions = object["status"]["conditions"].as_array();
        let is_ready = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        Self {
            name: text(&object["metadata"]["name"]),
            uid: text(&object["metadata"]["uid"]),
            image: text(&object["spec"]["containers"][0]["image"]),
            is_ready,
            is_terminating: !object["metadata"]["deletionTimestamp"].is_null(),
            hash: text(&object["metadata"]["labels"]["controller-revision-hash"]),
            node: text(&object["spec"]["nodeName"]),
        }
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}
