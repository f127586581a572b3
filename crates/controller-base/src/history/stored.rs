//! A ControllerRevision as the host stores it: the parts that are used.

use fedrs_api::{FieldError, PodTemplate, annotations, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use reflector::{
    limited_value,
    partial::{self, for_each_entry, null_as_default},
    printable,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::owner::Owner;

/// The values that the data may have: as many as a spec.
const MAX_VALUES: usize = 20_000;

/// A ControllerRevision without its data.
#[derive(Clone, Debug, Deserialize)]
pub struct Revision {
    metadata: Metadata,
    /// Its number: the highest is that of the current template.
    #[serde(rename = "revision", default)]
    pub(super) number: i64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(deserialize_with = "partial::name")]
    name: String,
    #[serde(deserialize_with = "partial::name")]
    uid: String,
    #[serde(deserialize_with = "partial::name")]
    resource_version: String,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: SetLabels,
    #[serde(default, deserialize_with = "null_as_default")]
    annotations: ChangeCause,
    #[serde(default, deserialize_with = "null_as_default")]
    owner_references: Vec<OwnerReference>,
}

/// The labels that name sets.
#[derive(Clone, Debug, Default)]
struct SetLabels(Vec<(String, String)>);

impl<'de> Deserialize<'de> for SetLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const KEYS: &[&str] = &[labels::FEDERATED_DEPLOYMENT, labels::LOCAL_REPLICA_SET];
        let mut found = Vec::new();
        for_each_entry(deserializer, KEYS, |key, value| {
            found.push((key.to_owned(), value.to_owned()));
        })?;
        Ok(Self(found))
    }
}

/// The annotation that says why the template changed.
#[derive(Clone, Debug, Default)]
struct ChangeCause(Option<String>);

impl<'de> Deserialize<'de> for ChangeCause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut found = None;
        for_each_entry(deserializer, &[annotations::CHANGE_CAUSE], |_, value| {
            found = Some(value.to_owned());
        })?;
        Ok(Self(found))
    }
}

impl Revision {
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name() == name
    }

    pub(super) fn uid(&self) -> &str {
        &self.metadata.uid
    }

    pub(super) fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }

    pub(super) fn change_cause(&self) -> Option<&str> {
        self.metadata.annotations.0.as_deref()
    }

    pub(super) fn owners(&self) -> &[OwnerReference] {
        &self.metadata.owner_references
    }

    /// Whether it has the label of the set.
    pub(super) fn is_labeled(&self, owner: &Owner<'_>) -> bool {
        let mut labels = self.metadata.labels.0.iter();
        labels.any(|(key, name)| key == owner.label && name == owner.name)
    }

    /// The reference to its controller. Without one it may be adopted.
    pub(super) fn controller(&self) -> Option<&OwnerReference> {
        let mut owners = self.owners().iter();
        owners.find(|owner| owner.controller == Some(true))
    }

    /// Kind and name of its controller, unless that is the set with this uid: `StatefulSet web`.
    #[must_use]
    pub fn foreign_owner(&self, uid: &str) -> Option<String> {
        let owner = self.controller().filter(|owner| owner.uid != uid)?;
        Some(printable(&format!("{} {}", owner.kind, owner.name)))
    }
}

/// A ControllerRevision with its data.
#[derive(Debug, Deserialize)]
pub struct StoredRevision {
    /// The revision itself.
    #[serde(flatten)]
    pub revision: Revision,
    /// What of the set changes with it.
    #[serde(default, deserialize_with = "limited_value::<MAX_VALUES, _>")]
    pub data: Value,
}

impl StoredRevision {
    /// The template of the set in the data, at its path there.
    pub fn template(mut self) -> Result<PodTemplate, Vec<FieldError>> {
        const TEMPLATE: &str = "spec.template";
        let template = self.data.pointer_mut("/spec/template").map(Value::take);
        serde_path_to_error::deserialize(template.unwrap_or_default()).map_err(|error| {
            let field = match error.path().to_string().as_str() {
                "." => TEMPLATE.to_owned(),
                path => format!("{TEMPLATE}.{path}"),
            };
            let message = error.inner().to_string();
            vec![FieldError { field, message }]
        })
    }
}
