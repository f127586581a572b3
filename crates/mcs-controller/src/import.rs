//! ServiceImports.

use std::collections::BTreeMap;

use reflector::{Versioned, partial::null_as_default};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    export::SessionAffinityConfig,
    meta::Meta,
    names::{EXPORTED_KEYS, IMPORT_MANAGED_BY, MANAGER},
    ports::ServicePort,
};

/// A ServiceImport.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Import {
    pub(crate) metadata: Meta,
    pub(crate) spec: ImportSpec,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) status: ImportStatus,
}

/// Whether it has an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ImportType {
    /// One address for all endpoints, of a data plane.
    #[default]
    #[serde(rename = "ClusterSetIP")]
    ClusterSetIp,
    /// The addresses of the endpoints.
    Headless,
}

/// The fields of a ServiceImport's spec that the controller writes. `ips` is the data plane's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ImportSpec {
    pub(crate) r#type: ImportType,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) ports: Vec<ServicePort>,
    /// `None` or `ClientIP`.
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) session_affinity: String,
    pub(crate) session_affinity_config: Option<SessionAffinityConfig>,
    pub(crate) internal_traffic_policy: Option<String>,
    pub(crate) traffic_distribution: Option<String>,
}

/// Which members export the Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ImportStatus {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) endpoint_slice_objects: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) clusters: Vec<ClusterStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterStatus {
    pub(crate) cluster: String,
}

impl Versioned for Import {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// The keys of labels and annotations that come from exports.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ExportedKeys {
    labels: Vec<String>,
    annotations: Vec<String>,
}

impl Import {
    /// Whether the controller made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.metadata.label(IMPORT_MANAGED_BY) == Some(MANAGER)
    }

    fn exported_keys(&self) -> ExportedKeys {
        let recorded = self.metadata.annotations.get(EXPORTED_KEYS);
        let keys = recorded.and_then(|keys| serde_json::from_str(keys).ok());
        keys.unwrap_or_default()
    }

    /// What exports gave it, as far as it still has it.
    pub(crate) fn exported(&self) -> Exported {
        let keys = self.exported_keys();
        let of = |all: &BTreeMap<String, String>, keys: &[String]| {
            let found = keys.iter().filter_map(|key| all.get_key_value(key));
            found
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        Exported {
            labels: of(&self.metadata.labels, &keys.labels),
            annotations: of(&self.metadata.annotations, &keys.annotations),
        }
    }
}

/// Labels and annotations that exports give to the ServiceImport.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exported {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// What a ServiceImport should be, without what others write into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DesiredImport {
    pub(crate) spec: ImportSpec,
    pub(crate) exported: Exported,
    /// The members that export the Service, in the order of their names.
    pub(crate) clusters: Vec<ClusterStatus>,
}

impl DesiredImport {
    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.exported.labels.clone();
        labels.insert(IMPORT_MANAGED_BY.to_owned(), MANAGER.to_owned());
        labels
    }

    fn annotations(&self) -> BTreeMap<String, String> {
        let keys = ExportedKeys {
            labels: self.exported.labels.keys().cloned().collect(),
            annotations: self.exported.annotations.keys().cloned().collect(),
        };
        let keys = serde_json::to_string(&keys).expect("lists of strings are JSON");
        let mut annotations = self.exported.annotations.clone();
        annotations.insert(EXPORTED_KEYS.to_owned(), keys);
        annotations
    }

    /// The metadata of a new one.
    pub(crate) fn metadata(&self) -> Value {
        json!({ "labels": self.labels(), "annotations": self.annotations() })
    }

    /// The labels and annotations that `import` has to change, as a merge patch; `null` removes one. `None` if there are none.
    pub(crate) fn metadata_patch(&self, import: &Import) -> Option<Value> {
        let keys = import.exported_keys();
        let labels = changes(&import.metadata.labels, &keys.labels, self.labels());
        let annotations = changes(
            &import.metadata.annotations,
            &keys.annotations,
            self.annotations(),
        );
        let has_changes = !labels.is_empty() || !annotations.is_empty();
        has_changes.then(|| json!({ "labels": labels, "annotations": annotations }))
    }
}

/// What has to change for `found` to have `desired`, and none of the other keys that were `exported` before.
fn changes(
    found: &BTreeMap<String, String>,
    exported: &[String],
    desired: BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let outdated = exported
        .iter()
        .filter(|&key| found.contains_key(key) && !desired.contains_key(key));
    let mut changes: BTreeMap<_, _> = outdated.map(|key| (key.clone(), None)).collect();
    for (key, value) in desired {
        if found.get(&key) != Some(&value) {
            changes.insert(key, Some(value));
        }
    }
    changes
}
