//! EndpointSlices: those of a member's own Services, and those that the controller imports.

use std::{collections::BTreeMap, sync::Arc};

use reflector::{Versioned, partial::null_as_default};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    key::ServiceKey,
    meta::Meta,
    names::{
        API_VERSION, LOCAL_SERVICE_NAME, MANAGER, SERVICE_NAME, SLICE_MANAGED_BY, SOURCE_CLUSTER,
    },
};

/// An EndpointSlice.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "SliceObject")]
pub(crate) struct Slice {
    pub(crate) metadata: Meta,
    pub(crate) content: Content,
}

/// An EndpointSlice in the API.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SliceObject {
    metadata: Meta,
    address_type: String,
    #[serde(default, deserialize_with = "null_as_default")]
    ports: Vec<EndpointPort>,
    #[serde(default, deserialize_with = "null_as_default")]
    endpoints: Vec<Endpoint>,
}

impl From<SliceObject> for Slice {
    fn from(object: SliceObject) -> Self {
        Self {
            metadata: object.metadata,
            content: Content {
                address_type: object.address_type,
                ports: object.ports,
                endpoints: object.endpoints,
            },
        }
    }
}

/// What an imported EndpointSlice has of the exported one. Pods and nodes of another cluster, and hints for its proxies, mean
/// nothing where it is imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Content {
    pub(crate) address_type: String,
    pub(crate) ports: Vec<EndpointPort>,
    pub(crate) endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EndpointPort {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) app_protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Endpoint {
    pub(crate) addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) conditions: EndpointConditions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hostname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EndpointConditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) serving: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminating: Option<bool>,
}

impl Versioned for Slice {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// What an EndpointSlice is to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It has endpoints of a Service of its cluster.
    Own,
    /// The controller imported it.
    Imported,
}

impl Slice {
    /// The Service that it belongs to; `None` if it has none, or is another controller's import.
    pub(crate) fn service(&self) -> Option<(ServiceKey, Role)> {
        let namespace = &self.metadata.namespace;
        if let Some(name) = self.metadata.label(SERVICE_NAME) {
            let is_ours = self.metadata.label(SLICE_MANAGED_BY) == Some(MANAGER);
            return is_ours.then(|| (ServiceKey::new(namespace, name), Role::Imported));
        }
        let name = self.metadata.label(LOCAL_SERVICE_NAME)?;
        Some((ServiceKey::new(namespace, name), Role::Own))
    }

    /// Of an imported one: the member that has its endpoints.
    pub(crate) fn source(&self) -> Option<&str> {
        self.metadata.label(SOURCE_CLUSTER)
    }
}

/// What an imported EndpointSlice should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesiredSlice {
    pub(crate) source: Arc<str>,
    pub(crate) content: Content,
}

/// The name of what is imported of the EndpointSlice `of` in the member `source`: the same as long as that exists. The type of
/// addresses can't be changed, and is in the name.
pub(crate) fn imported_name(key: &ServiceKey, source: &str, of: &Slice) -> String {
    let name = &of.metadata.name;
    let address_type = &of.content.address_type;
    let hash = xxh3_64(format!("{source}/{name}/{address_type}").as_bytes());
    format!("imported-{}-{source}-{hash:016x}", key.name)
}

impl DesiredSlice {
    fn labels(&self, key: &ServiceKey) -> BTreeMap<&'static str, String> {
        [
            (SERVICE_NAME, key.name.to_string()),
            (SOURCE_CLUSTER, self.source.to_string()),
            (SLICE_MANAGED_BY, MANAGER.to_owned()),
        ]
        .into()
    }

    /// Whether `slice` is as it should be, and goes with the ServiceImport of this uid.
    pub(crate) fn is(&self, key: &ServiceKey, slice: &Slice, import_uid: &str) -> bool {
        let mut labels = self.labels(key).into_iter();
        let mut owners = slice.metadata.owner_references.iter();
        self.content == slice.content
            && labels.all(|(key, value)| slice.metadata.label(key) == Some(&value))
            && owners.any(|owner| owner.uid == import_uid)
    }

    /// The fields that the controller writes. It goes with the ServiceImport of this uid.
    pub(crate) fn fields(&self, key: &ServiceKey, import_uid: &str) -> Value {
        let owner = json!({
            "apiVersion": API_VERSION, "kind": "ServiceImport", "name": *key.name, "uid": import_uid,
        });
        let mut fields = json!(self.content);
        fields["metadata"] = json!({ "labels": self.labels(key), "ownerReferences": [owner] });
        fields
    }
}
