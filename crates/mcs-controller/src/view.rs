//! All that is known of one Service, in all members: the input of a decision.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    export::{Export, Exporter, Service},
    import::Import,
    key::ServiceKey,
    slice::Slice,
};

/// One Service in all members.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) key: ServiceKey,
    /// By name. `None`: what the member has is not known.
    pub(crate) members: BTreeMap<Arc<str>, Option<MemberView>>,
}

/// One Service in a member that has been listed. If the member can't be reached any more, this is how it was last seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberView {
    /// Whether it is a member still. One whose kubeconfig was removed stays as it is.
    pub(crate) is_member: bool,
    /// Whether the namespace exists, and is not being deleted.
    pub(crate) has_namespace: bool,
    pub(crate) export: Option<Arc<Export>>,
    pub(crate) service: Option<Arc<Service>>,
    /// The EndpointSlices of its own Service.
    pub(crate) slices: Vec<Arc<Slice>>,
    pub(crate) import: Option<Arc<Import>>,
    /// The EndpointSlices that the controller imported, by name.
    pub(crate) imported: BTreeMap<String, Arc<Slice>>,
}

impl MemberView {
    /// Its ServiceImport, if the controller made it.
    pub(crate) fn own_import(&self) -> Option<&Arc<Import>> {
        self.import.as_ref().filter(|import| import.is_ours())
    }

    /// The members from which it has imported, as far as its objects say.
    fn recorded_sources(&self) -> impl Iterator<Item = &str> {
        let slices = self.imported.values().filter_map(|slice| slice.source());
        let import = self.own_import().into_iter();
        let clusters = import.flat_map(|import| &import.status.clusters);
        slices.chain(clusters.map(|status| &*status.cluster))
    }

    /// Why its export, if it has one, is not valid.
    pub(crate) fn invalid(&self) -> Option<Invalid> {
        match &self.service {
            None => Some(Invalid::NoService),
            Some(service) if service.is_external_name() => Some(Invalid::ServiceType),
            Some(_) => None,
        }
    }
}

/// Why an export is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    NoService,
    /// It is of the type ExternalName.
    ServiceType,
}

impl View {
    /// The members that are known, by name.
    pub(crate) fn known(&self) -> impl Iterator<Item = (&Arc<str>, &MemberView)> {
        let members = self.members.iter();
        members.filter_map(|(name, member)| Some((name, member.as_ref()?)))
    }

    /// The members that import: those in which the namespace exists.
    pub(crate) fn importing(&self) -> impl Iterator<Item = (&Arc<str>, &MemberView)> {
        self.known()
            .filter(|(_, member)| member.is_member && member.has_namespace)
    }

    /// The valid exports, in the order of precedence.
    pub(crate) fn exporters(&self) -> Vec<Exporter> {
        let exporters = self.known().filter_map(|(cluster, member)| {
            let export = member.export.as_ref()?;
            let service = member.service.as_ref()?;
            (!export.metadata.is_deleted && member.invalid().is_none()).then(|| Exporter {
                cluster: Arc::clone(cluster),
                export: Arc::clone(export),
                service: Arc::clone(service),
            })
        });
        let mut exporters: Vec<_> = exporters.collect();
        exporters.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
        exporters
    }

    /// Of the members from which `member` has imported, those of which is not known what they export.
    pub(crate) fn unknown_sources<'a>(&self, member: &'a MemberView) -> BTreeSet<&'a str> {
        let is_unknown = |source: &&str| !matches!(self.members.get(*source), Some(Some(_)));
        member.recorded_sources().filter(is_unknown).collect()
    }

    /// The ServiceImport that was decided when a member was known that is not known now.
    pub(crate) fn recorded(&self) -> Option<&Arc<Import>> {
        let mut members = self.known();
        members.find_map(|(_, member)| {
            let import = member.own_import()?;
            (!self.unknown_sources(member).is_empty()).then_some(import)
        })
    }
}
