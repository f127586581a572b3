//! What a Maintenance asks for now, and what has to be read of which members for it.

use std::collections::{BTreeMap, BTreeSet};

use controller_base::field_errors;
use fedrs_api::{Maintenance, MaintenanceReason, ValidMaintenance};
use jiff::Timestamp;

/// What a Maintenance asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Goal {
    /// No marks: it begins at this time.
    Scheduled(ValidMaintenance, Timestamp),
    /// Nodes that match are marked.
    Active(ValidMaintenance),
    /// No marks: the work is over.
    Over,
    /// Nothing is changed: the spec can't be carried out.
    NotAccepted,
}

/// Why a spec can't be carried out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rejection {
    pub(crate) reason: MaintenanceReason,
    pub(crate) message: String,
}

/// What is read of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Whether nodes that match are listed.
    pub(crate) matching: bool,
    /// Whether nodes that are marked are listed: those with the label, and those that are cordoned.
    pub(crate) marked: bool,
    /// Whether the pods on nodes that match are listed.
    pub(crate) pods: bool,
}

/// Whether the spec can be carried out with these members.
pub(crate) fn acceptance(
    maintenance: &Maintenance,
    members: &BTreeSet<String>,
) -> Result<ValidMaintenance, Rejection> {
    let valid = ValidMaintenance::check(&maintenance.spec).map_err(|errors| Rejection {
        reason: MaintenanceReason::InvalidSpec,
        message: field_errors::message(&errors),
    })?;
    for (index, name) in valid.clusters.iter().flatten().enumerate() {
        if !members.contains(name) {
            return Err(Rejection {
                reason: MaintenanceReason::UnknownCluster,
                message: format!("spec.clusters[{index}]: there is no member {name}"),
            });
        }
    }
    Ok(valid)
}

impl Goal {
    /// The goal at `now`.
    pub(crate) fn of(
        maintenance: &Maintenance,
        members: &BTreeSet<String>,
        now: Timestamp,
    ) -> Self {
        if maintenance.spec.ended || is_deleted(maintenance) {
            return Self::Over;
        }
        let Ok(valid) = acceptance(maintenance, members) else {
            return Self::NotAccepted;
        };
        let started = maintenance
            .status
            .as_ref()
            .and_then(|status| status.started.as_ref());
        match valid.start_time {
            // What has begun does not end because a clock goes back.
            Some(start) if now < start && started.is_none_or(|started| started.0 < start) => {
                Self::Scheduled(valid, start)
            }
            _ => Self::Active(valid),
        }
    }

    /// The valid spec, if nodes are looked for.
    pub(crate) fn valid(&self) -> Option<&ValidMaintenance> {
        match self {
            Self::Scheduled(valid, _) | Self::Active(valid) => Some(valid),
            Self::Over | Self::NotAccepted => None,
        }
    }

    /// The clusters whose nodes may match.
    pub(crate) fn targets(&self, members: &BTreeSet<String>) -> BTreeSet<String> {
        match self.valid().map(|valid| &valid.clusters) {
            Some(Some(clusters)) => clusters.iter().cloned().collect(),
            Some(None) => members.clone(),
            None => BTreeSet::new(),
        }
    }

    /// What is read of which members. All clusters that may have marks are in the status.
    pub(crate) fn scopes(
        &self,
        maintenance: &Maintenance,
        members: &BTreeSet<String>,
    ) -> BTreeMap<String, Scope> {
        let mut scopes = BTreeMap::<_, Scope>::new();
        for name in self.targets(members) {
            let scope = scopes.entry(name).or_default();
            scope.matching = true;
            scope.pods = matches!(self, Self::Active(_));
        }
        if *self == Self::NotAccepted {
            return scopes;
        }
        let has_selector = ValidMaintenance::check(&maintenance.spec).is_ok();
        let status = maintenance.status.iter();
        for cluster in status.flat_map(|status| &status.clusters) {
            if members.contains(&cluster.name) {
                let scope = scopes.entry(cluster.name.clone()).or_default();
                scope.marked = true;
                // A mark without its label and its cordon is found by the selector alone.
                scope.matching |= has_selector;
            }
        }
        scopes
    }
}

/// Whether the object is deleted, and waits for its finalizers.
pub(crate) fn is_deleted(maintenance: &Maintenance) -> bool {
    maintenance.metadata.deletion_timestamp.is_some()
}
