//! A FederatedReplicaSet as the host shows it. One that this version of the controller can't read still exists: it must not
//! count as deleted, nor hide its status.

use std::sync::Arc;

use fedrs_api::{
    FederatedReplicaSet, FederatedReplicaSetSpec, FederatedReplicaSetStatus, FieldError, ValidFrs,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reflector::Versioned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A FederatedReplicaSet with a spec and a status that need not be readable.
#[derive(Clone, Debug)]
pub(crate) struct FrsObject {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: Result<FederatedReplicaSetSpec, UnreadableSpec>,
    /// `None` also if it can't be read: the next check then begins without a previous status.
    pub(crate) status: Option<Arc<FederatedReplicaSetStatus>>,
}

/// A spec that another version of the CRD allows.
#[derive(Clone, Debug)]
pub(crate) struct UnreadableSpec {
    /// The federation of the object, if the spec names one.
    pub(crate) federation: String,
    pub(crate) error: FieldError,
}

impl FrsObject {
    /// The valid form, or everything that is wrong with it (F4).
    pub(crate) fn validate(self) -> Result<ValidFrs, Vec<FieldError>> {
        let spec = self.spec.map_err(|unreadable| vec![unreadable.error])?;
        ValidFrs::check(&FederatedReplicaSet {
            metadata: self.metadata,
            spec,
            status: None,
        })
    }
}

impl<'de> Deserialize<'de> for FrsObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            metadata: ObjectMeta,
            #[serde(default)]
            spec: Value,
            #[serde(default)]
            status: Value,
        }
        let Raw {
            metadata,
            spec,
            status,
        } = Raw::deserialize(deserializer)?;
        let federation = spec["federation"].as_str().unwrap_or_default().to_owned();
        let spec = serde_path_to_error::deserialize(spec).map_err(|error| {
            let path = error.path().to_string();
            let field = if path == "." {
                "spec".to_owned()
            } else {
                format!("spec.{path}")
            };
            let message = format!("this version of fedrs can't read it: {}", error.inner());
            UnreadableSpec {
                federation,
                error: FieldError { field, message },
            }
        });
        let status: Option<_> = serde_json::from_value(status).unwrap_or_else(|error| {
            let (namespace, name) = (&metadata.namespace, &metadata.name);
            tracing::warn!(?namespace, ?name, %error, "failed to read the status of a FederatedReplicaSet");
            None
        });
        Ok(Self {
            metadata,
            spec,
            status: status.map(Arc::new),
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
    use mutations::fuzz;
    use serde_json::json;

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
            if let Err(errors) = read.validate() {
                for error in errors {
                    let fields = ["spec", "metadata"];
                    assert!(
                        fields.iter().any(|field| error.field.starts_with(field)),
                        "{error}"
                    );
                }
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
        assert_eq!(read.spec.as_ref().unwrap_err().federation, "blue");
        let errors = read.validate().unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "spec.deletionPolicy: this version of fedrs can't read it: unknown variant `Archive`, expected `Orphan` or `Delete`"
        );
    }
}
