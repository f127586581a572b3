//! Valid Maintenances.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    FieldError,
    dns::is_label,
    field::Errors,
    maintenance::{DEADLINE_TOO_EARLY, DURATION_SECONDS_MAX, MaintenanceSpec},
    selector,
};

/// A valid Maintenance.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidMaintenance {
    /// The clusters, in the order of the spec; `None` for all.
    pub clusters: Option<Vec<String>>,
    /// Selects nodes; an empty one selects all.
    pub node_selector: LabelSelector,
    /// When it begins; `None` for at once.
    pub start_time: Option<Timestamp>,
    /// For how long the machines are away (M9).
    pub duration: Option<Duration>,
    /// When pods leave whatever holds them up (M15).
    pub deadline: Option<Timestamp>,
}

impl ValidMaintenance {
    /// Validates all fields.
    ///
    /// # Errors
    /// Every error at its field.
    pub fn check(spec: &MaintenanceSpec) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        check_clusters(spec, &mut errors);
        let is_empty = selector::normalized(&spec.node_selector) == LabelSelector::default();
        if !is_empty && let Err(invalid) = selector::check(&spec.node_selector, "spec.nodeSelector")
        {
            errors.extend(invalid);
        }
        errors.require(
            !is_empty || spec.clusters.is_some(),
            "spec.nodeSelector",
            "must not be empty without clusters: it would select all nodes of all clusters",
        );
        let duration = spec.duration_seconds.map(|seconds| {
            let is_valid = (1..=DURATION_SECONDS_MAX).contains(&seconds);
            if !is_valid {
                let message = format!("must be 1 to {DURATION_SECONDS_MAX}, but is {seconds}");
                errors.add("spec.durationSeconds", message);
            }
            Duration::from_secs(seconds.try_into().unwrap_or_default())
        });
        let start_time = spec.start_time.as_ref().map(|time| time.0);
        let deadline = spec.deadline.as_ref().map(|time| time.0);
        let is_late_enough = start_time
            .zip(deadline)
            .is_none_or(|(start, end)| start < end);
        errors.require(is_late_enough, "spec.deadline", DEADLINE_TOO_EARLY);
        errors.or(Self {
            clusters: spec.clusters.clone(),
            node_selector: spec.node_selector.clone(),
            start_time,
            duration,
            deadline,
        })
    }
}

fn check_clusters(spec: &MaintenanceSpec, errors: &mut Errors) {
    const FIELD: &str = "spec.clusters";
    let Some(clusters) = &spec.clusters else {
        return;
    };
    errors.require(!clusters.is_empty(), FIELD, "must not be empty");
    let mut known = BTreeSet::new();
    for (index, name) in clusters.iter().enumerate() {
        let field = format!("{FIELD}[{index}]");
        errors.require(is_label(name), &field, "is not a valid name of a cluster");
        errors.require(known.insert(name), &field, "is a duplicate");
    }
}
