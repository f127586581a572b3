//! What must hold after each operation, whatever is lost, late or edited.

use federated_rollout::{Account, Action, Decision, Loan, Member, State, step};

use super::{
    MIN_DELAY, NAMES, Op, World,
    cluster::{Cluster, Reach},
    has_revision,
};

impl World {
    /// What a decision has to keep to, whatever happens to it.
    pub(super) fn check_decision(&self, decision: &Decision) {
        let before = self.account(self.recorded());
        let after = self.account(&decision.state);
        let sum = |account: &Account| -> u64 {
            (account.members.iter())
                .map(|member| member.guaranteed)
                .sum()
        };
        let least = self.replicas.saturating_sub(after.limits.unavailable);
        assert!(
            sum(&after) >= least.min(sum(&before)),
            "lends more than the budget: {before:?} {after:?} {decision:#?}"
        );
        let lent = |state: &State, part: fn(&Loan) -> u64| -> u64 {
            let loans = self.clusters.iter().filter_map(|cluster| {
                let loan = state.loans.get(cluster.name)?;
                (cluster.reach != Reach::Lost).then(|| part(loan))
            });
            loans.sum()
        };
        let paid = |loan: &Loan| loan.strategy.unavailable - loan.beyond;
        for (part, limit) in [
            (paid as fn(&Loan) -> u64, after.limits.unavailable),
            (|loan| loan.strategy.surge, after.limits.surge),
            (
                // Evictions are no updates.
                |loan| {
                    if loan.evicts { 0 } else { loan.strategy.pods() }
                },
                self.setup.portion.unwrap_or(u64::MAX),
            ),
        ] {
            let (before, after) = (lent(self.recorded(), part), lent(&decision.state, part));
            assert!(
                after <= limit.max(before),
                "{before} lent of {limit}, then {after}: {:#?} {decision:#?}",
                self.host
            );
        }
        self.check_steps(decision);
        self.check_converges(decision);
    }

    pub(super) fn check_steps(&self, decision: &Decision) {
        let state = &decision.state;
        let same = self.recorded().revision == state.revision;
        let begun = if same { self.recorded().begun.len() } else { 0 };
        let count = if self.setup.steps.is_empty() { 1 } else { 3 };
        let views = self.members();
        let has_template = |member: &Member<'_>| has_revision(member, self.target);
        if !views.iter().all(has_template) {
            for step in begun.max(1)..state.begun.len().min(count) {
                for (view, cluster) in views.iter().zip(&self.clusters) {
                    if self.step_of(cluster) == step - 1
                        && !cluster.cordoned
                        && cluster.reach != Reach::Lost
                    {
                        let found = view.deployment.expect("each has one");
                        assert!(
                            has_template(view)
                                && cluster.reach == Reach::Reachable
                                && found.updated_available >= found.replicas
                                && found.pods == found.updated,
                            "step {step} began before {} is complete",
                            cluster.name
                        );
                    }
                }
                let soaked = self.host.soaking_since.filter(|_| same);
                let end = self.time().as_second() - self.setup.soak;
                assert!(
                    self.setup.soak == 0 || soaked.is_some_and(|since| since.as_second() <= end),
                    "step {step} began before its time"
                );
                assert!(
                    step != 1 || !self.setup.approval || self.approvals.contains(&(1, self.target)),
                    "step {step} was not approved"
                );
            }
        }
        for cluster in &self.clusters {
            let rolls = decision.writes.iter().any(|write| {
                write.member == cluster.name && matches!(write.action, Action::Roll(_))
            });
            let step = self.step_of(cluster);
            assert!(!rolls || step < state.begun.len() && !self.paused && !cluster.cordoned);
        }
    }

    fn step_of(&self, cluster: &Cluster) -> usize {
        let position = NAMES.iter().position(|name| *name == cluster.name);
        let step = position.and_then(|position| self.setup.steps.get(position));
        step.copied().unwrap_or_default()
    }

    /// Publishing again and again without anything else happening comes to an end.
    pub(super) fn check_converges(&self, decision: &Decision) {
        let mut state = decision.state.clone();
        for _ in 0..6 {
            let next = self.with_rollout(|rollout| step(rollout, &state, self.time()));
            if next.state == state {
                return;
            }
            state = next.state;
        }
        panic!("publishes for ever: {:#?} {state:#?}", decision.state);
    }

    pub(super) fn check_totals(&self, op: Op) {
        let present = (self.clusters.iter()).filter(|cluster| cluster.reach != Reach::Lost);
        let available: u64 = present.map(Cluster::available).sum();
        let allowed = self.most_unavailable + self.debt;
        assert!(
            available + allowed >= self.replicas,
            "{available} of {} are available after {op:?}, with {allowed} allowed: {:#?}\n{:#?}",
            self.replicas,
            self.clusters,
            self.host,
        );
        if self.debt == 0 && matches!(op, Op::Sync(_)) {
            let pods: u64 = self.clusters.iter().map(Cluster::wanted_pods).sum();
            assert!(pods <= self.replicas.max(self.setup.replicas.iter().sum()) + self.most_surge);
        }
        if let Some(portion) = self.setup.portion {
            let last = self.starts.last().copied().unwrap_or_default();
            let lately = self
                .starts
                .iter()
                .filter(|start| **start > last - MIN_DELAY);
            assert!(
                lately.count() as u64 <= portion,
                "more than {portion} pods start within {MIN_DELAY} s: {:?}",
                self.starts
            );
        }
    }
}
