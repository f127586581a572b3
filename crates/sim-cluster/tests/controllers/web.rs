//! The Deployment `web` under test: how it is made, changed and waited for.

use serde_json::{Value, json};
use sim_cluster::{Object, kinds};

use crate::cluster::{Cluster, condition, pod_spec};

/// A Deployment `web` whose pods have the image `app:1`.
pub(crate) fn deployment(replicas: usize) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec()},
        },
    })
}

pub(crate) fn rolling(replicas: usize, surge: usize, unavailable: usize) -> Value {
    let mut deployment = deployment(replicas);
    deployment["spec"]["strategy"] = json!({
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    });
    deployment
}

pub(crate) fn image(object: &Value) -> &str {
    let of_template = &object["spec"]["template"]["spec"]["containers"][0]["image"];
    let of_pod = &object["spec"]["containers"][0]["image"];
    of_template.as_str().or(of_pod.as_str()).unwrap()
}

pub(crate) fn count(object: &Value, field: &str) -> u64 {
    object["status"][field].as_u64().unwrap_or_default()
}

pub(crate) fn reason(object: &Value, kind: &str) -> String {
    condition(object, kind)["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

impl Cluster {
    pub(crate) fn create_deployment(&self, deployment: Value) -> Object {
        self.create(&kinds::DEPLOYMENTS, deployment)
    }

    pub(crate) fn web(&self) -> Object {
        self.api.get(&kinds::DEPLOYMENTS, "default", "web").unwrap()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Value)) {
        self.edit(&kinds::DEPLOYMENTS, "web", |web| change(&mut web["spec"]));
    }

    pub(crate) fn set_image(&self, image: &str) {
        self.change(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!(image));
    }

    pub(crate) fn sets(&self) -> Vec<Object> {
        self.api.list(&kinds::REPLICA_SETS, Some("default"))
    }

    /// The ReplicaSet whose pods have this image.
    pub(crate) fn set_of(&self, wanted: &str) -> Object {
        let mut sets = self.sets().into_iter();
        sets.find(|set| image(set) == wanted).unwrap()
    }

    /// Images of ReplicaSets with their specified replicas, by image.
    pub(crate) fn sizes(&self) -> Vec<(String, u64)> {
        let size = |set: &Object| {
            (
                image(set).to_owned(),
                set["spec"]["replicas"].as_u64().unwrap(),
            )
        };
        let mut sizes: Vec<_> = self.sets().iter().map(size).collect();
        sizes.sort();
        sizes
    }

    pub(crate) fn is_rolled_out(&self) -> bool {
        let web = self.web();
        let replicas = web["spec"]["replicas"].as_u64().unwrap();
        web["status"]["observedGeneration"] == web["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|field| count(&web, field) == replicas)
            && reason(&web, "Progressing") == "NewReplicaSetAvailable"
    }

    pub(crate) async fn until_rolled_out(&self) {
        self.until("it is rolled out", Cluster::is_rolled_out).await;
    }

    /// The messages of the Deployment's events.
    pub(crate) fn messages(&self) -> Vec<String> {
        let events = self.api.list(&kinds::EVENTS, Some("default"));
        let of_web = events
            .iter()
            .filter(|event| event["involvedObject"]["kind"] == "Deployment");
        of_web
            .map(|event| event["message"].as_str().unwrap().to_owned())
            .collect()
    }
}

pub(crate) fn sizes(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    let owned = expected
        .iter()
        .map(|(image, size)| ((*image).to_owned(), *size));
    owned.collect()
}
