//! Objects of any kind that commands create, change and remove: where they are, and what is to be changed.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::cluster_client::{ClusterClient, RequestError};

/// The field manager of what commands write.
const FIELD_MANAGER: &str = "fedrs-join";

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The API group; empty for the core.
    pub(crate) group: &'static str,
    /// The version.
    pub(crate) version: &'static str,
    /// `ClusterRole`.
    pub(crate) name: &'static str,
    /// `clusterroles`.
    pub(crate) plural: &'static str,
}

const fn kind(
    group: &'static str,
    version: &'static str,
    name: &'static str,
    plural: &'static str,
) -> Kind {
    Kind {
        group,
        version,
        name,
        plural,
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// A namespace.
pub(crate) const NAMESPACE: Kind = kind("", "v1", "Namespace", "namespaces");
/// An account of a program.
pub(crate) const SERVICE_ACCOUNT: Kind = kind("", "v1", "ServiceAccount", "serviceaccounts");
/// A Secret.
pub(crate) const SECRET: Kind = kind("", "v1", "Secret", "secrets");
/// Rights in all namespaces.
pub(crate) const CLUSTER_ROLE: Kind = kind(RBAC, "v1", "ClusterRole", "clusterroles");
/// Who has them.
pub(crate) const CLUSTER_ROLE_BINDING: Kind =
    kind(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings");
/// Rights in one namespace.
pub(crate) const ROLE: Kind = kind(RBAC, "v1", "Role", "roles");
/// Who has them.
pub(crate) const ROLE_BINDING: Kind = kind(RBAC, "v1", "RoleBinding", "rolebindings");
/// A member, as the host knows it.
pub(crate) const MEMBER_CLUSTER: Kind =
    kind("fedrs.dev", "v1alpha1", "MemberCluster", "memberclusters");

const KINDS: [Kind; 8] = [
    NAMESPACE,
    SERVICE_ACCOUNT,
    SECRET,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    MEMBER_CLUSTER,
];

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectRef {
    /// Its kind.
    pub(crate) kind: Kind,
    /// Its namespace, if it has one.
    pub(crate) namespace: Option<String>,
    /// Its name.
    pub(crate) name: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name.to_lowercase(), self.name)
    }
}

impl ObjectRef {
    /// An object without a namespace.
    pub(crate) fn cluster(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            kind,
            namespace: None,
            name: name.into(),
        }
    }

    /// An object in `namespace`.
    pub(crate) fn inside(
        namespace: impl Into<String>,
        kind: Kind,
        name: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// The address of one of our own manifests.
    pub(crate) fn of(manifest: &Value) -> Self {
        let text = |pointer| manifest.pointer(pointer).and_then(Value::as_str);
        let kind = KINDS
            .into_iter()
            .find(|it| text("/kind") == Some(it.name))
            .expect("manifests are of known kinds");
        Self {
            kind,
            namespace: text("/metadata/namespace").map(str::to_owned),
            name: text("/metadata/name")
                .expect("manifests have names")
                .to_owned(),
        }
    }

    fn collection(&self) -> String {
        let Kind {
            group,
            version,
            plural,
            ..
        } = self.kind;
        let api = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        match &self.namespace {
            Some(namespace) => format!("{api}/namespaces/{namespace}/{plural}"),
            None => format!("{api}/{plural}"),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

/// Whether a write takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// It does.
    Real,
    /// The API server only says what it would do.
    DryRun,
}

impl Write {
    fn parameters(self) -> String {
        let dry_run = match self {
            Self::Real => "",
            Self::DryRun => "&dryRun=All",
        };
        // A field that the server doesn't know would be lost without a word.
        format!("?fieldManager={FIELD_MANAGER}&fieldValidation=Strict{dry_run}")
    }
}

impl ClusterClient {
    /// Reads an object, if it is there.
    pub(crate) async fn get(&self, address: &ObjectRef) -> Result<Option<Value>, RequestError> {
        let doing = format!("read {address}");
        absent_as_none(self.send(doing, "GET", &address.path(), None).await)
    }

    /// Carries out `change`. Answers the object as it is then; `None` if there was nothing to change.
    pub(crate) async fn carry_out(
        &self,
        address: &ObjectRef,
        change: &Change,
        write: Write,
    ) -> Result<Option<Value>, RequestError> {
        let (verb, method, path, body) = match change {
            Change::None => return Ok(None),
            Change::Create(object) => ("create", "POST", address.collection(), object),
            Change::Patch(patch) => ("change", "PATCH", address.path(), patch),
        };
        let uri = path + &write.parameters();
        let doing = format!("{verb} {address}");
        self.send(doing, method, &uri, Some(body)).await.map(Some)
    }

    /// Deletes an object; what it owns goes in the background. Answers whether it was there.
    pub(crate) async fn delete(&self, address: &ObjectRef) -> Result<bool, RequestError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        });
        let doing = format!("delete {address}");
        let answer = self
            .send(doing, "DELETE", &address.path(), Some(&options))
            .await;
        Ok(absent_as_none(answer)?.is_some())
    }
}

/// What is not there is no error.
fn absent_as_none<T>(answer: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match answer {
        Err(failure) if failure.code() == Some(404) => Ok(None),
        answer => answer.map(Some),
    }
}

/// What is to be done with an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// It is as it should be.
    None,
    /// It isn't there.
    Create(Value),
    /// A merge patch: what is different. Fails if the object has been changed meanwhile.
    Patch(Value),
}

/// What makes of `found` an object that has all that `wanted` has. What else it has stays.
pub(crate) fn change(wanted: &Value, found: Option<&Value>) -> Change {
    let Some(found) = found else {
        return Change::Create(wanted.clone());
    };
    let Some(mut patch) = difference(wanted, found) else {
        return Change::None;
    };
    for field in ["uid", "resourceVersion"] {
        patch["metadata"][field] = found["metadata"][field].clone();
    }
    Change::Patch(patch)
}

/// The fields of `wanted` that `found` has otherwise, or not.
fn difference(wanted: &Value, found: &Value) -> Option<Value> {
    let (Some(wanted), Some(found)) = (wanted.as_object(), found.as_object()) else {
        return (wanted != found).then(|| wanted.clone());
    };
    let different: Map<String, Value> = wanted
        .iter()
        .filter_map(|(key, value)| {
            let found = found.get(key).unwrap_or(&Value::Null);
            Some((key.clone(), difference(value, found)?))
        })
        .collect();
    (!different.is_empty()).then_some(Value::Object(different))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_created() {
        let wanted = json!({ "metadata": { "name": "a" } });
        assert_eq!(change(&wanted, None), Change::Create(wanted));
    }

    #[test]
    fn only_what_is_different_is_written_and_only_to_the_object_that_was_seen() {
        let wanted = json!({
            "kind": "Role", "metadata": { "labels": { "ours": "1", "both": "2" } }, "rules": [1, 2],
        });
        let mut found = json!({
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
        assert_eq!(change(&wanted, Some(&found)), Change::Patch(patch));
        found["metadata"]["labels"]["ours"] = "1".into();
        found["rules"] = json!([1, 2]);
        assert_eq!(change(&wanted, Some(&found)), Change::None);
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let role = json!({
            "kind": "Role", "metadata": { "namespace": "system", "name": "r" },
        });
        let address = ObjectRef::of(&role);
        assert_eq!(
            address.path(),
            "/apis/rbac.authorization.k8s.io/v1/namespaces/system/roles/r"
        );
        assert_eq!(address.to_string(), "role/r");
        assert_eq!(
            ObjectRef::cluster(NAMESPACE, "system").path(),
            "/api/v1/namespaces/system"
        );
    }
}
