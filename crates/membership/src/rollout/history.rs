//! The revisions of a FederatedDeployment, and which clusters have them.

use fedrs_api::{FederatedDeployment, annotations, labels};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{Api, ResourceExt, api::ListParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::{error::Error, target::Target};

/// A FederatedDeployment with its revisions.
#[derive(Clone, Debug)]
pub struct History {
    /// `federateddeployment shop/web`.
    name: String,
    /// The template of the spec.
    spec: Value,
    /// `status.currentRevision`.
    current: Option<String>,
    /// By number, the oldest first.
    pub revisions: Vec<Revision>,
}

/// One revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Its number, which grows when its template is rolled out again.
    pub revision: i64,
    /// Its name.
    pub name: String,
    /// Why the template changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_cause: Option<String>,
    /// The clusters whose Deployment has it, by name.
    pub clusters: Vec<String>,
    /// The template of the pods: `metadata` and `spec`.
    pub template: Value,
}

/// A template, and where it is from: `revision 3 (web-0a1b2c3d)` or `spec.template`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Template<'a> {
    /// The revision; `None` for the spec.
    pub of: Option<&'a Revision>,
    /// The template.
    pub template: &'a Value,
}

/// Reads the revisions of the FederatedDeployment.
pub async fn history(target: Target<'_>) -> Result<History, Error> {
    let deployment = target.read().await?;
    let revisions: Api<ControllerRevision> =
        Api::namespaced(target.host.client(), target.namespace);
    let label = format!("{}={}", labels::FEDERATED_DEPLOYMENT, target.name);
    let selected = ListParams::default().labels(&label);
    let operation = format!("list controllerrevisions in namespace {}", target.namespace);
    let list = target.host.call(operation, revisions.list(&selected));
    Ok(History::of(
        target.to_string(),
        &deployment,
        list.await?.items,
    ))
}

impl History {
    fn of(name: String, deployment: &FederatedDeployment, found: Vec<ControllerRevision>) -> Self {
        let uid = deployment.uid().unwrap_or_default();
        let own = found.into_iter().filter(|found| {
            let mut owners = found.owner_references().iter();
            owners.any(|owner| owner.controller == Some(true) && owner.uid == uid)
        });
        let mut revisions: Vec<_> = own.map(|found| Revision::of(found, deployment)).collect();
        revisions.sort_by(|a, b| (a.revision, &a.name).cmp(&(b.revision, &b.name)));
        let status = deployment.status.as_ref();
        Self {
            name,
            spec: json!(deployment.spec.template),
            current: status.and_then(|status| status.current_revision.clone()),
            revisions,
        }
    }

    /// The revision of this number.
    pub fn find(&self, number: i64) -> Result<&Revision, Error> {
        let mut revisions = self.revisions.iter();
        let found = revisions.find(|revision| revision.revision == number);
        found.ok_or_else(|| Error::NoRevision {
            deployment: self.name.clone(),
            number,
        })
    }

    /// The latest revision whose template is not that of the spec: the spec may be newer than all revisions.
    pub(super) fn previous(&self) -> Result<&Revision, Error> {
        let mut revisions = self.revisions.iter().rev();
        let found = revisions.find(|revision| revision.template != self.spec);
        found.ok_or_else(|| Error::NothingToUndo(self.name.clone()))
    }

    /// The template of revision `from`, or of the current revision, and that of revision `to`, or of the spec.
    pub fn compared(&self, from: Option<i64>, to: Option<i64>) -> Result<[Template<'_>; 2], Error> {
        let from = match from {
            Some(number) => self.find(number)?,
            None => self.current()?,
        };
        let to = to.map(|number| self.find(number)).transpose()?;
        Ok([Some(from), to].map(|of| Template {
            of,
            template: of.map_or(&self.spec, |revision| &revision.template),
        }))
    }

    fn current(&self) -> Result<&Revision, Error> {
        let mut revisions = self.revisions.iter();
        let found = revisions.find(|revision| Some(&revision.name) == self.current.as_ref());
        found.ok_or_else(|| Error::NoRecordedRevision {
            deployment: self.name.clone(),
            field: "status.currentRevision",
        })
    }
}

impl Revision {
    fn of(found: ControllerRevision, deployment: &FederatedDeployment) -> Self {
        let name = found.name_any();
        let status = deployment.status.iter();
        let clusters = status.flat_map(|status| &status.clusters);
        let with_it = clusters.filter(|cluster| cluster.revision.as_ref() == Some(&name));
        let mut annotations = found.metadata.annotations.unwrap_or_default();
        let data = found.data.map(|data| data.0).unwrap_or_default();
        Self {
            revision: found.revision,
            clusters: with_it.map(|cluster| cluster.name.clone()).collect(),
            change_cause: annotations.remove(annotations::CHANGE_CAUSE),
            template: data.pointer("/spec/template").cloned().unwrap_or_default(),
            name,
        }
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
