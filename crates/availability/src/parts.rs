//! What one member shows of a set: its pods, and the parts that evictions are limited by. Pure.
//!
//! ```text
//! pods of a LocalReplicaSet   one part each: it has a PodDisruptionBudget, and keeps to the limit in its annotation
//! all other pods              one part: the PodDisruptionBudget of the AvailabilitySet, unless the pods have another, or there are
//!                             LocalReplicaSets as well: the API server evicts no pod that two of them match
//! ```

use std::collections::BTreeMap;

use fedrs_api::{Loan, LoanKind, ValidAvailabilitySet, selector};

use crate::{
    domains::{Place, number},
    loans::{Limit, Part},
    observed::{Budget, LocalSet, Node, Observed, Pod},
    own::{Own, Target, is_intact},
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
    /// Whether pods of LocalReplicaSets and others are mixed.
    pub(crate) is_mixed: bool,
    /// What has to be removed.
    pub(crate) obsolete: Vec<Target<'a>>,
}

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
struct Pods {
    live: u64,
    reachable: u64,
    /// On nodes that have to be left.
    to_leave: u64,
    /// Those that do not count.
    disabled: u64,
}

impl Pods {
    fn of<'p>(pods: impl Iterator<Item = &'p Pod>, nodes: &BTreeMap<String, Node>) -> Self {
        let mut this = Self::default();
        for pod in pods.filter(|pod| pod.is_live()) {
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

    /// The part with these pods, of which as many are `expected` to exist.
    fn part(self, expected: u64) -> Part {
        let pods = self.live.max(expected.saturating_sub(self.disabled));
        Part {
            pods,
            unreachable: pods - self.reachable,
            exposure: pods,
            wanted: self.to_leave,
            limit: None,
        }
    }
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
    let others_budget = |pods: &[&Pod]| others_budget(observed, own, pods);
    for set in &observed.sets {
        let pods = by_set.remove(&*set.metadata.name).unwrap_or_default();
        let labels = &set.spec.template.metadata.labels;
        if pods.is_empty() && !selector::matches(&valid.selector, labels) {
            let is_limited = own.limit_of(set).is_some();
            (member.obsolete).extend(is_limited.then_some(Target::LocalSet(set)));
            continue;
        }
        let other = others_budget(&pods);
        member.other_budget = member
            .other_budget
            .or(other.map(|budget| &*budget.metadata.name));
        let recorded = recorded(loans, LoanKind::LocalReplicaSet, &set.metadata.name);
        let part = Pods::of(pods.into_iter(), &observed.nodes).part(set.spec.replicas.into());
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
    let budget = observed
        .budgets
        .iter()
        .find(|budget| own.has_budget(budget));
    let has_sets = member.parts.iter().any(|of| of.part.pods > 0);
    let other = others_budget(&others);
    member.other_budget = member
        .other_budget
        .or(other.map(|budget| &*budget.metadata.name));
    member.is_mixed = has_sets && others.iter().any(|pod| pod.is_live() && pod.is_enabled());
    let expected = budget.map_or(0, |budget| budget.status.expected_pods);
    let pods = Pods::of(others.into_iter(), &observed.nodes);
    if has_sets || other.is_some() {
        (member.obsolete).extend(budget.map(|budget| Target::Budget(Some(budget))));
        let part = MemberPart {
            part: Part {
                // Evictions that nothing of ours limits are shown by a condition.
                exposure: 0,
                ..pods.part(0)
            },
            target: None,
            revision: 0,
        };
        if part.part.pods > 0 {
            member.parts.push(with_other(part, other));
        }
    } else if budget.is_some() || pods.live > 0 {
        let recorded = recorded(loans, LoanKind::PodDisruptionBudget, &own.budget_name());
        let part = of_budget(pods.part(expected), budget, valid, recorded);
        member.parts.push(part);
    }
    member
}

/// The PodDisruptionBudget of others that matches one of the pods.
fn others_budget<'a>(observed: &'a Observed, own: &Own<'_>, pods: &[&Pod]) -> Option<&'a Budget> {
    let mut budgets = observed.budgets.iter();
    budgets.find(|budget| {
        let is_other = !own.has_budget(budget) && budget.metadata.local_set().is_none();
        is_other && pods.iter().any(|pod| budget.matches(&pod.metadata.labels))
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

fn recorded<'l>(loans: &'l [Loan], kind: LoanKind, name: &str) -> Option<&'l Loan> {
    let mut loans = loans.iter();
    loans.find(|loan| loan.kind == kind && loan.name == name)
}

/// What was written, in what state, and what of it is still to be counted.
struct Written {
    max_unavailable: u64,
    revision: i64,
    /// Whether the member has observed it, and what was granted before is seen.
    is_settled: bool,
    /// What the member grants at most if so.
    grants: u64,
}

/// The limit and the exposure of a part with this record.
fn limited<'a>(
    part: Part,
    target: Target<'a>,
    written: Option<Written>,
    recorded: Option<&Loan>,
) -> MemberPart<'a> {
    let last = recorded.map_or(0, |loan| loan.revision);
    let lent = recorded.map_or(0, |loan| loan.max_unavailable.try_into().unwrap_or(0));
    let revision = written
        .as_ref()
        .map_or(last, |written| written.revision.max(last));
    let is_last = written
        .as_ref()
        .is_some_and(|written| written.revision >= last);
    let exposure = match &written {
        None => part.pods,
        Some(written) if is_last && written.is_settled => written.grants,
        Some(written) => written.grants.max(lent),
    };
    let limit = Limit {
        max_unavailable: written.map(|written| written.max_unavailable),
        is_last,
    };
    MemberPart {
        part: Part {
            exposure: exposure.min(part.pods),
            limit: Some(limit),
            ..part
        },
        target: Some(target),
        revision,
    }
}

fn of_budget<'a>(
    part: Part,
    budget: Option<&'a Budget>,
    valid: &ValidAvailabilitySet,
    recorded: Option<&Loan>,
) -> MemberPart<'a> {
    let intact = budget.filter(|budget| is_intact(budget, valid));
    let written = intact.and_then(|budget| {
        let max_unavailable = budget.spec.max_unavailable.as_u64()?;
        Some(Written {
            max_unavailable,
            revision: budget.revision(),
            is_settled: budget.is_settled(),
            grants: max_unavailable,
        })
    });
    limited(part, Target::Budget(budget), written, recorded)
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
    let written = own.limit_of(set).map(|limit| Written {
        max_unavailable: limit.max_unavailable.into(),
        revision: limit.revision,
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

    /// What is to be recorded before `writes`, one for each part, are sent.
    pub(crate) fn loans(&self, own: &Own<'_>, writes: &[Option<u64>]) -> Vec<Loan> {
        let loan = |(of, write): (&MemberPart<'_>, &Option<u64>)| {
            let (kind, name) = match of.target? {
                Target::Budget(_) => (LoanKind::PodDisruptionBudget, own.budget_name()),
                Target::LocalSet(set) => (LoanKind::LocalReplicaSet, set.metadata.name.clone()),
            };
            Some(Loan {
                kind,
                name,
                max_unavailable: number(of.part.exposure.max(write.unwrap_or_default())),
                revision: of.revision + i64::from(write.is_some()),
            })
        };
        self.parts.iter().zip(writes).filter_map(loan).collect()
    }
}
