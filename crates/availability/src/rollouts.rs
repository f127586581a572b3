//! The rollouts of FederatedDeployments whose Deployments have pods of a set (A1). Their controllers in the members ask no
//! PodDisruptionBudget, so a part of the budget is lent to the rollout as a whole. Pure.
//!
//! ```text
//! annotation of the FederatedDeployment   the loan. Its controller lends no more than that to the members, and recalls what is more
//! its status                              what it has lent to members, recorded before it is used, and for the version that it has seen:
//!                                         so once the annotation is there, no more than that, or than what is recorded, is ever used
//! ```

use std::collections::BTreeMap;

use fedrs_api::{Loan, LoanKind, ValidAvailabilitySet, selector};

use crate::{
    federated_set::FederatedSet,
    limited::{MemberPart, Written, limited, recorded},
    loans::Part,
    observed::Observed,
    own::{Own, Target},
};

/// What is lent to rollouts.
#[derive(Default)]
pub(crate) struct Rollouts<'a> {
    /// One for each FederatedDeployment.
    pub(crate) parts: Vec<MemberPart<'a>>,
    /// Those from which the loan has to be removed.
    pub(crate) obsolete: Vec<&'a FederatedSet>,
    /// The pods in members that can't be reached by what is lent to rollouts, by cluster: they are in `parts`.
    updated: BTreeMap<&'a str, u64>,
}

impl<'a> Rollouts<'a> {
    /// Those of the set; `loans` are what was recorded, and `members` those that were read.
    pub(crate) fn of(
        sets: &'a [FederatedSet],
        (own, valid): (&Own<'_>, &ValidAvailabilitySet),
        loans: &[Loan],
        members: &[(&'a str, &'a Observed)],
    ) -> Self {
        let mut this = Self::default();
        for set in sets {
            if !set.is_limited_by(valid) {
                let has_loan = own.limit_on(&set.metadata).is_some();
                this.obsolete.extend(has_loan.then_some(set));
                continue;
            }
            let last = recorded(loans, LoanKind::FederatedDeployment, &set.metadata.name);
            let part = this.part(set, own, last, members);
            this.parts.push(part);
        }
        this
    }

    fn part(
        &mut self,
        set: &'a FederatedSet,
        own: &Own<'_>,
        last: Option<&Loan>,
        members: &[(&'a str, &'a Observed)],
    ) -> MemberPart<'a> {
        let replicas = set.spec.replicas;
        let lent = set.lent();
        let held = lent.as_ref().map_or(replicas, |lent| lent.values().sum());
        let written = own.limit_on(&set.metadata).map(|limit| {
            let max_unavailable = limit.max_unavailable.into();
            Written {
                max_unavailable,
                revision: limit.revision,
                is_intact: true,
                is_settled: true,
                grants: held.max(max_unavailable),
            }
        });
        let exposure = written.map_or(replicas, |written| written.exposure(last));
        let (unreachable, repairs) = self.take(set, &lent.unwrap_or_default(), members);
        // Without pods that wait it gets no more than it has.
        let kept = written.map_or(0, |written| written.max_unavailable);
        let part = Part {
            pods: kept.max(unreachable + set.wanted()),
            unreachable,
            exposure,
            held,
            repairs,
            wanted: set.wanted(),
            limit: None,
        };
        let of = limited(part, Target::Rollout(set), written, last);
        // What it may still use is no matter of how many pods wait.
        MemberPart {
            part: Part {
                exposure,
                ..of.part
            },
            ..of
        }
    }

    /// How many pods of the set can't be reached, in each member at most as many as are lent to it for the rollout: its Deployment makes no
    /// others unavailable beside them. While a rollout waits, also those that its controller knows of, which it replaces first. All of them count
    /// in the part of the rollout, and no longer in those of the member. Returns how many, and how many wait to be replaced.
    fn take(
        &mut self,
        set: &FederatedSet,
        lent: &BTreeMap<String, u64>,
        members: &[(&'a str, &'a Observed)],
    ) -> (u64, u64) {
        let waits = set.wanted() > 0;
        let known: BTreeMap<_, _> = set.unavailable().filter(|_| waits).collect();
        let (mut all, mut repairs) = (0, 0);
        for (cluster, observed) in members {
            let lent = lent.get(*cluster).copied().unwrap_or_default();
            let known = known.get(cluster).copied().unwrap_or_default();
            let pods = observed.pods.iter();
            let unreachable = pods.filter(|pod| {
                pod.is_live()
                    && pod.is_enabled()
                    && !pod.is_reachable(&observed.nodes)
                    && selector::matches(&set.spec.selector, &pod.metadata.labels)
            });
            let unreachable = unreachable.count() as u64;
            let taken = unreachable.min(lent.max(known));
            all += taken;
            repairs += unreachable.min(known);
            *self.updated.entry(cluster).or_default() += taken;
        }
        (all, repairs)
    }

    /// The parts of a member without the pods that rollouts have made unavailable: those of no LocalReplicaSet.
    pub(crate) fn without_updated(&self, cluster: &str, parts: &[MemberPart<'_>]) -> Vec<Part> {
        let mut updated = self.updated.get(cluster).copied().unwrap_or_default();
        let parts = parts.iter().map(|of| {
            let is_local = matches!(of.target, Some(Target::LocalSet(_)));
            let taken = if is_local {
                0
            } else {
                updated.min(of.part.unreachable)
            };
            updated -= taken;
            Part {
                unreachable: of.part.unreachable - taken,
                ..of.part
            }
        });
        parts.collect()
    }
}
