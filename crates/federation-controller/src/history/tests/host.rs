//! The revisions on a host in the process, whose garbage collector runs.

use std::{collections::BTreeSet, time::Duration};

use controller_base::{
    calls::{self, CallError},
    history::{History, Wanted},
};
use fedrs_api::{ValidFrs, ValidTemplate, crd, revision_name};
use kube::Client;
use serde_json::{Value, json};
use sim_cluster::SimCluster;

use super::{owner, set, template};
use crate::{
    history::{self, TemplateError},
    manifest::template_hash,
};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEPLOYMENTS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/federateddeployments";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";

struct World {
    /// Stops when it is dropped.
    _host: SimCluster,
    client: Client,
    /// The uid of the FederatedDeployment.
    uid: String,
}

impl World {
    async fn new() -> Self {
        let host = SimCluster::builder("host").start();
        let client = Client::new(host.service(), "default");
        for crd in crd::all() {
            calls::post::<Value>(&client, CRDS, &crd).await.unwrap();
        }
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedDeployment",
            "metadata": { "name": "web", "namespace": "default" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": template("web:1") },
        });
        let created = calls::post::<Value>(&client, DEPLOYMENTS, &object).await;
        Self {
            uid: text(&created.unwrap()["metadata"]["uid"]),
            client,
            _host: host,
        }
    }

    fn set(&self, image: &str) -> ValidFrs {
        set(&self.uid, image)
    }

    fn history(&self) -> History<'_> {
        History {
            client: &self.client,
            call_timeout: Duration::from_secs(10),
        }
    }

    /// Makes `name` the latest revision, for pods that run this image.
    async fn ensure(&self, name: &str, image: &str, cause: Option<&str>) -> Result<(), CallError> {
        let set = self.set(image);
        let wanted = Wanted {
            owner: history::owner(&set),
            data: &history::data(&set),
            name,
            change_cause: cause,
            in_use: &BTreeSet::from(["web-1".to_owned()]),
            limit: 1,
        };
        self.history().ensure(&wanted).await
    }

    /// The template of the revision `name` of the set whose pods run this image.
    async fn template(&self, image: &str, name: &str) -> Result<ValidTemplate, TemplateError> {
        history::template(&self.history(), &self.set(image), name).await
    }

    /// The revisions as `NUMBER NAME CAUSE`, in the order of their numbers.
    async fn revisions(&self) -> Vec<String> {
        // The garbage collector has done what it has to do.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let list = calls::get::<Value>(&self.client, REVISIONS).await.unwrap();
        let items = list["items"].as_array().unwrap().iter();
        let mut shown: Vec<_> = items.map(shown).collect();
        shown.sort();
        shown
    }

    async fn get(&self, name: &str) -> Value {
        let path = format!("{REVISIONS}/{name}");
        calls::get(&self.client, &path).await.unwrap()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn shown(revision: &Value) -> String {
    let metadata = &revision["metadata"];
    let cause = text(&metadata["annotations"]["kubernetes.io/change-cause"]);
    format!(
        "{} {} {cause}",
        revision["revision"],
        text(&metadata["name"])
    )
}

#[tokio::test(start_paused = true)]
async fn l2_a_revision_has_the_template_and_belongs_to_its_set() {
    let world = World::new().await;
    let name = revision_name("web", template_hash(&world.set("web:1")));
    world.ensure(&name, "web:1", Some("first")).await.unwrap();
    let revision = world.get(&name).await;
    let metadata = &revision["metadata"];
    let labels = json!({ "fedrs.dev/federated-deployment": "web" });
    assert_eq!(metadata["labels"], labels);
    let mut owner = owner("FederatedDeployment", "web", &world.uid);
    owner["apiVersion"] = "fedrs.dev/v1alpha1".into();
    assert_eq!(metadata["ownerReferences"], json!([owner]));
    let data = json!({ "spec": { "template": template("web:1") } });
    assert_eq!(revision["data"], data);
    let found = world.template("web:2", &name).await;
    assert_eq!(found.unwrap(), world.set("web:1").template);
}

#[tokio::test(start_paused = true)]
async fn l2_l10_a_template_that_returns_is_the_latest_and_the_oldest_unused_one_goes() {
    let world = World::new().await;
    world.ensure("web-1", "web:1", Some("first")).await.unwrap();
    world.ensure("web-2", "web:2", None).await.unwrap();
    world.ensure("web-3", "web:3", Some("third")).await.unwrap();
    let before = ["1 web-1 first", "2 web-2 ", "3 web-3 third"];
    assert_eq!(world.revisions().await, before);
    world.ensure("web-2", "web:2", Some("undo")).await.unwrap();
    let undone = ["1 web-1 first", "3 web-3 third", "4 web-2 undo"];
    assert_eq!(world.revisions().await, undone);
    world.ensure("web-2", "web:2", Some("undo")).await.unwrap();
    assert_eq!(world.revisions().await, undone);
    // web-1 is in use.
    world.ensure("web-4", "web:4", None).await.unwrap();
    let pruned = ["1 web-1 first", "4 web-2 undo", "5 web-4 "];
    assert_eq!(world.revisions().await, pruned);
}

#[tokio::test(start_paused = true)]
async fn l2_what_lost_its_label_and_its_owner_is_adopted() {
    let world = World::new().await;
    world.ensure("web-1", "web:1", None).await.unwrap();
    let before = world.get("web-1").await;
    let bare = json!({ "metadata": { "labels": null, "ownerReferences": null } });
    let path = format!("{REVISIONS}/web-1");
    let patched = calls::merge_patch::<Value>(&world.client, &path, &bare).await;
    assert_eq!(patched.unwrap()["metadata"]["labels"], Value::Null);
    world.ensure("web-1", "web:1", None).await.unwrap();
    let after = world.get("web-1").await;
    for field in ["uid", "labels", "ownerReferences"] {
        assert_eq!(after["metadata"][field], before["metadata"][field]);
    }
    assert_eq!(world.revisions().await, ["1 web-1 "]);
}

#[tokio::test(start_paused = true)]
async fn l2_a_revision_of_another_owner_is_neither_changed_nor_used() {
    let world = World::new().await;
    let other = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "other" },
        "spec": {
            "serviceName": "", "selector": { "matchLabels": { "app": "web" } }, "template": template("web:1"),
        },
    });
    let path = "/apis/apps/v1/namespaces/default/statefulsets";
    let other = calls::post::<Value>(&world.client, path, &other).await;
    let mut owner = owner(
        "StatefulSet",
        "other",
        &text(&other.unwrap()["metadata"]["uid"]),
    );
    owner["apiVersion"] = "apps/v1".into();
    let taken = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 3,
        "metadata": { "name": "web-1", "ownerReferences": [owner] },
        "data": { "spec": { "template": template("web:1") } },
    });
    calls::post::<Value>(&world.client, REVISIONS, &taken)
        .await
        .unwrap();
    let error = world.ensure("web-1", "web:1", None).await.unwrap_err();
    let expected = "ControllerRevision default/web-1 belongs to StatefulSet other";
    assert_eq!(error.to_string(), expected);
    assert_eq!(world.revisions().await, ["3 web-1 "]);
    let found = world.template("web:1", "web-1").await;
    let expected = "ControllerRevision web-1 belongs to StatefulSet other";
    assert_eq!(found.unwrap_err().to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn l2_a_template_that_cannot_be_used_says_why() {
    let world = World::new().await;
    let gone = world.template("web:1", "web-1").await;
    assert!(
        matches!(&gone, Err(TemplateError::Call(error)) if error.code() == Some(404)),
        "{gone:?}"
    );
    let mut other_labels = template("web:1");
    other_labels["metadata"]["labels"] = json!({ "app": "blog" });
    for (data, expected) in [
        (
            json!({ "spec": { "template": other_labels } }),
            "ControllerRevision web-1: spec.selector: does not match spec.template.metadata.labels",
        ),
        (
            json!({ "spec": { "template": { "metadata": { "labels": 7 }, "spec": {} } } }),
            "ControllerRevision web-1: spec.template.metadata.labels: invalid type: integer `7`, expected a map",
        ),
        (
            json!({ "spec": {} }),
            "ControllerRevision web-1: spec.template: invalid type: null, expected struct PodTemplate",
        ),
        // A valid one, but not that of the name.
        (
            json!({ "spec": { "template": template("web:1") } }),
            "ControllerRevision web-1 does not have the template that it is named after",
        ),
    ] {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 3, "metadata": { "name": "web-1" },
            "data": data,
        });
        calls::post::<Value>(&world.client, REVISIONS, &object)
            .await
            .unwrap();
        let found = world.template("web:1", "web-1").await.unwrap_err();
        assert_eq!(found.to_string(), expected);
        let path = format!("{REVISIONS}/web-1");
        calls::delete(&world.client, &path, &json!({}))
            .await
            .unwrap();
    }
}
