//! What is kept of the pod template of a local workload.

use fedrs_api::{annotations, labels};
use serde_json::Value;

use crate::{metadata::FedrsLabels, spec_hash::spec_hash};

/// The values that a template of a member may have: a large one has some thousands.
pub(crate) const MAX_VALUES: usize = 100_000;

/// A template, without the template: it takes a multiple of its bytes in memory, so that that of one object of a page is kept at
/// a time.
#[derive(Debug)]
pub(crate) struct PodTemplate {
    /// The [`spec_hash`] with the rest of the spec that was given.
    pub(crate) hash: u64,
    /// The hash of the user's template that an annotation names; 0 without one.
    pub(crate) written_hash: u32,
    /// The federation that its labels name, if they also name a federated set.
    federation: Option<Box<str>>,
}

impl PodTemplate {
    pub(crate) fn new(template: &Value, min_ready_seconds: i32, selector: &Value) -> Self {
        let found = &template["metadata"]["labels"];
        let federation = found[labels::FEDERATION].as_str();
        let federation = federation.filter(|_| found[labels::REPLICA_SET].is_string());
        let written = template["metadata"]["annotations"][annotations::TEMPLATE_HASH].as_str();
        let written = written.and_then(|hash| u32::from_str_radix(hash, 16).ok());
        Self {
            written_hash: written.unwrap_or_default(),
            hash: spec_hash(template, min_ready_seconds, selector),
            federation: federation.map(Into::into),
        }
    }

    /// Whether its pods have the federation's label of their workload, which has these labels: the watch of the pods shows them.
    pub(crate) fn is_labeled_as(&self, workload: &FedrsLabels) -> bool {
        self.federation.is_some() && self.federation == workload.federation
    }
}
