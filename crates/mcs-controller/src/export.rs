//! ServiceExports, and the Services that they export.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use reflector::{Versioned, partial::null_as_default};
use serde::{Deserialize, Serialize};

use crate::{meta::Meta, ports::ServicePort};

/// A ServiceExport.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Export {
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) spec: ExportSpec,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) status: ExportStatus,
}

/// What a ServiceExport adds to its Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ExportSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) exported_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) exported_annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ExportStatus {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) conditions: Vec<Condition>,
}

impl Versioned for Export {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Service {
    pub(crate) metadata: Meta,
    pub(crate) spec: ServiceSpec,
}

/// What a Service's consumers depend on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServiceSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) r#type: String,
    #[serde(rename = "clusterIP", deserialize_with = "null_as_default")]
    pub(crate) cluster_ip: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) ports: Vec<ServicePort>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) session_affinity: String,
    pub(crate) session_affinity_config: Option<SessionAffinityConfig>,
    pub(crate) internal_traffic_policy: Option<String>,
    pub(crate) traffic_distribution: Option<String>,
}

/// How long a client keeps its endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionAffinityConfig {
    #[serde(rename = "clientIP", skip_serializing_if = "Option::is_none")]
    pub(crate) client_ip: Option<ClientIpConfig>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClientIpConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<i32>,
}

impl Versioned for Service {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl Service {
    /// A Service without addresses of its own.
    pub(crate) fn is_headless(&self) -> bool {
        self.spec.cluster_ip == "None"
    }

    /// A name for something else, which has no endpoints.
    pub(crate) fn is_external_name(&self) -> bool {
        self.spec.r#type == "ExternalName"
    }
}

/// A valid export: the Service of a member, and since when it is exported.
#[derive(Clone, Debug)]
pub(crate) struct Exporter {
    pub(crate) cluster: Arc<str>,
    pub(crate) export: Arc<Export>,
    pub(crate) service: Arc<Service>,
}

impl Exporter {
    /// The order of precedence: the oldest export first, then by the name of the member.
    pub(crate) fn precedence(&self) -> (&str, &str) {
        (&self.export.metadata.creation_timestamp, &self.cluster)
    }
}
