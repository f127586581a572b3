//! What one member shows of a set: its pods, and the parts that evictions are limited by. Pure.
//!
//! ```text
//! pods of a LocalReplicaSet   one part each: it has a PodDisruptionBudget, and keeps to the limit in its annotation
//! all other pods              one part: the PodDisruptionBudget of the AvailabilitySet, or of one that contains it, unless the pods have
//!                             another, or there are LocalReplicaSets as well: the API server evicts no pod that two of them match
//! ```

use std::collections::BTreeMap;

use fedrs_api::{Loan, LoanKind, ValidAvailabilitySet, selector};

use crate::{
    budget_part,
    carriers::Carriers,
    domains::Place,
    limited::{MemberPart, Pods, Written, limited, recorded},
    loans::Part,
    observed::{Budget, LocalSet, Node, Observed, Pod},
    own::{Own, Target},
};

/// What a member shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member<'a> {
    pub(crate) parts: Vec<MemberPart<'a>>,
    /// Where the pods are that count and exist.
    pub(crate) places: Vec<Place>,
    /// Where pods may be.
    pub(crate) nodes: Vec<Place>,
    /// A PodDisruptionBudget of others that matches pods.
    pub(crate) other_budget: Option<&'a str>,
    /// An AvailabilitySet that has one for some of the pods.
    pub(crate) overlapping: Option<&'a str>,
    /// The AvailabilitySets whose loans keep the PodDisruptionBudget of this one as it is.
    pub(crate) awaited: Vec<String>,
    /// Whether pods of LocalReplicaSets and others are mixed.
    pub(crate) is_mixed: bool,
    /// What has to be removed.
    pub(crate) obsolete: Vec<Target<'a>>,
    /// What will have to be.
    pub(crate) former: Vec<&'a Budget>,
}

/// What a member shows of the set; `loans` is what was recorded of it.
pub(crate) fn of<'a>(
    cluster: &str,
    observed: &'a Observed,
    own: &Own<'_>,
    valid: &ValidAvailabilitySet,
    loans: &[Loan],
) -> Member<'a> {
    let mut by_set = BTreeMap::<&str, Vec<&Pod>>::new();
    let mut others = Vec::new();
    for pod in &observed.pods {
        match pod.metadata.local_set() {
            Some(set) => by_set.entry(set).or_default().push(pod),
            None => others.push(pod),
        }
    }
    let mut member = Member {
        places: places(cluster, observed, valid),
        nodes: (observed.nodes.values())
            .map(|node| place(cluster, Some(node), node.metadata.name.as_str(), valid))
            .collect(),
        ..Member::default()
    };
    for set in &observed.sets {
        let pods = by_set.remove(&*set.metadata.name).unwrap_or_default();
        let labels = &set.spec.template.metadata.labels;
        if pods.is_empty() && !selector::matches(&valid.selector, labels) {
            let is_limited = own.limit_on(&set.metadata).is_some();
            (member.obsolete).extend(is_limited.then_some(Target::LocalSet(set)));
            continue;
        }
        let other = others_budget(observed, own, &pods);
        member.report(other, own);
        let recorded = recorded(loans, LoanKind::LocalReplicaSet, &set.metadata.name);
        let part = Pods::of(pods, &observed.nodes).part(set.spec.replicas.into());
        let part = if own.is_of_another(set) {
            MemberPart {
                part,
                target: None,
                revision: 0,
            }
        } else {
            of_local_set(part, set, observed, own, recorded)
        };
        member.parts.push(with_other(part, other));
    }
    // Pods whose set is gone are left to nobody.
    others.extend(by_set.into_values().flatten());
    member.add_others(&others, observed, own, valid, loans);
    member
}

