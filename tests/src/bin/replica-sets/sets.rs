//! The sets that are measured.

use control_plane::request;
use fedrs_tests::{ReadyWatcher, measured_cluster::MeasuredCluster};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

/// Objects that are written at the same time: the connections of a client.
pub(crate) const WRITTEN_TOGETHER: usize = 64;
/// How long a stage may take.
const DEADLINE: Duration = Duration::from_secs(900);
/// How often the watched pods are counted.
const COUNTED: Duration = Duration::from_millis(20);
/// How often a status is read.
const READ: Duration = Duration::from_millis(250);
/// The namespace of all sets.
pub(crate) const NAMESPACE: &str = "default";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A ReplicaSet of Kubernetes.
    Native,
    Local,
}

pub(crate) struct Set<'c> {
    client: &'c Client,
    kind: Kind,
    name: String,
}

impl<'c> Set<'c> {
    pub(crate) fn new(cluster: &'c MeasuredCluster, kind: Kind, name: &str) -> Self {
        let prefix = match kind {
            Kind::Native => "native",
            Kind::Local => "local",
        };
        Self {
            client: &cluster.client,
            kind,
            name: format!("{prefix}-{name}"),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn collection(&self) -> String {
        match self.kind {
            Kind::Native => format!("/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"),
            Kind::Local => {
                format!("/apis/fedrs.dev/v1alpha1/namespaces/{NAMESPACE}/localreplicasets")
            }
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    fn template(&self) -> Value {
        json!({
            "metadata": { "labels": { "app": self.name } },
            "spec": { "containers": [{ "name": "main", "image": "registry.example/main:1" }] },
        })
    }

    pub(crate) async fn create(&self, replicas: usize, fields: &Value) -> anyhow::Result<()> {
        let (api, kind) = match self.kind {
            Kind::Native => ("apps/v1", "ReplicaSet"),
            Kind::Local => ("fedrs.dev/v1alpha1", "LocalReplicaSet"),
        };
        let mut object = json!({
            "apiVersion": api, "kind": kind, "metadata": { "name": self.name },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": self.name } },
                "template": self.template(),
            },
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        request(self.client, "POST", &self.collection(), &object).await?;
        Ok(())
    }

    /// The hash of its template, once its revision is kept.
    pub(crate) async fn template_hash(&self) -> anyhow::Result<String> {
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/controllerrevisions");
        let prefix = format!("{}-", self.name);
        let began = Instant::now();
        loop {
            let revisions = request(self.client, "GET", &path, &Value::Null).await?;
            let mut names = revisions["items"].as_array().into_iter().flatten();
            let hash = names
                .find_map(|revision| revision["metadata"]["name"].as_str()?.strip_prefix(&prefix));
            if let Some(hash) = hash {
                return Ok(hash.to_owned());
            }
            anyhow::ensure!(began.elapsed() < DEADLINE, "{} has no revision", self.name);
            sleep(READ).await;
        }
    }

    /// Creates pods that the set adopts, of the template with this hash.
    pub(crate) async fn create_orphans(&self, count: usize, hash: &str) -> anyhow::Result<()> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        let created = (0..count).map(|number| {
            let mut pod = self.template();
            pod["metadata"]["name"] = format!("{}-{number}", self.name).into();
            pod["metadata"]["labels"][fedrs_api::labels::REVISION_HASH] = hash.into();
            let path = &path;
            async move { request(self.client, "POST", path, &pod).await }
        });
        let created = stream::iter(created).buffer_unordered(WRITTEN_TOGETHER);
        created.try_for_each(async |_| Ok(())).await?;
        Ok(())
    }

    pub(crate) async fn patch(&self, patch: &Value) -> anyhow::Result<()> {
        request(self.client, "PATCH", &self.path(), patch).await?;
        Ok(())
    }

    /// Returns how long it takes until `pods` are ready, and no other pod is left.
    pub(crate) async fn scale(
        &self,
        pods: usize,
        watcher: &ReadyWatcher,
    ) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.patch(&json!({ "spec": { "replicas": pods } })).await?;
        while watcher.fewest() != pods as u64 {
            anyhow::ensure!(began.elapsed() < DEADLINE, "{} is not scaled", self.name);
            sleep(COUNTED).await;
        }
        if pods == 0 {
            self.until_gone(began).await?;
        }
        Ok(began.elapsed())
    }

    /// Waits until no pod is left that is being removed: the next measurement would share the machine with it.
    async fn until_gone(&self, began: Instant) -> anyhow::Result<()> {
        let path = format!(
            "/api/v1/namespaces/{NAMESPACE}/pods?limit=1&labelSelector=app%3D{}",
            self.name
        );
        loop {
            let pods = request(self.client, "GET", &path, &Value::Null).await?;
            if pods["items"].as_array().is_some_and(Vec::is_empty) {
                return Ok(());
            }
            anyhow::ensure!(began.elapsed() < DEADLINE, "{} keeps pods", self.name);
            sleep(READ).await;
        }
    }

    /// Returns how long it takes until the status says that all `pods` have the template with these fields of its container.
    pub(crate) async fn update(&self, fields: &Value, pods: usize) -> anyhow::Result<Duration> {
        let mut template = self.template();
        for (field, value) in fields.as_object().into_iter().flatten() {
            template["spec"]["containers"][0][field] = value.clone();
        }
        let began = Instant::now();
        self.patch(&json!({ "spec": { "template": template } }))
            .await?;
        self.until_updated(pods).await?;
        Ok(began.elapsed())
    }

    pub(crate) async fn until_updated(&self, pods: usize) -> anyhow::Result<()> {
        self.until(pods, &["replicas", "updatedAvailableReplicas"])
            .await
    }

    pub(crate) async fn until_available(&self, pods: usize) -> anyhow::Result<()> {
        self.until(pods, &["replicas", "availableReplicas"]).await
    }

    async fn until(&self, pods: usize, counts: &[&str]) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let set = request(self.client, "GET", &self.path(), &Value::Null).await?;
            let status = &set["status"];
            let is_observed = status["observedGeneration"] == set["metadata"]["generation"];
            if is_observed && counts.iter().all(|count| status[count] == pods) {
                return Ok(());
            }
            anyhow::ensure!(began.elapsed() < DEADLINE, "{}: {status}", self.name);
            sleep(READ).await;
        }
    }

    /// Deletes the set, and waits until its pods are gone.
    pub(crate) async fn remove(&self) -> anyhow::Result<()> {
        let foreground = json!({ "propagationPolicy": "Foreground" });
        request(self.client, "DELETE", &self.path(), &foreground).await?;
        let began = Instant::now();
        loop {
            match request(self.client, "GET", &self.path(), &Value::Null).await {
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                answer => _ = answer?,
            }
            anyhow::ensure!(began.elapsed() < DEADLINE, "{} is not deleted", self.name);
            sleep(READ).await;
        }
    }
}
