//! The layout of a case, as it is printed.

use std::fmt;

use federated_scheduler::{Layout, Share};
use fedrs_api::pluralize;
use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::case::Case;

/// A case with its layout. Serializes as `{name, layout: {cluster: n}, unplaced, reasons: {cluster: [sentence]}}`,
/// clusters in the order of the case.
pub(super) struct Answer<'a> {
    pub(super) case: &'a Case,
    pub(super) layout: Layout,
}

impl<'a> Answer<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        Self {
            case,
            layout: case.plan(),
        }
    }

    /// The clusters with their shares.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&'a str, &Share)> {
        self.case
            .clusters
            .iter()
            .map(String::as_str)
            .zip(&self.layout.shares)
    }
}

impl Serialize for Answer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut answer = serializer.serialize_struct("Answer", 4)?;
        answer.serialize_field("name", &self.case.name)?;
        answer.serialize_field("layout", &ByCluster(self, |share: &Share| share.replicas))?;
        answer.serialize_field("unplaced", &self.layout.unplaced)?;
        let sentences = |share: &Share| {
            share
                .reasons
                .iter()
                .map(|reason| reason.to_string())
                .collect::<Vec<_>>()
        };
        answer.serialize_field("reasons", &ByCluster(self, sentences))?;
        answer.end()
    }
}

/// A map from each cluster to what a function makes of its share.
struct ByCluster<'a, F>(&'a Answer<'a>, F);

impl<T: Serialize, F: Fn(&Share) -> T> Serialize for ByCluster<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .shares()
                .map(|(cluster, share)| (cluster, (self.1)(share))),
        )
    }
}

/// What a case asks, in one line: `web: 50 replicas over 3 clusters, rebalancing`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        let replicas = pluralize(self.replicas, "replica");
        let clusters = pluralize(self.clusters.len(), "cluster");
        write!(f, "{replicas} over {clusters}")?;
        f.write_str(if self.placement.rebalance {
            ", rebalancing"
        } else {
            ", keeping what is present"
        })
    }
}
