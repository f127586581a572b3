//! The revisions of a FederatedDeployment (L2): a ControllerRevision on the host for each template, as a StatefulSet has them.
//! Rollbacks, approvals and `fedrs rollout` name them.

use controller_base::{
    calls::CallError,
    history::{History, Owner},
};
use fedrs_api::{FieldError, ValidFrs, ValidTemplate, labels, revision_name};
use serde_json::{Value, json};

use crate::manifest::template_hash;

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

/// The set as the owner of its revisions.
pub(crate) fn owner(set: &ValidFrs) -> Owner<'_> {
    Owner {
        kind: "FederatedDeployment",
        namespace: &set.key.namespace,
        name: &set.key.name,
        uid: &set.uid,
        label: labels::FEDERATED_DEPLOYMENT,
    }
}

/// The data of the revision of the set's template, at its path in the set.
pub(crate) fn data(set: &ValidFrs) -> Value {
    let template = &set.template;
    json!({ "spec": { "template": { "metadata": template.metadata, "spec": template.spec } } })
}

/// The template of the revision `name` of `set`.
pub(crate) async fn template(
    history: &History<'_>,
    set: &ValidFrs,
    name: &str,
) -> Result<ValidTemplate, TemplateError> {
    let stored = history.get(&set.key.namespace, name).await?;
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

#[cfg(test)]
mod tests;
