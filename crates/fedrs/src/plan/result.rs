//! A case with its layout, as the command prints it.

use std::fmt;

use federated_scheduler::{Layout, Share};
use fedrs_api::pluralize;
use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::case::Case;

/// A case with the layout that the scheduler computes. Serializes as `{name, layout: {cluster: n}, unplaced, reasons: {cluster: [sentence]}}`,
/// clusters in the order of the case.
pub(super) struct CaseResult<'a> {
    pub(super) case: &'a Case,
    pub(super) layout: Layout,
}

impl<'a> CaseResult<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        Self {
            case,
            layout: case.plan(),
        }
    }

    /// The clusters and their shares, in the order of the case.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&'a str, &Share)> {
        self.case
            .clusters
            .iter()
            .map(String::as_str)
            .zip(&self.layout.shares)
    }
}

impl Serialize for CaseResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut result = serializer.serialize_struct("CaseResult", 4)?;
        result.serialize_field("name", &self.case.name)?;
        result.serialize_field("layout", &ByCluster(self, |share: &Share| share.replicas))?;
        result.serialize_field("unplaced", &self.layout.unplaced)?;
        let sentences = |share: &Share| {
            share
                .reasons
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        result.serialize_field("reasons", &ByCluster(self, sentences))?;
        result.end()
    }
}

/// Serializes as a map from each cluster to a value that a function derives from its share.
struct ByCluster<'a, F>(&'a CaseResult<'a>, F);

impl<T: Serialize, F: Fn(&Share) -> T> Serialize for ByCluster<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .shares()
                .map(|(cluster, share)| (cluster, (self.1)(share))),
        )
    }
}

/// The question in one line: `web: 50 replicas across 3 clusters, with rebalancing`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        let replicas = pluralize(self.replicas, "replica");
        let clusters = pluralize(self.clusters.len(), "cluster");
        write!(f, "{replicas} across {clusters}")?;
        f.write_str(if self.placement.rebalance {
            ", with rebalancing"
        } else {
            ", without rebalancing"
        })
    }
}
