//! The input of a forecast.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{FederatedReplicaSetStatus, MemberCluster, ValidFrs};
use jiff::Timestamp;

use crate::config::Config;

/// What changes about the members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// Members whose replicas are rescheduled, because they are unreachable for longer than their grace period.
    pub lost: BTreeSet<String>,
    /// Members that get no new replicas.
    pub cordoned: BTreeSet<String>,
    /// Members that all replicas leave.
    pub drained: BTreeSet<String>,
}

/// A set, the members, and what changes about the members.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The desired state of the set.
    pub frs: &'a ValidFrs,
    /// The status that the controller last published.
    pub status: &'a FederatedReplicaSetStatus,
    /// Whether the template is another one than the members have.
    pub new_template: bool,
    /// All members of the host.
    pub members: &'a [MemberCluster],
    /// The labels of the set's namespace on the host, if they could be read.
    pub namespace_labels: Option<&'a BTreeMap<String, String>>,
    /// What changes about the members.
    pub what_if: &'a WhatIf,
    /// The controller's configuration.
    pub settings: &'a Config,
    /// The present time.
    pub now: Timestamp,
}
