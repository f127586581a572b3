//! The FederatedDeployment that a command is about: reads, and conditional changes.

use std::fmt;

use fedrs_api::FederatedDeployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::error::Error;
use crate::{
    cluster_client::ClusterClient,
    federated_set::remove_unreadable_record,
    object::{ObjectRef, Write, WriteMode},
};

/// How often a change is tried, if only the status has changed meanwhile.
const ATTEMPTS: u32 = 5;

/// The FederatedDeployment that a command is about.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Its host.
    pub host: &'a ClusterClient,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// `federateddeployment shop/web`.
impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace, name, ..
        } = self;
        write!(f, "federateddeployment {namespace}/{name}")
    }
}

/// A change of a FederatedDeployment.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// A merge patch.
    Merge(Value),
    /// The operations of a JSON patch, which can replace a field with all that is in it.
    Operations(Vec<Value>),
}

impl Target<'_> {
    pub(super) async fn read(&self) -> Result<FederatedDeployment, Error> {
        let read = self.host.get(&self.object()).await?;
        let object = read.ok_or_else(|| Error::NotFound(self.to_string()))?;
        decode(object).map_err(|reason| Error::Unreadable {
            deployment: self.to_string(),
            reason,
        })
    }

    /// Makes the change that `decide` derives from the object, if any, unless the spec is changed meanwhile. Returns what
    /// `decide` returns with it.
    pub(super) async fn change<T>(
        &self,
        decide: impl Fn(&FederatedDeployment) -> Result<(Option<Change>, T), Error>,
    ) -> Result<T, Error> {
        let mut deployment = self.read().await?;
        let object = self.object();
        let spec = |metadata: &ObjectMeta| (metadata.uid.clone(), metadata.generation);
        let decided_for = spec(&deployment.metadata);
        let mut attempt = 1;
        loop {
            let (change, result) = decide(&deployment)?;
            let Some(change) = change else {
                return Ok(result);
            };
            let write = change.if_unchanged(&deployment.metadata);
            let written = self.host.write(&object, &write, WriteMode::Persist);
            match written.await {
                // The controller writes the status all the time while it rolls out.
                Err(error) if error.code() == Some(409) && attempt < ATTEMPTS => {
                    attempt += 1;
                    deployment = self.read().await?;
                    if spec(&deployment.metadata) != decided_for {
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
        ObjectRef::namespaced::<FederatedDeployment>(self.namespace, self.name)
    }
}

/// Reads a FederatedDeployment.
fn decode(mut object: Value) -> Result<FederatedDeployment, String> {
    remove_unreadable_record(&mut object);
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
        let status = decode(object).unwrap().status.unwrap();
        assert_eq!(status.update_revision.as_deref(), Some("web-1"));
        assert_eq!(status.rollout.unwrap().step.as_deref(), Some("canary"));
        let broken = json!({ "metadata": {}, "spec": 7 });
        assert!(decode(broken).is_err());
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
