//! A LocalReplicaSet as the API server has it, checked once.

use std::{collections::BTreeMap, sync::Arc};

use controller_base::selector_index::Selecting;
use fedrs_api::{
    DisruptionLimit, FieldError, LocalReplicaSet, LocalReplicaSetSpec, LocalReplicaSetStatus,
    ValidLocalReplicaSet, annotations,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::ObjectMeta;
use reflector::{Versioned, limited_value, printable};
use replica_set_controller::CompleteTemplate;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::key::SetKey;

/// The values that a spec or a status may have.
const MAX_VALUES: usize = 20_000;

/// The object, whose fields are read later: one that can't be read is reported, and not taken for deleted.
#[derive(Debug, Deserialize)]
pub(crate) struct SetObject {
    pub(crate) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "limited_value::<MAX_VALUES, _>")]
    spec: Value,
    #[serde(default, deserialize_with = "limited_value::<MAX_VALUES, _>")]
    status: Value,
}

impl Versioned for SetObject {
    fn resource_version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

impl SetObject {
    pub(crate) fn key(&self) -> SetKey {
        SetKey::new(
            self.metadata.namespace.as_deref().unwrap_or_default(),
            self.metadata.name.as_deref().unwrap_or_default(),
        )
    }
}

/// A set in the store.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: SetKey,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) generation: i64,
    pub(crate) is_deleted: bool,
    /// Why the template was changed, if the user says so.
    pub(crate) change_cause: Option<String>,
    /// What AvailabilitySets let be unavailable, by their names (A1).
    pub(crate) limits: BTreeMap<String, DisruptionLimit>,
    pub(crate) valid: Result<Arc<ValidSet>, Vec<FieldError>>,
    /// What was published last; an error names the field that can't be read.
    pub(crate) status: Result<LocalReplicaSetStatus, FieldError>,
}

/// A valid set with the complete template of its pods.
#[derive(Debug)]
pub(crate) struct ValidSet {
    pub(crate) key: SetKey,
    pub(crate) set: ValidLocalReplicaSet,
    pub(crate) template: CompleteTemplate,
}

impl Selecting for ValidSet {
    type Key = SetKey;

    fn key(&self) -> &SetKey {
        &self.key
    }

    fn namespace(&self) -> Arc<str> {
        Arc::clone(&self.key.namespace)
    }

    fn selector(&self) -> &LabelSelector {
        &self.set.selector
    }

    fn pod_labels(&self) -> &BTreeMap<String, String> {
        &self.set.template.metadata.labels
    }
}

impl Entry {
    /// The pods that AvailabilitySets let be unavailable: the least of all budgets (A1).
    pub(crate) fn availability_limit(&self) -> Option<usize> {
        let limits = self.limits.values().map(|limit| limit.max_unavailable);
        Some(usize::try_from(limits.min()?).unwrap_or(usize::MAX))
    }

    /// The entry of `object`. A spec that `known` has already is not read again.
    pub(crate) fn of(object: SetObject, known: Option<&Self>) -> Self {
        let key = object.key();
        let SetObject {
            metadata,
            spec,
            status,
        } = object;
        let uid = metadata.uid.clone().unwrap_or_default();
        let generation = metadata.generation.unwrap_or_default();
        let same = known.filter(|known| known.uid == uid && known.generation == generation);
        Self {
            version: metadata.resource_version.clone().unwrap_or_default(),
            is_deleted: metadata.deletion_timestamp.is_some(),
            change_cause: (metadata.annotations.as_ref())
                .and_then(|annotations| annotations.get(annotations::CHANGE_CAUSE).cloned()),
            limits: DisruptionLimit::all(metadata.annotations.as_ref()),
            status: match status {
                Value::Null => Ok(LocalReplicaSetStatus::default()),
                status => read(status, "status"),
            },
            valid: match same {
                Some(known) => known.valid.clone(),
                None => valid(key.clone(), metadata, spec),
            },
            key,
            uid,
            generation,
        }
    }
}

fn valid(key: SetKey, metadata: ObjectMeta, spec: Value) -> Result<Arc<ValidSet>, Vec<FieldError>> {
    let spec: LocalReplicaSetSpec = read(spec, "spec").map_err(|error| vec![error])?;
    let status = None;
    let set = ValidLocalReplicaSet::check(&LocalReplicaSet {
        metadata,
        spec,
        status,
    })?;
    let template = CompleteTemplate::of(&set);
    Ok(Arc::new(ValidSet { key, set, template }))
}

/// Reads `value`, which is at `path` of the object.
fn read<T: DeserializeOwned>(value: Value, path: &str) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = match error.path().to_string().as_str() {
            "." => path.to_owned(),
            inner => format!("{path}.{inner}"),
        };
        let message = printable(&error.inner().to_string());
        FieldError { field, message }
    })
}
