//! What of the budget is in use (L14, L16, L20).
//!
//! ```text
//! in use = failed + in progress + marked for removal
//!        + pods that are missing, or removed to be recreated
//!        + copies, and pods in whose places copies are, while they leave
//!        - removed pods in whose place another one is already counted as starting or missing
//!        - surplus pods that clients leave: they are not among the replicas that stay
//! ```
//!
//! A pod that is not available uses the budget anyway. So to update or to evict it costs nothing: a bad revision never locks the
//! set (L22).

use crate::{
    group::{Group, Member, Role},
    record::Places,
    set::Set,
};

/// The budget and its use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The pods that may be unavailable.
    pub limit: usize,
    /// What of it is in use; more than `limit` if pods are broken, or the budget was made smaller.
    pub in_use: usize,
    /// What of it can't be used for updates and evictions, because evictions of others may use it: see
    /// [`DisruptionPlan`](crate::DisruptionPlan).
    pub withheld: usize,
    /// Pods that are missing: neither do they exist, nor are they being recreated.
    pub missing: usize,
    /// Pods that exist beyond the replicas.
    pub surplus: usize,
    /// Those of them that clients leave by now, before they are removed.
    pub leaving: usize,
    /// Live pods beside the replicas: copies, and pods in whose places copies are (M2).
    pub extra: usize,
}

impl Account {
    pub(crate) fn of(
        set: &Set<'_>,
        members: &[Member<'_>],
        places: &Places,
        withheld: usize,
    ) -> Self {
        let extra = members
            .iter()
            .filter(|member| member.is_extra() && member.pod.is_live());
        let copied = members.iter().filter(|member| is_leaving_copy(member));
        let copied = copied.count();
        let (mut live, mut in_use, mut starting, mut terminating, mut leaving) = (0, 0, 0, 0, 0);
        for member in members.iter().filter(|member| !member.is_extra()) {
            let is_live = member.pod.is_live();
            live += usize::from(is_live);
            terminating += usize::from(!is_live);
            in_use += usize::from(member.group != Group::Ready);
            let is_marked = member.group == Group::MarkedRemove;
            leaving += usize::from(is_live && is_marked && member.pod.is_draining());
            starting += usize::from(member.is_starting);
        }
        let kept = live + places.terminating + places.vacant.len();
        let missing = set.replicas.saturating_sub(kept);
        let replaced = terminating.saturating_sub(places.terminating);
        let surplus = kept.saturating_sub(set.replicas);
        let leaving = leaving.min(surplus);
        let replaced = replaced.min(starting + missing);
        Self {
            limit: set.limit(),
            withheld,
            in_use: in_use + missing + places.vacant.len() + copied - replaced - leaving,
            missing,
            surplus,
            leaving,
            extra: extra.count(),
        }
    }

    /// Pods beyond the replicas about which nothing was done so far.
    pub(crate) fn untouched_surplus(&self) -> usize {
        self.surplus - self.leaving
    }

    /// Whether an update or an eviction of a pod that is not available may begin. It may become available before that, and evictions of
    /// others may then use what it uses now.
    pub(crate) fn covers_unavailable(&self) -> bool {
        self.withheld == 0 || self.in_use.saturating_add(self.withheld) <= self.limit
    }

    /// How many more pods may become unavailable.
    pub(crate) fn room(&self) -> usize {
        let used = self.in_use.saturating_add(self.withheld);
        self.limit.saturating_sub(used)
    }
}

/// Whether it leaves though it is no replica. It may still be available, and as long as it is, evictions of others can take another pod for
/// it, which is missing once it is gone.
fn is_leaving_copy(member: &Member<'_>) -> bool {
    let is_copy = matches!(member.role, Role::Copy | Role::Copied);
    is_copy && member.group == Group::MarkedRemove && !member.pod.is_on_lost_node()
}

/// A pod that uses the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetUser<'a> {
    /// Its name.
    pub pod: &'a str,
    /// Its group.
    pub group: Group,
    /// Why it does not become available, if that is known.
    pub failure: Option<&'a str>,
}

/// The budget while it is shared out.
pub(crate) struct Budget<'a> {
    pub(crate) account: Account,
    /// Who has got a part of it in this step.
    pub(crate) begun: Vec<BudgetUser<'a>>,
    /// Available pods that could be updated or evicted now with more of it.
    pub(crate) wanted: usize,
    /// Whether pods that are not available could be, if less of it was withheld.
    pub(crate) is_wanted: bool,
    /// Whether it is shared with evictions of others.
    pub(crate) is_shared: bool,
}

impl<'a> Budget<'a> {
    /// Whether the update or eviction of the pod may begin; otherwise it is wanted.
    pub(crate) fn allows(&mut self, member: &Member<'_>) -> bool {
        let is_allowed = match cost(member) {
            0 => self.account.covers_unavailable(),
            cost => cost <= self.account.room(),
        };
        if !is_allowed {
            self.wanted += cost(member);
            self.is_wanted |= cost(member) == 0;
        }
        is_allowed
    }

    /// A pod gets what it needs, and has this group from now on.
    pub(crate) fn take(&mut self, member: &Member<'a>, group: Group) {
        let cost = cost(member);
        if cost > 0 {
            self.account.in_use += cost;
            self.begun.push(BudgetUser {
                pod: member.pod.name,
                group,
                failure: None,
            });
        }
    }
}

/// What it costs to make a pod unavailable.
pub(crate) fn cost(member: &Member<'_>) -> usize {
    usize::from(member.group == Group::Ready)
}
