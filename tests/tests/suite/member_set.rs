//! A set in a member, as a user of its API works with it: a ReplicaSet, or a LocalReplicaSet.

use fedrs_tests::test_environment::TestEnvironment;
use serde_json::{Value, json};

/// The member that the sets are in.
pub(crate) const MEMBER: &str = "a";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A ReplicaSet.
    Native,
    /// A LocalReplicaSet: by default one that leaves its pods as they are (C4).
    Local,
}

/// One set, which need not exist, and its pods.
pub(crate) struct MemberSet<'e> {
    pub(crate) env: &'e TestEnvironment,
    pub(crate) kind: Kind,
}

/// An image that can be pulled.
pub(crate) const IMAGE: &str = "registry.example/main:1";

impl MemberSet<'_> {
    /// The name of the set, and the label `app` of its pods.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Native => "native",
            Kind::Local => "local",
        }
    }

    fn collection(&self) -> String {
        let namespace = self.env.namespace();
        match self.kind {
            Kind::Native => format!("/apis/apps/v1/namespaces/{namespace}/replicasets"),
            Kind::Local => {
                format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/localreplicasets")
            }
        }
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name())
    }

    pub(crate) fn pod_path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/pods/{name}", self.env.namespace())
    }

    pub(crate) async fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.env.on_member(MEMBER, method, path, body).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Creates the set with `fields` in its spec.
    pub(crate) async fn try_create(&self, replicas: usize, fields: Value) -> kube::Result<Value> {
        let (api, kind) = match self.kind {
            Kind::Native => ("apps/v1", "ReplicaSet"),
            Kind::Local => ("fedrs.dev/v1alpha1", "LocalReplicaSet"),
        };
        let mut object = json!({
            "apiVersion": api, "kind": kind, "metadata": { "name": self.name() },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": self.name() } },
                "template": {
                    "metadata": { "labels": { "app": self.name(), "tier": "front" } },
                    "spec": { "containers": [{ "name": "main", "image": IMAGE }] },
                },
            },
        });
        if self.kind == Kind::Local {
            object["spec"]["updateMode"] = "Never".into();
        }
        merge(&mut object["spec"], fields);
        let path = self.collection();
        self.env.on_member(MEMBER, "POST", &path, &object).await
    }

    pub(crate) async fn create(&self, replicas: usize, fields: Value) {
        let created = self.try_create(replicas, fields).await;
        created.expect("the set is valid");
    }

    /// Creates the set, and waits until all its pods are available.
    pub(crate) async fn run(&self, replicas: usize) {
        self.create(replicas, json!({})).await;
        self.settle(replicas).await;
    }

    pub(crate) async fn try_patch(&self, patch: &Value) -> kube::Result<Value> {
        let path = self.path();
        self.env.on_member(MEMBER, "PATCH", &path, patch).await
    }

    pub(crate) async fn patch(&self, patch: &Value) {
        self.try_patch(patch).await.expect("the patch is valid");
    }

    /// By the subresource `scale`.
    pub(crate) async fn scale(&self, replicas: usize) {
        let path = format!("{}/scale", self.path());
        let scale = json!({ "spec": { "replicas": replicas } });
        self.request("PATCH", &path, &scale).await;
    }

    pub(crate) async fn delete(&self, policy: &str) {
        let options = json!({ "propagationPolicy": policy });
        self.request("DELETE", &self.path(), &options).await;
        self.until("the set is gone", async || self.get().await.is_null())
            .await;
    }

    /// The set; null if it does not exist.
    pub(crate) async fn get(&self) -> Value {
        let path = self.path();
        let answer = self.env.on_member(MEMBER, "GET", &path, &Value::Null);
        answer.await.unwrap_or(Value::Null)
    }

    /// A count of the status. A ReplicaSet leaves out zeros.
    pub(crate) async fn count(&self, field: &str) -> u64 {
        self.get().await["status"][field].as_u64().unwrap_or(0)
    }

    /// `True Reason` of a condition, or `none`.
    pub(crate) async fn condition(&self, type_: &str) -> String {
        let set = self.get().await;
        let mut conditions = set["status"]["conditions"].as_array().into_iter().flatten();
        let found = conditions.find(|condition| condition["type"] == type_);
        found.map_or("none".to_owned(), |condition| {
            format!(
                "{} {}",
                text(&condition["status"]),
                text(&condition["reason"])
            )
        })
    }

    /// Waits until the set has exactly `replicas` live pods, all of which are available, and its status says so.
    pub(crate) async fn settle(&self, replicas: usize) {
        self.until("all pods are available", async || {
            let set = self.get().await;
            let status = &set["status"];
            let counts = ["replicas", "availableReplicas"].map(|field| status[field].as_u64());
            status["observedGeneration"] == set["metadata"]["generation"]
                && counts.map(Option::unwrap_or_default) == [replicas as u64; 2]
                && self.owned().await.len() == replicas
        })
        .await;
    }

    /// Waits until the set has `replicas` live pods.
    pub(crate) async fn until_owned(&self, replicas: usize) {
        self.until("the set has as many pods", async || {
            self.owned().await.len() == replicas
        })
        .await;
    }

    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        self.env.wait_until(what, 90, async |_| holds().await).await;
    }

    /// All pods of the scenario's namespace, by name: it has no others while a case runs.
    pub(crate) async fn pods(&self) -> Vec<Value> {
        let mut pods = self.env.pods(MEMBER).await;
        pods.sort_by_key(name_of);
        pods
    }

    /// The live pods that the set controls.
    pub(crate) async fn owned(&self) -> Vec<Value> {
        let uid = self.get().await["metadata"]["uid"].clone();
        let mut pods = self.pods().await;
        pods.retain(|pod| is_live(pod) && owner(pod)["uid"] == uid);
        pods
    }

    pub(crate) async fn pod(&self, name: &str) -> Value {
        self.request("GET", &self.pod_path(name), &Value::Null)
            .await
    }

    /// Creates a pod with the labels of the template, and with `fields`.
    pub(crate) async fn create_pod(&self, name: &str, fields: Value) {
        let mut pod = json!({
            "metadata": { "name": name, "labels": { "app": self.name(), "tier": "front" } },
            "spec": { "containers": [{ "name": "main", "image": IMAGE }] },
        });
        merge(&mut pod, fields);
        let path = self.pod_path("");
        self.request("POST", path.trim_end_matches('/'), &pod).await;
    }

    pub(crate) async fn patch_pod(&self, name: &str, patch: &Value) {
        self.request("PATCH", &self.pod_path(name), patch).await;
    }

    /// Changes the status of a pod, as a kubelet does.
    pub(crate) async fn patch_pod_status(&self, name: &str, status: &Value) {
        let path = format!("{}/status", self.pod_path(name));
        self.request("PATCH", &path, &json!({ "status": status }))
            .await;
    }

    pub(crate) async fn delete_pod(&self, name: &str) {
        self.request("DELETE", &self.pod_path(name), &json!({}))
            .await;
    }

    /// Removes the set and all pods.
    pub(crate) async fn remove(&self) {
        if !self.get().await.is_null() {
            self.delete("Foreground").await;
        }
        let path = self.pod_path("");
        let at_once = json!({ "gracePeriodSeconds": 0 });
        self.request("DELETE", path.trim_end_matches('/'), &at_once)
            .await;
        self.until("no pod is left", async || self.pods().await.is_empty())
            .await;
    }
}

/// A pod counts unless it is being removed or has terminated (C8).
pub(crate) fn is_live(pod: &Value) -> bool {
    let has_terminated = ["Failed", "Succeeded"].contains(&text(&pod["status"]["phase"]));
    pod["metadata"]["deletionTimestamp"].is_null() && !has_terminated
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The reference to the controller of a pod; null if there is none.
pub(crate) fn owner(pod: &Value) -> Value {
    let mut owners = pod["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    let owner = owners.find(|owner| owner["controller"] == true);
    owner.cloned().unwrap_or_default()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn name_of(object: &Value) -> String {
    text(&object["metadata"]["name"]).to_owned()
}

/// As a merge patch does.
fn merge(object: &mut Value, fields: Value) {
    match (object, fields) {
        (Value::Object(object), Value::Object(fields)) => {
            for (field, value) in fields {
                merge(object.entry(field).or_insert(Value::Null), value);
            }
        }
        (object, value) => *object = value,
    }
}
