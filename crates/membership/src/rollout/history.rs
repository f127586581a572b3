//! The revisions of an object, and who has them.

use fedrs_api::annotations;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{Api, ResourceExt, api::ListParams};
use serde::Serialize;
use serde_json::Value;

use super::{
    error::Error,
    kind::{RolloutKind, Users},
    target::Target,
};

/// The field of the spec that all revisions keep.
const TEMPLATE: &str = "template";

/// An object with its revisions.
#[derive(Clone, Debug)]
pub struct History<K> {
    /// `federateddeployment shop/web`.
    name: String,
    /// The object.
    pub object: K,
    /// The fields of the spec that a revision keeps.
    spec: Value,
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
    /// Who has it.
    #[serde(flatten)]
    pub users: Users,
    /// The template of the pods: `metadata` and `spec`.
    pub template: Value,
    /// All that the ControllerRevision has.
    #[serde(skip)]
    pub data: Value,
}

/// A template, and where it is from: `revision 3 (web-0a1b2c3d)` or `spec.template`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Template<'a> {
    /// The revision; `None` for the spec.
    pub of: Option<&'a Revision>,
    /// The template.
    pub template: &'a Value,
}

/// Reads the revisions of the object.
pub async fn history<K: RolloutKind>(target: Target<'_, K>) -> Result<History<K>, Error> {
    let object = target.read().await?;
    let revisions: Api<ControllerRevision> =
        Api::namespaced(target.cluster.client(), target.namespace);
    let label = format!("{}={}", K::REVISION_LABEL, target.name);
    let selected = ListParams::default().labels(&label);
    let operation = format!("list controllerrevisions in namespace {}", target.namespace);
    let list = target.cluster.call(operation, revisions.list(&selected));
    Ok(History::of(target.to_string(), object, list.await?.items))
}

impl<K: RolloutKind> History<K> {
    fn of(name: String, object: K, found: Vec<ControllerRevision>) -> Self {
        let uid = object.uid().unwrap_or_default();
        let own = found.into_iter().filter(|found| {
            let mut owners = found.owner_references().iter();
            owners.any(|owner| owner.controller == Some(true) && owner.uid == uid)
        });
        let mut revisions: Vec<_> = own.map(|found| Revision::of(found, &object)).collect();
        revisions.sort_by(|a, b| (a.revision, &a.name).cmp(&(b.revision, &b.name)));
        Self {
            name,
            spec: object.revision_fields(),
            object,
            revisions,
        }
    }

    /// The revision of this number.
    pub fn find(&self, number: i64) -> Result<&Revision, Error> {
        let mut revisions = self.revisions.iter();
        let found = revisions.find(|revision| revision.revision == number);
        found.ok_or_else(|| Error::NoRevision {
            object: self.name.clone(),
            number,
            command: K::COMMAND,
        })
    }

    /// The latest revision whose template is not that of the spec: the spec may be newer than all revisions.
    pub(super) fn previous(&self) -> Result<&Revision, Error> {
        let mut revisions = self.revisions.iter().rev();
        let found =
            revisions.find(|revision| revision.different_fields(&self.spec).next().is_some());
        found.ok_or_else(|| Error::NothingToUndo {
            object: self.name.clone(),
            command: K::COMMAND,
        })
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
            template: of.map_or(&self.spec[TEMPLATE], |revision| &revision.template),
        }))
    }

    fn current(&self) -> Result<&Revision, Error> {
        let mut revisions = self.revisions.iter();
        let current = self.object.observed().current_revision;
        let found = revisions.find(|revision| Some(&*revision.name) == current);
        found.ok_or_else(|| Error::NoRecordedRevision {
            object: self.name.clone(),
            field: "status.currentRevision",
        })
    }
}

impl Revision {
    fn of<K: RolloutKind>(found: ControllerRevision, object: &K) -> Self {
        let name = found.name_any();
        let mut annotations = found.metadata.annotations.unwrap_or_default();
        let data = found.data.map(|data| data.0).unwrap_or_default();
        Self {
            revision: found.revision,
            users: object.users(&name),
            change_cause: annotations.remove(annotations::CHANGE_CAUSE),
            template: data["spec"][TEMPLATE].clone(),
            data,
            name,
        }
    }

    /// The fields that the revision keeps with another value than `fields`, which has those of a spec.
    pub(super) fn different_fields<'a>(
        &'a self,
        fields: &'a Value,
    ) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let names = fields.as_object().into_iter().flatten();
        names.filter_map(|(name, value)| {
            let kept = self.data["spec"].get(name)?;
            (kept != value).then_some((&**name, kept))
        })
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