impl<'a> Member<'a> {
    /// The pods that no LocalReplicaSet limits.
    fn add_others(
        &mut self,
        pods: &[&Pod],
        observed: &'a Observed,
        own: &Own<'_>,
        valid: &ValidAvailabilitySet,
        loans: &[Loan],
    ) {
        let has_sets = self.parts.iter().any(|of| of.part.pods > 0);
        self.is_mixed = has_sets && pods.iter().any(|pod| pod.is_live() && pod.is_enabled());
        let carriers = Carriers::of(&observed.budgets, own, &valid.selector);
        let other = if has_sets {
            others_budget(observed, own, pods)
        } else {
            carriers.blocking(&observed.budgets, (own, &valid.selector), pods)
        };
        self.report(other, own);
        let lent_by = |budget: &'a Budget| Target::Budget(Some(budget));
        if has_sets || other.is_some() {
            (self.obsolete).extend(own.lent(&observed.budgets).map(lent_by));
            let part = MemberPart {
                part: Part {
                    // Evictions that nothing of ours limits are shown by a condition.
                    exposure: 0,
                    ..Pods::of(pods.iter().copied(), &observed.nodes).part(0)
                },
                target: None,
                revision: 0,
            };
            if part.part.pods > 0 {
                self.parts.push(with_other(part, other));
            }
            return;
        }
        let of = budget_part::of(pods, (observed, carriers), own, valid, loans);
        self.parts.extend(of.part);
        self.obsolete.extend(of.obsolete.into_iter().map(lent_by));
        self.former = of.former;
        self.awaited = of.awaited;
    }

    /// Remembers why evictions are not limited.
    fn report(&mut self, other: Option<&'a Budget>, own: &Own<'_>) {
        let owner = other.and_then(|budget| own.owner_of(budget));
        self.overlapping = self.overlapping.or(owner);
        let other = other.filter(|_| owner.is_none());
        self.other_budget = self.other_budget.or(other.map(|of| &*of.metadata.name));
    }
}

/// The PodDisruptionBudget of others that matches one of the pods.
fn others_budget<'a>(observed: &'a Observed, own: &Own<'_>, pods: &[&Pod]) -> Option<&'a Budget> {
    let mut budgets = observed.budgets.iter();
    budgets.find(|budget| {
        let is_other = !own.has_budget(budget) && budget.metadata.local_set().is_none();
        is_other && budget.matches_any(pods)
    })
}

/// What another PodDisruptionBudget grants comes on top.
fn with_other<'a>(mut part: MemberPart<'a>, other: Option<&Budget>) -> MemberPart<'a> {
    if let Some(other) = other {
        let granted = part
            .part
            .unreachable
            .saturating_add(other.status.disruptions_allowed);
        part.part.exposure = part.part.exposure.max(granted).min(part.part.pods);
    }
    part
}

fn of_local_set<'a>(
    part: Part,
    set: &'a LocalSet,
    observed: &Observed,
    own: &Own<'_>,
    recorded: Option<&Loan>,
) -> MemberPart<'a> {
    let name = Some(&*set.metadata.name);
    let mut budgets = observed.budgets.iter();
    let budget = budgets.find(|budget| budget.metadata.local_set() == name);
    let status = &set.status;
    let begun = u64::from(status.unavailable) + u64::from(status.evictable);
    let written = own.limit_on(&set.metadata).map(|limit| Written {
        max_unavailable: limit.max_unavailable.into(),
        revision: limit.revision,
        is_intact: true,
        is_settled: own.seen_revision(set) == Some(limit.revision)
            && budget.is_none_or(Budget::is_settled),
        grants: begun.max(limit.max_unavailable.into()),
    });
    let part = Part {
        wanted: part.wanted.max(set.waiting().into()),
        ..part
    };
    limited(part, Target::LocalSet(set), written, recorded)
}

fn places(cluster: &str, observed: &Observed, valid: &ValidAvailabilitySet) -> Vec<Place> {
    let pods = observed.pods.iter();
    let counting = pods.filter(|pod| pod.is_live() && pod.is_enabled());
    counting
        .map(|pod| place(cluster, observed.nodes.get(pod.node()), pod.node(), valid))
        .collect()
}

fn place(cluster: &str, node: Option<&Node>, name: &str, valid: &ValidAvailabilitySet) -> Place {
    let label = |key: &str| node.and_then(|node| node.metadata.labels.get(key).cloned());
    Place {
        cluster: cluster.to_owned(),
        node: name.to_owned(),
        rack: label(&valid.domain_labels.rack),
        zone: label(&valid.domain_labels.zone),
    }
}

impl Member<'_> {
    /// All pods that count, and those of them that can't be reached.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let parts = self.parts.iter().map(|of| &of.part);
        parts.fold((0, 0), |(pods, unreachable), part| {
            (pods + part.pods, unreachable + part.unreachable)
        })
    }
}
