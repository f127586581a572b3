//! Valid AvailabilitySets.

use federated_rollout::Amount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    FieldError,
    availability_set::{AvailabilitySetSpec, DomainLabels, NO_BUDGET},
    deployment_strategy::part_of_pods,
    dns::is_label_key,
    field::Errors,
    selector,
};

/// A valid AvailabilitySet.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidAvailabilitySet {
    /// Selects pods; not empty.
    pub selector: LabelSelector,
    /// The pods that may be unreachable; not 0.
    pub budget: Amount,
    /// The keys of the labels of nodes.
    pub domain_labels: DomainLabels,
    /// Whether at most one cluster has loans at a time (M16).
    pub is_one_cluster_at_a_time: bool,
}

impl ValidAvailabilitySet {
    /// Validates all fields.
    ///
    /// # Errors
    /// Every error at its field.
    pub fn check(spec: &AvailabilitySetSpec) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        if let Err(invalid) = selector::check(&spec.selector, "spec.selector") {
            errors.extend(invalid);
        }
        let budget = part_of_pods(&spec.budget, "spec.budget", &mut errors);
        let is_some = !matches!(budget, Amount::Number(0) | Amount::Percent(0));
        errors.require(is_some, "spec.budget", NO_BUDGET);
        let DomainLabels { rack, zone } = &spec.domain_labels;
        for (field, key) in [("rack", rack), ("zone", zone)] {
            let field = format!("spec.domainLabels.{field}");
            errors.require(is_label_key(key), &field, "is not a valid label key");
        }
        errors.or(Self {
            selector: spec.selector.clone(),
            budget,
            domain_labels: spec.domain_labels.clone(),
            is_one_cluster_at_a_time: spec.one_cluster_at_a_time,
        })
    }
}
