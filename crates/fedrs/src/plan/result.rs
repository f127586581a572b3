//! A case with its layout, as the command prints it.

use std::fmt;

use federated_scheduler::{Layout, Share};
use fedrs_api::pluralize;
use indexmap::IndexMap;
use serde::Serialize;

use super::case::Case;

/// A case with the layout that the scheduler computes, clusters in the order of the case.
pub(super) struct CaseResult<'a> {
    pub(super) case: &'a Case,
    pub(super) layout: Layout,
}

/// A result for programs.
#[derive(Serialize)]
pub(super) struct Output<'a> {
    name: Option<&'a str>,
    layout: IndexMap<&'a str, u64>,
    unplaced: u64,
    reasons: IndexMap<&'a str, Vec<String>>,
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
        let names = self.case.clusters.iter().map(String::as_str);
        names.zip(&self.layout.shares)
    }

    /// The result for programs.
    pub(super) fn output(&self) -> Output<'a> {
        let sentences = |share: &Share| share.reasons.iter().map(ToString::to_string).collect();
        let replicas = self.shares().map(|(name, share)| (name, share.replicas));
        let reasons = self.shares().map(|(name, share)| (name, sentences(share)));
        Output {
            name: self.case.name.as_deref(),
            layout: replicas.collect(),
            unplaced: self.layout.unplaced,
            reasons: reasons.collect(),
        }
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
