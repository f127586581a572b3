//! What EndpointSets name as their sources: federated sets of the host and Services of members, as far as their selectors say whose
//! pods these are.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{ObjectKey, SetKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reflector::{
    Versioned,
    partial::{name, null_as_default},
};
use serde::Deserialize;

use crate::services::ServiceKey;

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

/// The fields of a Service that endpoints need.
#[derive(Debug, Deserialize)]
pub(crate) struct ServiceObject {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: ServiceSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServiceSpec {
    #[serde(deserialize_with = "null_as_default")]
    r#type: String,
    #[serde(deserialize_with = "null_as_default")]
    selector: BTreeMap<String, String>,
}

impl Versioned for ServiceObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl ServiceObject {
    pub(crate) fn key(&self) -> ServiceKey {
        ServiceKey::new(&*self.metadata.namespace, &*self.metadata.name)
    }

    /// Which pods it has; `None` if others say which endpoints it has.
    pub(crate) fn selector(&self) -> Option<LabelSelector> {
        let ServiceSpec { r#type, selector } = &self.spec;
        let selects = !selector.is_empty() && r#type != "ExternalName";
        selects.then(|| LabelSelector {
            match_labels: Some(selector.clone()),
            ..LabelSelector::default()
        })
    }
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
