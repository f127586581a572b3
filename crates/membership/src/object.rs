//! References to objects of any kind, the write that gives an object its desired fields, and requests for both.

use derive_more::Display;
use kube::{
    Resource,
    core::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta},
};
use serde_json::{Map, Value, json};

use crate::cluster_client::{ClusterClient, RequestError};

/// The field manager of all writes.
pub(crate) const FIELD_MANAGER: &str = "fedrs-join";

/// A reference to an object.
#[derive(Clone, Debug, Display, PartialEq, Eq)]
#[display("{}/{name}", kind.kind.to_lowercase())]
pub struct ObjectRef {
    /// Its kind.
    pub(crate) kind: ApiResource,
    /// Its namespace; `None` for a cluster-scoped object.
    pub(crate) namespace: Option<String>,
    /// Its name.
    pub(crate) name: String,
}

impl ObjectRef {
    /// A cluster-scoped object.
    pub(crate) fn cluster_scoped<K: Resource<DynamicType = ()>>(name: &str) -> Self {
        Self {
            kind: ApiResource::erase::<K>(&()),
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// An object in `namespace`.
    pub(crate) fn namespaced<K: Resource<DynamicType = ()>>(namespace: &str, name: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..Self::cluster_scoped::<K>(name)
        }
    }

    /// The object that a manifest of this crate describes.
    pub(crate) fn of(manifest: &Value) -> Self {
        let text = |pointer| manifest.pointer(pointer)?.as_str().map(str::to_owned);
        let required = |pointer| text(pointer).expect("all manifests have a kind and a name");
        let kind = GroupVersionKind::try_from(TypeMeta {
            api_version: required("/apiVersion"),
            kind: required("/kind"),
        });
        Self {
            // All kinds of manifests have a regular plural.
            kind: ApiResource::from_gvk(&kind.expect("all manifests have a valid apiVersion")),
            namespace: text("/metadata/namespace"),
            name: required("/metadata/name"),
        }
    }

    /// Whether the object is of this kind.
    pub(crate) fn is<K: Resource<DynamicType = ()>>(&self) -> bool {
        self.kind == ApiResource::erase::<K>(&())
    }

    fn collection(&self) -> String {
        DynamicObject::url_path(&self.kind, self.namespace.as_deref())
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

/// Whether a write is persisted.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum WriteMode {
    /// It is persisted.
    #[display("")]
    Persist,
    /// The API server validates it only.
    #[display(" (dry run)")]
    DryRun,
}

impl WriteMode {
    fn parameters(self) -> String {
        let dry_run = match self {
            Self::Persist => "",
            Self::DryRun => "&dryRun=All",
        };
        // By default the server drops unknown fields silently.
        format!("?fieldManager={FIELD_MANAGER}&fieldValidation=Strict{dry_run}")
    }
}

impl ClusterClient {
    /// Reads an object; `None` if it does not exist.
    pub(crate) async fn get(&self, object: &ObjectRef) -> Result<Option<Value>, RequestError> {
        let operation = format!("get {object}");
        none_if_not_found(self.send(operation, "GET", &object.path(), None).await)
    }

    /// Sends `write`. Returns the written object; `None` if nothing was to be written.
    pub(crate) async fn write(
        &self,
        object: &ObjectRef,
        write: &Write,
        mode: WriteMode,
    ) -> Result<Option<Value>, RequestError> {
        let (verb, method, path, body) = match write {
            Write::None => return Ok(None),
            Write::Create(body) => ("create", "POST", object.collection(), body),
            Write::Patch(patch) => ("patch", "PATCH", object.path(), patch),
        };
        let uri = path + &mode.parameters();
        let operation = format!("{verb} {object}");
        self.send(operation, method, &uri, Some(body))
            .await
            .map(Some)
    }

    /// Deletes an object and, in the background, its dependents. Returns whether it existed.
    pub(crate) async fn delete(&self, object: &ObjectRef) -> Result<bool, RequestError> {
        self.delete_with(object, json!({})).await
    }

    /// The same, if the object is as `metadata` says.
    pub(crate) async fn delete_if_unchanged(
        &self,
        object: &ObjectRef,
        metadata: &Value,
    ) -> Result<bool, RequestError> {
        let fields = ["uid", "resourceVersion"].map(|field| (field, metadata[field].clone()));
        let preconditions = Value::Object(
            fields
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                .collect(),
        );
        self.delete_with(object, json!({ "preconditions": preconditions }))
            .await
    }

    async fn delete_with(
        &self,
        object: &ObjectRef,
        mut options: Value,
    ) -> Result<bool, RequestError> {
        for (field, value) in [
            ("apiVersion", "v1"),
            ("kind", "DeleteOptions"),
            ("propagationPolicy", "Background"),
        ] {
            options[field] = value.into();
        }
        let operation = format!("delete {object}");
        let response = self
            .send(operation, "DELETE", &object.path(), Some(&options))
            .await;
        Ok(none_if_not_found(response)?.is_some())
    }
}

/// `None` for an object that does not exist.
pub(crate) fn none_if_not_found<T>(
    response: Result<T, RequestError>,
) -> Result<Option<T>, RequestError> {
    match response {
        Err(error) if error.code() == Some(404) => Ok(None),
        response => response.map(Some),
    }
}

/// The write that an object needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    /// None: the object has all desired fields.
    None,
    /// The object does not exist.
    Create(Value),
    /// A merge patch with the fields that differ, or a list, the operations of a JSON patch. The API server rejects it if the
    /// object was changed meanwhile.
    Patch(Value),
}

/// The write that gives `live` all fields of `desired`. Other fields stay.
pub(crate) fn required_write(desired: &Value, live: Option<&Value>) -> Write {
    let Some(live) = live else {
        return Write::Create(desired.clone());
    };
    let Some(mut patch) = difference(desired, live) else {
        return Write::None;
    };
    for field in ["uid", "resourceVersion"] {
        patch["metadata"][field] = live["metadata"][field].clone();
    }
    Write::Patch(patch)
}

/// The fields of `desired` that `live` lacks or has with another value.
fn difference(desired: &Value, live: &Value) -> Option<Value> {
    let (Some(desired), Some(live)) = (desired.as_object(), live.as_object()) else {
        return (desired != live).then(|| desired.clone());
    };
    let different: Map<String, Value> = desired
        .iter()
        .filter_map(|(key, value)| {
            let live = live.get(key).unwrap_or(&Value::Null);
            Some((key.clone(), difference(value, live)?))
        })
        .collect();
    (!different.is_empty()).then_some(Value::Object(different))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;

    use super::*;

    #[test]
    fn a_missing_object_is_created() {
        let desired = json!({ "metadata": { "name": "a" } });
        assert_eq!(required_write(&desired, None), Write::Create(desired));
    }

    #[test]
    fn a_patch_has_only_the_fields_that_differ_and_is_conditional_on_the_live_object() {
        let desired = json!({
            "kind": "Role", "metadata": { "labels": { "ours": "1", "both": "2" } }, "rules": [1, 2],
        });
        let mut live = json!({
            "kind": "Role",
            "metadata": {
                "uid": "u", "resourceVersion": "7", "labels": { "theirs": "x", "both": "2" },
            },
            "rules": [1],
        });
        let patch = json!({
            "metadata": { "uid": "u", "resourceVersion": "7", "labels": { "ours": "1" } },
            "rules": [1, 2],
        });
        assert_eq!(required_write(&desired, Some(&live)), Write::Patch(patch));
        live["metadata"]["labels"]["ours"] = "1".into();
        live["rules"] = json!([1, 2]);
        assert_eq!(required_write(&desired, Some(&live)), Write::None);
    }

    #[test]
    fn paths_follow_the_kubernetes_api() {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "namespace": "system", "name": "r" },
        });
        let object = ObjectRef::of(&role);
        assert_eq!(
            object.path(),
            "/apis/rbac.authorization.k8s.io/v1/namespaces/system/roles/r"
        );
        assert_eq!(object.to_string(), "role/r");
        assert_eq!(
            ObjectRef::cluster_scoped::<Namespace>("system").path(),
            "/api/v1/namespaces/system"
        );
    }
}
