//! The types that pods are decoded into.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reflector::{Uid, Versioned, partial::null_as_default};
use serde::{Deserialize, Deserializer};

/// What a handler keeps of a pod.
pub(crate) type Kept = std::collections::HashMap<Uid, bool>;

/// A pod with the metadata that the watcher of kube-runtime needs, and no more.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct MinimalPod {
    #[serde(deserialize_with = "minimal_metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

/// A pod with the fields that a handler needs, and no more.
#[derive(Deserialize)]
pub(crate) struct OwnPod {
    metadata: OwnMetadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnMetadata {
    uid: Uid,
    resource_version: Box<str>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    node_name: String,
}

fn minimal_metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        name: String,
        namespace: Option<String>,
        uid: String,
        resource_version: String,
    }
    let metadata = Metadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: Some(metadata.name),
        namespace: metadata.namespace,
        uid: Some(metadata.uid),
        resource_version: Some(metadata.resource_version),
        ..ObjectMeta::default()
    })
}

impl kube::Resource for MinimalPod {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Versioned for OwnPod {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// A pod that a handler keeps: its uid, and whether it has a node.
pub(crate) trait Pod {
    fn keep(self, kept: &mut Kept);
}

impl Pod for OwnPod {
    fn keep(self, kept: &mut Kept) {
        kept.insert(self.metadata.uid, !self.spec.node_name.is_empty());
    }
}

impl Pod for MinimalPod {
    fn keep(self, kept: &mut Kept) {
        let uid = self.metadata.uid.expect("a pod has a uid");
        kept.insert(Uid::of(&uid), !self.spec.node_name.is_empty());
    }
}

impl Pod for k8s_openapi::api::core::v1::Pod {
    fn keep(self, kept: &mut Kept) {
        let uid = self.metadata.uid.expect("a pod has a uid");
        let node = self.spec.and_then(|spec| spec.node_name);
        kept.insert(Uid::of(&uid), node.is_some());
    }
}
