//! The pods that one thing in a member limits, and what it may still grant. Pure.

use std::collections::BTreeMap;

use fedrs_api::{Loan, LoanKind};

use crate::{
    domains::number,
    loans::{Limit, Part},
    observed::{Node, Pod},
    own::{Own, Target},
};

/// A part, and what limits it.
#[derive(Clone, Debug)]
pub(crate) struct MemberPart<'a> {
    pub(crate) part: Part,
    /// `None` if nothing of ours does.
    pub(crate) target: Option<Target<'a>>,
    /// The number of the last write that may have been sent.
    pub(crate) revision: i64,
}

/// The pods of a part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pods {
    pub(crate) live: u64,
    reachable: u64,
    /// On nodes that have to be left.
    pub(crate) to_leave: u64,
    /// Those that do not count.
    pub(crate) disabled: u64,
}

impl Pods {
    pub(crate) fn of<'p>(
        pods: impl IntoIterator<Item = &'p Pod>,
        nodes: &BTreeMap<String, Node>,
    ) -> Self {
        let mut this = Self::default();
        for pod in pods.into_iter().filter(|pod| pod.is_live()) {
            if !pod.is_enabled() {
                this.disabled += 1;
                continue;
            }
            let is_reachable = pod.is_reachable(nodes);
            let leaves = nodes.get(pod.node()).is_some_and(Node::is_to_be_left);
            this.live += 1;
            this.reachable += u64::from(is_reachable);
            this.to_leave += u64::from(is_reachable && leaves);
        }
        this
    }

    /// The part with these pods, of which as many are `expected` to exist, if that is known. Beside these, pods that are not ready yet are
    /// those that a rollout or a migration makes before it removes others: nobody misses them.
    pub(crate) fn part(self, expected: u64) -> Part {
        let pods = match expected.saturating_sub(self.disabled) {
            0 => self.live,
            expected => expected.max(self.reachable),
        };
        Part {
            pods,
            unreachable: pods - self.reachable,
            exposure: pods,
            held: 0,
            repairs: 0,
            wanted: self.to_leave,
            limit: None,
        }
    }
}

/// The record of a loan.
pub(crate) fn recorded<'l>(loans: &'l [Loan], kind: LoanKind, name: &str) -> Option<&'l Loan> {
    let mut loans = loans.iter();
    loans.find(|loan| loan.kind == kind && loan.name == name)
}

/// What was written, in what state, and what of it is still to be counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) max_unavailable: u64,
    pub(crate) revision: i64,
    /// Whether nothing else has to be written.
    pub(crate) is_intact: bool,
    /// Whether the member has observed it, and what was granted before is seen.
    pub(crate) is_settled: bool,
    /// What the member grants at most if so.
    pub(crate) grants: u64,
}

impl Written {
    /// Whether it is the last write, as it was sent.
    fn is_last(&self, recorded: Option<&Loan>) -> bool {
        self.is_intact && recorded.is_none_or(|loan| self.revision >= loan.revision)
    }

    /// Whether the member keeps to the last write.
    pub(crate) fn holds(&self, recorded: Option<&Loan>) -> bool {
        self.is_last(recorded) && self.is_settled
    }

    /// How many pods may be unavailable by it.
    pub(crate) fn exposure(&self, recorded: Option<&Loan>) -> u64 {
        if self.holds(recorded) {
            self.grants
        } else {
            let lent = recorded.map_or(0, |loan| loan.max_unavailable.try_into().unwrap_or(0));
            self.grants.max(lent)
        }
    }
}

/// The limit and the exposure of a part with this record.
pub(crate) fn limited<'a>(
    part: Part,
    target: Target<'a>,
    written: Option<Written>,
    recorded: Option<&Loan>,
) -> MemberPart<'a> {
    let last = recorded.map_or(0, |loan| loan.revision);
    let exposure = written.map_or(part.pods, |written| written.exposure(recorded));
    let limit = Limit {
        max_unavailable: written.map(|written| written.max_unavailable),
        is_last: written.is_some_and(|written| written.is_last(recorded)),
    };
    MemberPart {
        part: Part {
            exposure: exposure.min(part.pods),
            limit: Some(limit),
            ..part
        },
        target: Some(target),
        revision: written.map_or(last, |written| written.revision.max(last)),
    }
}

/// What is to be recorded before `writes`, one for each part, are sent.
pub(crate) fn loans<'p>(
    parts: impl IntoIterator<Item = &'p MemberPart<'p>>,
    own: &Own<'_>,
    writes: &[Option<u64>],
) -> Vec<Loan> {
    let loan = |(of, write): (&MemberPart<'_>, &Option<u64>)| {
        let (kind, name) = match of.target? {
            Target::Budget(budget) => {
                let name = budget.map(|budget| budget.metadata.name.clone());
                let name = name.unwrap_or_else(|| own.budget_name());
                (LoanKind::PodDisruptionBudget, name)
            }
            Target::LocalSet(set) => (LoanKind::LocalReplicaSet, set.metadata.name.clone()),
            Target::Rollout(set) => (LoanKind::FederatedDeployment, set.metadata.name.clone()),
        };
        Some(Loan {
            kind,
            name,
            max_unavailable: number(of.part.exposure.max(write.unwrap_or_default())),
            revision: of.revision + i64::from(write.is_some()),
        })
    };
    let parts = parts.into_iter();
    parts.zip(writes).filter_map(loan).collect()
}
