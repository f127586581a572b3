//! The revisions of a FederatedDeployment (L2): a ControllerRevision on the host for each template, as a StatefulSet has them.
//! Rollbacks, approvals and `fedrs rollout` name them.
//!
//! ```text
//! ControllerRevisions of the set -----.
//!                                     +-- plan() --> Write --> host
//! set, its revision, names in use ----'
//! ```
//!
//! A revision never changes its template. Its number grows when its template is that of the spec again.

mod manifest;
mod plan;
mod stored;

use std::time::Duration;

use controller_base::calls::{self, CallError, within};
use fedrs_api::{FieldError, ObjectKey, ValidFrs, ValidTemplate, labels, revision_name};
use kube::Client;
use reflector::{Collection, ReflectorSettings};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::manifest::template_hash;

pub(crate) use plan::Wanted;
use plan::{Write, plan};
use stored::{Revision, StoredTemplate};

/// Revisions per page: each has a whole template.
const PAGE_SIZE: u32 = 50;

/// The revisions on the host.
pub(crate) struct History<'a> {
    pub(crate) host: &'a Client,
    /// The longest time that one call may take.
    pub(crate) call_timeout: Duration,
}

/// Why the template of a revision can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    /// It can't be read; also if there is no such revision.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The revision belongs to somebody else.
    #[error("ControllerRevision {name} belongs to {owner}")]
    Foreign { name: String, owner: String },
    /// Its template is not the one that its name is the hash of, and that a user may have approved.
    #[error("ControllerRevision {0} does not have the template that it is named after")]
    Forged(String),
    /// It is not a template for the set.
    #[error("ControllerRevision {name}: {}", list(errors))]
    Invalid {
        name: String,
        errors: Vec<FieldError>,
    },
}

fn list(errors: &[FieldError]) -> String {
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    errors.join("; ")
}

impl History<'_> {
    /// Makes the wanted revision exist and have the highest number, and deletes the oldest revisions beyond the limit. An error
    /// if a ControllerRevision of the name belongs to somebody else.
    ///
    /// Each write is conditional on what was read: after an error of the code 409, the next attempt reads again.
    pub(crate) async fn ensure(&self, wanted: &Wanted<'_>) -> Result<(), CallError> {
        let key = &wanted.set.key;
        let mut existing = self.list(key).await?;
        if !existing.iter().any(|revision| revision.is(wanted.name)) {
            // One without our label is in no list, but has the name.
            existing.extend(self.find(key, wanted.name).await?);
        }
        let writes =
            plan(&existing, wanted).map_err(|error| CallError::NotSent(error.to_string()))?;
        for write in writes {
            self.carry_out(wanted, &write).await?;
        }
        Ok(())
    }

    /// The template of the revision `name` of `set`.
    pub(crate) async fn template(
        &self,
        set: &ValidFrs,
        name: &str,
    ) -> Result<ValidTemplate, TemplateError> {
        let path = path(&set.key, name);
        let call = calls::get::<StoredTemplate>(self.host, &path);
        let stored = within(self.call_timeout, call).await?;
        let name = name.to_owned();
        if let Some(owner) = stored.revision.foreign_owner(&set.uid) {
            return Err(TemplateError::Foreign { name, owner });
        }
        let template = stored.template();
        let valid = template.and_then(|template| ValidTemplate::check(&template, &set.selector));
        let template = valid.map_err(|errors| TemplateError::Invalid {
            name: name.clone(),
            errors,
        })?;
        let mut with_it = set.clone();
        with_it.template = template;
        if revision_name(&set.key.name, template_hash(&with_it)) == name {
            Ok(with_it.template)
        } else {
            Err(TemplateError::Forged(name))
        }
    }

    /// The revisions with the label of the set, whoever owns them.
    async fn list(&self, key: &ObjectKey) -> Result<Vec<Revision>, CallError> {
        let settings = ReflectorSettings {
            page_size: PAGE_SIZE,
            page_timeout: self.call_timeout,
            ..ReflectorSettings::default()
        };
        let selector = format!("{}={}", labels::FEDERATED_DEPLOYMENT, key.name);
        let collection = Collection::with_labels(collection(key), selector);
        let mut found = Vec::new();
        let listed = reflector::list(self.host.clone(), collection, &settings, |revision| {
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
    async fn find(&self, key: &ObjectKey, name: &str) -> Result<Option<Revision>, CallError> {
        let path = path(key, name);
        match within(self.call_timeout, calls::get(self.host, &path)).await {
            Err(error) if error.code() == Some(404) => Ok(None),
            found => found.map(Some),
        }
    }

    async fn carry_out(&self, wanted: &Wanted<'_>, write: &Write<'_>) -> Result<(), CallError> {
        let key = &wanted.set.key;
        match write {
            Write::Create { number } => {
                let (path, manifest) = (collection(key), manifest::of(wanted, *number));
                let call = calls::post::<IgnoredAny>(self.host, &path, &manifest);
                within(self.call_timeout, call).await?;
            }
            Write::Update { of, update } => {
                let (path, patch) = (path(key, of.name()), manifest::patch(wanted, of, update));
                let call = calls::merge_patch::<IgnoredAny>(self.host, &path, &patch);
                within(self.call_timeout, call).await?;
            }
            Write::Delete(revision) => self.delete(key, revision).await?,
        }
        Ok(())
    }

    /// Deletes the revision, unless another one has its name by now.
    async fn delete(&self, key: &ObjectKey, revision: &Revision) -> Result<(), CallError> {
        let path = path(key, revision.name());
        let options = delete_options(revision.uid());
        let call = calls::delete(self.host, &path, &options);
        match within(self.call_timeout, call).await {
            Err(error) if !matches!(error.code(), Some(404 | 409)) => Err(error),
            _ => Ok(()),
        }
    }
}

fn delete_options(uid: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } })
}

fn collection(key: &ObjectKey) -> String {
    let namespace = &key.namespace;
    format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions")
}

fn path(key: &ObjectKey, name: &str) -> String {
    format!("{}/{name}", collection(key))
}

#[cfg(test)]
mod tests;
