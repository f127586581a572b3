//! What each member should have of a Service.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    conditions::{self, Reported},
    export::Exporter,
    import::{ClusterStatus, DesiredImport},
    resolve::{Resolved, resolve},
    slice::{DesiredSlice, imported_name},
    view::{MemberView, View},
};

/// What one member should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The conditions of its export, if it has one.
    pub(crate) conditions: Vec<Reported>,
    /// What it imports. `None`: it stays as it is.
    pub(crate) imports: Option<Imports>,
}

/// What a member should have imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Imports {
    /// The ServiceImport; `None` if nobody exports the Service.
    pub(crate) import: Option<DesiredImport>,
    /// The EndpointSlices, by name.
    pub(crate) slices: BTreeMap<String, DesiredSlice>,
    /// The members whose EndpointSlices stay as they are: what these export is not known.
    pub(crate) kept_sources: BTreeSet<String>,
}

/// Decides what each member should have; members that are not known, or are none any more, are left out.
pub(crate) fn decide(view: &View) -> BTreeMap<Arc<str>, Decision> {
    let exporters = view.exporters();
    let recorded = view.recorded();
    let resolved = resolve(&exporters, recorded.map(|import| &**import));
    let slices = slices(view, &exporters);
    let members = view.known().filter(|(_, member)| member.is_member);
    let decisions = members.map(|(name, member)| {
        let has_export = member
            .export
            .as_ref()
            .is_some_and(|export| !export.metadata.is_deleted);
        let conditions = has_export
            .then(|| conditions::of_export(view, member, &exporters, &resolved.conflicts));
        let is_foreign = member.import.is_some() && member.own_import().is_none();
        let writes = member.has_namespace && !is_foreign;
        let decision = Decision {
            conditions: conditions.unwrap_or_default(),
            imports: writes.then(|| imports(view, member, &exporters, &resolved, &slices)),
        };
        (Arc::clone(name), decision)
    });
    decisions.collect()
}

/// The EndpointSlices that all members import, by name.
fn slices(view: &View, exporters: &[Exporter]) -> BTreeMap<String, DesiredSlice> {
    let exporters = exporters.iter().filter_map(|exporter| {
        let member = view.members.get(&exporter.cluster)?.as_ref()?;
        Some((&exporter.cluster, member))
    });
    let slices = exporters.flat_map(|(source, member)| {
        member.slices.iter().map(|slice| {
            let desired = DesiredSlice {
                source: Arc::clone(source),
                content: slice.content.clone(),
            };
            (imported_name(&view.key, source, slice), desired)
        })
    });
    slices.collect()
}

/// What `member` should have imported.
fn imports(
    view: &View,
    member: &MemberView,
    exporters: &[Exporter],
    resolved: &Resolved,
    slices: &BTreeMap<String, DesiredSlice>,
) -> Imports {
    let kept_sources = view.unknown_sources(member);
    let sources = exporters.iter().map(|exporter| &*exporter.cluster);
    let sources: BTreeSet<&str> = sources.chain(kept_sources.iter().copied()).collect();
    let clusters = sources.into_iter().map(|cluster| ClusterStatus {
        cluster: cluster.to_owned(),
    });
    let clusters: Vec<_> = clusters.collect();
    let import = (!clusters.is_empty()).then(|| DesiredImport {
        spec: resolved.spec.clone(),
        exported: resolved.exported.clone(),
        clusters,
    });
    Imports {
        import,
        slices: slices.clone(),
        kept_sources: kept_sources.into_iter().map(str::to_owned).collect(),
    }
}
