//! Which pods of a set are ready, by the committed changes of a cluster, whatever the controller sees.

use std::collections::BTreeSet;

use serde_json::Value;
use sim_cluster::{Api, ChangeEvent, kinds};

/// The ready, non-terminating pods of a set in one member.
pub struct ReadyPods {
    api: Api,
    namespace: String,
    set: String,
    names: BTreeSet<String>,
}

impl ReadyPods {
    /// The ready pods that exist now.
    pub fn list(api: &Api, namespace: &str, set: &str) -> Self {
        let pods = api.list(&kinds::PODS, Some(namespace));
        let ready = pods.iter().filter(|pod| is_ready(pod, set));
        Self {
            api: api.clone(),
            namespace: namespace.to_owned(),
            set: set.to_owned(),
            names: ready.map(|pod| name_of(pod)).collect(),
        }
    }

    /// Applies a change of the member.
    pub fn apply(&mut self, event: &ChangeEvent) {
        let change = match event {
            ChangeEvent::Resync => {
                *self = Self::list(&self.api, &self.namespace, &self.set);
                return;
            }
            ChangeEvent::Change(change) => change,
        };
        if change.kind != *kinds::PODS || change.namespace != self.namespace {
            return;
        }
        let now = change.new.as_ref();
        if now.is_some_and(|pod| is_ready(pod, &self.set)) {
            self.names.insert(change.name.clone());
        } else {
            self.names.remove(&change.name);
        }
    }

    /// The number of ready pods.
    pub fn count(&self) -> u64 {
        self.names.len() as u64
    }
}

/// The name of a pod.
pub fn name_of(pod: &Value) -> String {
    let name = pod["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}

/// The name of the workload that a pod belongs to: of a ReplicaSet of a Deployment, that of the Deployment.
pub fn set_of(pod: &Value) -> Option<&str> {
    let metadata = &pod["metadata"];
    let owner = metadata["ownerReferences"][0]["name"].as_str()?;
    let hash = metadata["labels"]["pod-template-hash"].as_str();
    let deployment = hash.and_then(|hash| owner.strip_suffix(hash)?.strip_suffix('-'));
    Some(deployment.unwrap_or(owner))
}

/// Whether a pod belongs to the set, is ready and is not terminating.
pub fn is_ready(pod: &Value, set: &str) -> bool {
    set_of(pod) == Some(set)
        && pod["metadata"].get("deletionTimestamp").is_none()
        && reports_ready(pod)
}

/// Whether its status says that it is ready.
pub(crate) fn reports_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
