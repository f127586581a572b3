//! What snapshots on disk have of the state: what is needed to answer after a restart.

use std::sync::Arc;

use fedrs_api::{EndpointSetSpec, ObjectKey};
use jiff::Timestamp;

use crate::{
    pod::{Pod, Shared},
    services::KeptServices,
    set::SetKey,
    source::Source,
};

/// What the snapshots of a replica have. By default nothing.
#[derive(Debug, Default)]
pub struct LoadedSnapshots {
    pub(crate) host: Option<KeptHost>,
    pub(crate) members: Vec<KeptMember>,
    /// What the pods of all members have in common.
    pub(crate) shared: Shared,
    /// The latest version that was published.
    pub(crate) version: u64,
}

impl LoadedSnapshots {
    /// Takes the snapshot of the host, which was written with this version.
    pub(crate) fn put_host(&mut self, (host, version): (KeptHost, u64)) {
        self.host = Some(host);
        self.version = self.version.max(version);
    }

    /// Takes the snapshot of a member, which was written with this version.
    pub(crate) fn put_member(&mut self, (member, version): (KeptMember, u64)) {
        self.members.push(member);
        self.version = self.version.max(version);
    }
}

/// What is known of the host. Cheap to copy from the state.
#[derive(Debug)]
pub(crate) struct KeptHost {
    pub(crate) mark: Mark,
    pub(crate) sets: Vec<(SetKey, Arc<EndpointSetSpec>)>,
    /// Federated sets.
    pub(crate) sources: Vec<(ObjectKey, Arc<Source>)>,
    /// The names of all members; `None` if an earlier version has written the snapshot.
    pub(crate) members: Option<Vec<Arc<str>>>,
}

/// What is known of a member. Cheap to copy from the state: its pods are shared.
#[derive(Debug)]
pub(crate) struct KeptMember {
    pub(crate) name: Arc<str>,
    pub(crate) mark: Mark,
    /// By namespace, in the order of their names.
    pub(crate) pods: KeptPods,
    /// `None` if they are not known.
    pub(crate) services: Option<KeptServices>,
}

/// Pods by namespace.
pub(crate) type KeptPods = Vec<(Arc<str>, Vec<Arc<Pod>>)>;

/// What distinguishes what is known at one time from what is known later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Grows with each change, from 0 at the start.
    pub(crate) revision: u64,
    /// When it was last known to be current.
    pub(crate) current_at: Timestamp,
}
