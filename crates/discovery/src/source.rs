//! The federated sets of the host, as far as their selectors say whose pods an EndpointSet has.

use std::sync::Arc;

use fedrs_api::{ObjectKey, SetKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reflector::{
    Versioned,
    partial::{name, null_as_default},
};
use serde::Deserialize;

/// The fields of a federated set that endpoints need.
#[derive(Debug, Deserialize)]
pub(crate) struct SourceObject {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(deserialize_with = "name")]
    namespace: Box<str>,
    #[serde(deserialize_with = "name")]
    name: Box<str>,
    #[serde(deserialize_with = "name")]
    resource_version: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    #[serde(default, deserialize_with = "null_as_default")]
    selector: LabelSelector,
}

impl Versioned for SourceObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl SourceObject {
    pub(crate) fn key(&self, kind: SetKind) -> ObjectKey {
        let namespace: Arc<str> = (&*self.metadata.namespace).into();
        ObjectKey::of_kind(kind, namespace, &*self.metadata.name)
    }

    pub(crate) fn selector(&self) -> &LabelSelector {
        &self.spec.selector
    }
}
