//! Which ControllerRevisions of a set are created, changed and deleted. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{owner::Owner, stored::Revision};

/// The revision that a set should have as its latest.
pub struct Wanted<'a> {
    /// The set.
    pub owner: Owner<'a>,
    /// The data of the revision: what of the set changes with it.
    pub data: &'a Value,
    /// The name of the revision: [`fedrs_api::revision_name`] of the set and its template.
    pub name: &'a str,
    /// Why the template changed, if the set says so.
    pub change_cause: Option<&'a str>,
    /// The names of revisions that are never deleted: the current one, and those of members.
    pub in_use: &'a BTreeSet<String>,
    /// `spec.revisionHistoryLimit`: how many revisions that are not in use are kept.
    pub limit: u32,
}

/// The revision has the name of the wanted one, but not its owner.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("ControllerRevision {namespace}/{name} belongs to {owner}")]
pub(super) struct ForeignRevision {
    namespace: String,
    name: String,
    owner: String,
}

/// One write.
#[derive(Debug)]
pub(super) enum Write<'a> {
    /// Creates the wanted revision.
    Create { number: i64 },
    /// Changes a revision.
    Update {
        of: &'a Revision,
        update: Update<'a>,
    },
    /// Deletes a revision.
    Delete(&'a Revision),
}

/// What changes of a revision.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Update<'a> {
    pub(super) number: Option<i64>,
    pub(super) change_cause: Option<&'a str>,
    /// Whether it gets the label and the owner of the set: somebody removed them, or the set was deleted without its
    /// dependents and created again.
    pub(super) is_adoption: bool,
}

/// The writes after which the wanted revision exists and has the highest number, and no more than the limit are unused. Those
/// of other owners stay, and don't count.
pub(super) fn plan<'a>(
    existing: &'a [Revision],
    wanted: &Wanted<'a>,
) -> Result<Vec<Write<'a>>, ForeignRevision> {
    let uid = wanted.owner.uid;
    let (mut ours, foreign): (Vec<_>, Vec<_>) = existing
        .iter()
        .partition(|revision| revision.foreign_owner(uid).is_none());
    if let Some(taken) = foreign.iter().find(|revision| revision.is(wanted.name)) {
        return Err(ForeignRevision {
            namespace: wanted.owner.namespace.to_owned(),
            name: wanted.name.to_owned(),
            owner: taken.foreign_owner(uid).unwrap_or_default(),
        });
    }
    // The oldest first.
    ours.sort_by_key(|revision| (revision.number, revision.name()));
    let highest = ours.last().map_or(0, |last| last.number);
    let next = highest.saturating_add(1);
    let exists = ours.iter().any(|revision| revision.is(wanted.name));
    let create = (!exists).then_some(Write::Create { number: next });
    let updates = ours.iter().filter_map(|of| {
        let update = update(of, &ours, wanted, next);
        (update != Update::default()).then_some(Write::Update { of, update })
    });
    let deletions = unused(&ours, wanted).into_iter().map(Write::Delete);
    Ok(create.into_iter().chain(updates).chain(deletions).collect())
}

fn update<'a>(of: &Revision, ours: &[&Revision], wanted: &Wanted<'a>, next: i64) -> Update<'a> {
    let is_adoption = of.controller().is_none() || !of.is_labeled(&wanted.owner);
    if !of.is(wanted.name) {
        return Update {
            is_adoption,
            ..Update::default()
        };
    }
    let is_highest = ours
        .iter()
        .all(|other| other.is(wanted.name) || other.number < of.number);
    let cause = wanted.change_cause;
    Update {
        number: (!is_highest).then_some(next),
        change_cause: cause.filter(|cause| of.change_cause() != Some(cause)),
        is_adoption,
    }
}

/// The oldest revisions beyond the limit that nobody uses.
fn unused<'a>(ours: &[&'a Revision], wanted: &Wanted<'_>) -> Vec<&'a Revision> {
    let is_used = |name: &str| name == wanted.name || wanted.in_use.contains(name);
    let unused = ours.iter().filter(|revision| !is_used(revision.name()));
    let mut unused: Vec<_> = unused.copied().collect();
    let kept = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    unused.truncate(unused.len().saturating_sub(kept));
    unused
}
