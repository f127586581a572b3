//! The revisions of a set (L2): a ControllerRevision beside it for each template, as a StatefulSet has them.
//! Rollbacks, approvals and `fedrs rollout` name them.
//!
//! ```text
//! ControllerRevisions of the set -----.
//!                                     +-- plan() --> Write --> API server
//! set, its revision, names in use ----'
//! ```
//!
//! A revision never changes its template. Its number grows when its template is that of the spec again.

mod manifest;
mod owner;
mod plan;
mod stored;

use std::time::Duration;

use kube::Client;
use reflector::{Collection, ReflectorSettings};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::calls::{self, CallError, within};

pub use owner::Owner;
pub use plan::Wanted;
pub use stored::{Revision, StoredRevision};

use plan::{Write, plan};

/// Revisions per page: each has a whole template.
const PAGE_SIZE: u32 = 50;

/// The revisions in a cluster.
pub struct History<'a> {
    /// The cluster.
    pub client: &'a Client,
    /// The longest time that one call may take.
    pub call_timeout: Duration,
}

impl History<'_> {
    /// Makes the wanted revision exist and have the highest number, and deletes the oldest revisions beyond the limit. An error
    /// if a ControllerRevision of the name belongs to somebody else.
    ///
    /// Each write is conditional on what was read: after an error of the code 409, the next attempt reads again.
    pub async fn ensure(&self, wanted: &Wanted<'_>) -> Result<(), CallError> {
        let owner = &wanted.owner;
        let mut existing = self.list(owner).await?;
        if !existing.iter().any(|revision| revision.is(wanted.name)) {
            // One without our label is in no list, but has the name.
            existing.extend(self.find(owner.namespace, wanted.name).await?);
        }
        let writes =
            plan(&existing, wanted).map_err(|error| CallError::NotSent(error.to_string()))?;
        for write in writes {
            self.carry_out(wanted, &write).await?;
        }
        Ok(())
    }

    /// The revision `name` in `namespace`, with its data.
    pub async fn get(&self, namespace: &str, name: &str) -> Result<StoredRevision, CallError> {
        let path = path(namespace, name);
        within(self.call_timeout, calls::get(self.client, &path)).await
    }

    /// The revisions with the label of the set, whoever owns them.
    async fn list(&self, owner: &Owner<'_>) -> Result<Vec<Revision>, CallError> {
        let settings = ReflectorSettings {
            page_size: PAGE_SIZE,
            page_timeout: self.call_timeout,
            ..ReflectorSettings::default()
        };
        let selector = format!("{}={}", owner.label, owner.name);
        let collection = Collection::with_labels(collection(owner.namespace), selector);
        let mut found = Vec::new();
        let listed = reflector::list(self.client.clone(), collection, &settings, |revision| {
            // What has no name or uid can't be written either.
            found.extend(revision.ok());
        });
        match tokio::time::timeout(self.call_timeout, listed).await {
            Ok(listed) => listed.map_err(CallError::List)?,
            Err(_) => return Err(CallError::Deadline(self.call_timeout)),
        }
        Ok(found)
    }

    /// The revision of this name, whatever its labels.
    async fn find(&self, namespace: &str, name: &str) -> Result<Option<Revision>, CallError> {
        let path = path(namespace, name);
        match within(self.call_timeout, calls::get(self.client, &path)).await {
            Err(error) if error.code() == Some(404) => Ok(None),
            found => found.map(Some),
        }
    }

    async fn carry_out(&self, wanted: &Wanted<'_>, write: &Write<'_>) -> Result<(), CallError> {
        let namespace = wanted.owner.namespace;
        match write {
            Write::Create { number } => {
                let (path, manifest) = (collection(namespace), manifest::of(wanted, *number));
                let call = calls::post::<IgnoredAny>(self.client, &path, &manifest);
                within(self.call_timeout, call).await?;
            }
            Write::Update { of, update } => {
                let (path, patch) = (
                    path(namespace, of.name()),
                    manifest::patch(wanted, of, update),
                );
                let call = calls::merge_patch::<IgnoredAny>(self.client, &path, &patch);
                within(self.call_timeout, call).await?;
            }
            Write::Delete(revision) => self.delete(namespace, revision).await?,
        }
        Ok(())
    }

    /// Deletes the revision, unless another one has its name by now.
    async fn delete(&self, namespace: &str, revision: &Revision) -> Result<(), CallError> {
        let path = path(namespace, revision.name());
        let options = delete_options(revision.uid());
        let call = calls::delete(self.client, &path, &options);
        match within(self.call_timeout, call).await {
            Err(error) if !matches!(error.code(), Some(404 | 409)) => Err(error),
            _ => Ok(()),
        }
    }
}

fn delete_options(uid: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } })
}

fn collection(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions")
}

fn path(namespace: &str, name: &str) -> String {
    format!("{}/{name}", collection(namespace))
}

#[cfg(test)]
mod plan_tests;
