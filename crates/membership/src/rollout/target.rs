//! The object that a command is about: reads, and conditional changes.

use std::{fmt, marker::PhantomData};

use fedrs_api::FederatedDeployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::{error::Error, kind::RolloutKind};
use crate::{
    cluster_client::ClusterClient,
    object::{ObjectRef, Write, WriteMode},
};

/// How often a change is tried, if only the status has changed meanwhile.
const ATTEMPTS: u32 = 5;

/// The object that a command is about.
pub struct Target<'a, K = FederatedDeployment> {
    /// Its cluster.
    pub cluster: &'a ClusterClient,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Target<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Target<'_, K> {}

/// `federateddeployment shop/web`.
impl<K: RolloutKind> fmt::Display for Target<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace, name, ..
        } = self;
        write!(f, "{} {namespace}/{name}", self.kind())
    }
}

/// A change of an object.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// A merge patch.
    Merge(Value),
    /// The operations of a JSON patch, which can replace a field with all that is in it.
    Operations(Vec<Value>),
}

impl<'a, K: RolloutKind> Target<'a, K> {
    /// The object `namespace/name` of `cluster`.
    #[must_use]
    pub fn new(cluster: &'a ClusterClient, namespace: &'a str, name: &'a str) -> Self {
        Self {
            cluster,
            namespace,
            name,
            kind: PhantomData,
        }
    }

    /// The kind of the object in lower case: `federateddeployment`.
    #[must_use]
    pub fn kind(&self) -> String {
        K::kind(&()).to_lowercase()
    }

    pub(super) async fn read(&self) -> Result<K, Error> {
        let read = self.cluster.get(&self.object()).await?;
        let object = read.ok_or_else(|| Error::NotFound(self.to_string()))?;
        decode(object).map_err(|reason| Error::Unreadable {
            object: self.to_string(),
            reason,
        })
    }

    /// Makes the change that `decide` derives from the object, if any, unless the spec is changed meanwhile. Returns what
    /// `decide` returns with it.
    pub(super) async fn change<T>(
        &self,
        decide: impl Fn(&K) -> Result<(Option<Change>, T), Error>,
    ) -> Result<T, Error> {
        let mut decided_on = self.read().await?;
        let object = self.object();
        let spec = |metadata: &ObjectMeta| (metadata.uid.clone(), metadata.generation);
        let decided_for = spec(decided_on.meta());
        let mut attempt = 1;
        loop {
            let (change, result) = decide(&decided_on)?;
            let Some(change) = change else {
                return Ok(result);
            };
            let write = change.if_unchanged(decided_on.meta());
            let written = self.cluster.write(&object, &write, WriteMode::Persist);
            match written.await {
                // The controller writes the status all the time while it rolls out.
                Err(error) if error.code() == Some(409) && attempt < ATTEMPTS => {
                    attempt += 1;
                    decided_on = self.read().await?;
                    if spec(decided_on.meta()) != decided_for {
                        return Err(Error::Changed(self.to_string()));
                    }
                }
                written => {
                    written?;
                    return Ok(result);
                }
            }
        }
    }

    fn object(&self) -> ObjectRef {
        ObjectRef::namespaced::<K>(self.namespace, self.name)
    }
}

/// Reads an object.
fn decode<K: RolloutKind>(mut object: Value) -> Result<K, String> {
    K::remove_record(&mut object);
    serde_json::from_value(object).map_err(|error| error.to_string())
}

impl Change {
    /// The write that the API server rejects (409) if the object was changed meanwhile.
    fn if_unchanged(self, metadata: &ObjectMeta) -> Write {
        let fields = [
            ("uid", &metadata.uid),
            ("resourceVersion", &metadata.resource_version),
        ];
        match self {
            Self::Merge(mut patch) => {
                for (field, value) in fields {
                    patch["metadata"][field] = json!(value);
                }
                Write::Patch(patch)
            }
            Self::Operations(operations) => {
                let unchanged = fields.map(|(field, value)| {
                    json!({ "op": "replace", "path": format!("/metadata/{field}"), "value": value })
                });
                Write::Patch(unchanged.into_iter().chain(operations).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_another_version_does_not_hide_the_object() {
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedDeployment", "metadata": { "name": "web" },
            "spec": { "selector": {}, "template": { "spec": {} } },
            "status": { "updateRevision": "web-1", "rollout": { "step": "canary", "record": "{\"version\":9" } },
        });
        let status = decode::<FederatedDeployment>(object)
            .unwrap()
            .status
            .unwrap();
        assert_eq!(status.update_revision.as_deref(), Some("web-1"));
        assert_eq!(status.rollout.unwrap().step.as_deref(), Some("canary"));
        let broken = json!({ "metadata": {}, "spec": 7 });
        assert!(decode::<FederatedDeployment>(broken).is_err());
    }

    #[test]
    fn a_change_is_conditional_on_what_was_read() {
        let metadata = ObjectMeta {
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        };
        let merge = Change::Merge(json!({ "spec": { "paused": true } })).if_unchanged(&metadata);
        let patch = json!({ "metadata": { "uid": "u", "resourceVersion": "7" }, "spec": { "paused": true } });
        assert_eq!(merge, Write::Patch(patch));
        let remove = json!({ "op": "remove", "path": "/spec/paused" });
        let operations = Change::Operations(vec![remove.clone()]).if_unchanged(&metadata);
        let patch = json!([
            { "op": "replace", "path": "/metadata/uid", "value": "u" },
            { "op": "replace", "path": "/metadata/resourceVersion", "value": "7" },
            remove,
        ]);
        assert_eq!(operations, Write::Patch(patch));
    }
}
