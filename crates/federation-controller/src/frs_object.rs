//! A FederatedReplicaSet or FederatedDeployment as the host shows it. One that this version of the controller can't read still exists: it must not
//! count as deleted, nor hide its status.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{DisruptionLimit, FederatedReplicaSetStatus, FieldError, MAX_ENTRIES, annotations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use reflector::{Versioned, limited_value};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// The values that a spec may have: a large one has some thousands.
const MAX_VALUES: usize = 20_000;

/// A federated set with a spec and a status that need not be readable.
#[derive(Clone, Debug)]
pub(crate) struct FrsObject {
    /// The part that is used. Has at most one entry more than is valid.
    pub(crate) metadata: ObjectMeta,
    /// As JSON: a page of sets takes about its bytes, whatever the specs contain.
    spec: Box<RawValue>,
    /// `None` also if it can't be read: the next check then begins without a previous status.
    pub(crate) status: Option<Arc<FederatedReplicaSetStatus>>,
    /// Why the status can't be read, if it can't.
    pub(crate) status_error: Option<String>,
}

/// A spec that another version of the CRD allows, or one with too many values.
#[derive(Clone, Debug)]
pub(crate) struct UnreadableSpec {
    /// The federation of the object, if the spec names one.
    pub(crate) federation: String,
    pub(crate) error: FieldError,
}

impl FrsObject {
    /// The spec as this version of fedrs reads it.
    pub(crate) fn read_spec<S: DeserializeOwned>(&self) -> Result<S, UnreadableSpec> {
        let spec = self.spec.get();
        read_spec(spec).map_err(|(path, why)| UnreadableSpec {
            federation: federation(spec),
            error: FieldError {
                field: if path == "." {
                    "spec".to_owned()
                } else {
                    format!("spec.{path}")
                },
                message: format!("this version of fedrs can't read it: {why}"),
            },
        })
    }
}

/// Reads a spec, or returns the path of what can't be read, and why not.
fn read_spec<S: DeserializeOwned>(spec: &str) -> Result<S, (String, String)> {
    let mut json = serde_json::Deserializer::from_str(spec);
    let value = limited_value::<MAX_VALUES, _>(&mut json).map_err(|error| {
        let why = if error.is_data() {
            format!("it has more than {MAX_VALUES} values")
        } else {
            error.to_string()
        };
        (".".to_owned(), why)
    })?;
    serde_path_to_error::deserialize(value)
        .map_err(|error| (error.path().to_string(), error.inner().to_string()))
}

/// The federation that an unreadable spec names, if it does.
fn federation(spec: &str) -> String {
    #[derive(Default, Deserialize)]
    struct Spec<'a> {
        #[serde(borrow)]
        federation: Option<&'a RawValue>,
    }
    let spec = serde_json::from_str::<Spec<'_>>(spec).unwrap_or_default();
    let federation = spec.federation.map(|name| serde_json::from_str(name.get()));
    federation.and_then(Result::ok).unwrap_or_default()
}

/// The metadata that is used: no managed fields, and of the annotations, which tools fill with whole objects, only ours.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    generation: Option<i64>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
}

impl From<Metadata> for ObjectMeta {
    fn from(metadata: Metadata) -> Self {
        // The next one shows that there are too many.
        let kept = MAX_ENTRIES + 1;
        let used = [annotations::PREFERENCES, annotations::CHANGE_CAUSE];
        let ours = |(key, value): &(String, String)| {
            let is_limit = key.starts_with(annotations::AVAILABILITY_PREFIX);
            used.contains(&&**key) || is_limit && value.len() <= DisruptionLimit::BYTES_MAX
        };
        Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            generation: metadata.generation,
            resource_version: metadata.resource_version,
            deletion_timestamp: metadata.deletion_timestamp,
            labels: (metadata.labels).map(|labels| labels.into_iter().take(kept).collect()),
            annotations: (metadata.annotations)
                .map(|annotations| annotations.into_iter().filter(ours).collect()),
            finalizers: metadata.finalizers.map(|mut finalizers| {
                finalizers.truncate(kept);
                finalizers.shrink_to_fit();
                finalizers
            }),
            ..Self::default()
        }
    }
}

impl<'de> Deserialize<'de> for FrsObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            metadata: Metadata,
            #[serde(default)]
            spec: Box<RawValue>,
            #[serde(default)]
            status: Box<RawValue>,
        }
        let Raw {
            metadata,
            spec,
            status,
        } = Raw::deserialize(deserializer)?;
        let read = serde_json::from_str::<Option<_>>(status.get());
        let (status, status_error) = match read {
            Ok(status) => (status, None),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(error) = &status_error {
            let (namespace, name) = (&metadata.namespace, &metadata.name);
            tracing::warn!(
                ?namespace,
                ?name,
                error,
                "failed to read the status of a federated set"
            );
        }
        Ok(Self {
            metadata: metadata.into(),
            spec,
            status: status.map(Arc::new),
            status_error,
        })
    }
}

impl Versioned for FrsObject {
    fn resource_version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::frs_store::Entry;
    use fedrs_api::{FederatedReplicaSetSpec, SetKind};
    use mutations::fuzz;
    use serde_json::{Value, json};

    #[test]
    fn f4_any_set_with_metadata_is_there_and_says_which_field_cannot_be_read() {
        let sets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/corpus/sets");
        fuzz(&sets, |bytes| {
            let Ok(read) = serde_json::from_slice::<FrsObject>(bytes) else {
                let json = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
                let metadata = serde_json::from_value::<ObjectMeta>(json["metadata"].clone());
                assert!(metadata.is_err(), "{json}");
                return;
            };
            let entry = Entry::derive(SetKind::FederatedReplicaSet, read, "");
            for error in entry.valid.err().into_iter().flatten() {
                let fields = ["spec", "metadata"];
                assert!(
                    fields.iter().any(|field| error.field.starts_with(field)),
                    "{error}"
                );
            }
        });
    }

    #[test]
    fn f4_a_spec_or_status_of_another_version_does_not_hide_the_object() {
        let template =
            json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{}] } });
        let object = json!({
            "metadata": { "name": "web", "namespace": "default", "resourceVersion": "7" },
            "spec": {
                "replicas": 3, "selector": { "matchLabels": { "app": "web" } }, "template": template,
                "federation": "blue", "deletionPolicy": "Archive",
            },
            "status": { "replicas": "three" },
        });
        let read: FrsObject = serde_json::from_value(object).unwrap();
        assert_eq!(read.resource_version(), Some("7"));
        assert_eq!(read.status, None);
        let unreadable = read.read_spec::<FederatedReplicaSetSpec>().unwrap_err();
        assert_eq!(unreadable.federation, "blue");
        assert_eq!(
            unreadable.error.to_string(),
            "spec.deletionPolicy: this version of fedrs can't read it: unknown variant `Archive`, expected `Orphan` or `Delete`"
        );
    }
}
