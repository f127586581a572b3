//! What is published on the host: all that a new leader needs to go on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::strategy::Strategy;

/// The rollout as it is recorded on the host. Publish it with a precondition, so that of two leaders one fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// The revision that the fields below, apart from the loans, are about.
    pub revision: String,
    /// The names of the steps that have begun, in their order; the implied last one's is empty.
    pub begun: Vec<String>,
    /// Since when the last step that has begun is complete, while it soaks.
    pub soaking_since: Option<Timestamp>,
    /// When a loan last made progress; `None` while no loan is out, or the rollout is paused.
    pub progressed: Option<Timestamp>,
    /// Whether the progress deadline was exceeded. Stays until another revision is the target.
    pub failed: bool,
    /// Loans by member.
    pub loans: BTreeMap<String, Loan>,
    /// Parts of the speed that count for a while after they were given back (L15). Expired ones are removed with the next
    /// change.
    pub returned: Vec<Returned>,
}

/// A part of the budget that one member may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Loan {
    /// The most that the member's strategy may be.
    pub strategy: Strategy,
    /// The part of `strategy.unavailable` that is beyond the budget, because as many pods had no node when it was lent; for evictions,
    /// because as many were not available.
    pub beyond: u64,
    /// The revision whose template is to be written with it.
    pub revision: String,
    /// The one generation of the member's Deployment at which it may be written. Once the Deployment has a later one, no write
    /// under this record can be carried out any more.
    pub generation: i64,
    /// The most available pods of `revision` that the member has shown.
    pub available: u64,
    /// Pods of the previous loan of this member, which count for the speed until they are seen to be replaced (L15).
    pub replaced: u64,
    /// The member was lost with it: it has to be recalled when the member returns.
    pub lost: bool,
    /// Recorded before the Deployment is paused with the rollout. A pause that is not recorded is another writer's, and is undone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// It is for evictions in a LocalReplicaSet, and no template is written with it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub evicts: bool,
}

/// A part of the speed that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Returned {
    /// Pods.
    pub pods: u64,
    /// When.
    pub at: Timestamp,
}

impl Loan {
    /// Whether both lend the same, whatever progress was seen.
    fn is_like(&self, other: &Self) -> bool {
        let Self {
            strategy,
            beyond,
            revision,
            generation,
            available: _,
            replaced,
            lost,
            paused,
            evicts,
        } = self;
        *strategy == other.strategy
            && *beyond == other.beyond
            && *revision == other.revision
            && *generation == other.generation
            && *replaced == other.replaced
            && *lost == other.lost
            && *paused == other.paused
            && *evicts == other.evicts
    }
}

impl State {
    /// Whether all that is lent here is lent in `recorded`, in the same step: whoever continues from that one lends nothing twice.
    /// So this state need not be recorded at once. It may lack loans that have ended, and have seen more progress.
    #[must_use]
    pub fn is_covered_by(&self, recorded: &Self) -> bool {
        let Self {
            revision,
            begun,
            soaking_since,
            failed,
            loans,
            progressed: _,
            returned: _,
        } = self;
        let is_recorded = |(name, loan): (&String, &Loan)| {
            let recorded = recorded.loans.get(name);
            recorded.is_some_and(|recorded| loan.is_like(recorded))
        };
        *revision == recorded.revision
            && *begun == recorded.begun
            && *soaking_since == recorded.soaking_since
            && *failed == recorded.failed
            && loans.iter().all(is_recorded)
    }

    /// The state at the start of a rollout of `target`: if that is another revision, only what was lent stays.
    pub(crate) fn for_revision(&self, target: &str) -> Self {
        if self.revision == target {
            return self.clone();
        }
        Self {
            revision: target.to_owned(),
            loans: self.loans.clone(),
            returned: self.returned.clone(),
            ..Self::default()
        }
    }
}
