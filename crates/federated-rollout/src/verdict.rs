//! What becomes of a loan that is out.

use crate::{
    action::Action,
    evict,
    loan::{reach, smaller},
    member::{Deployment, Member, MemberState},
    rollout::Rollout,
    state::{Loan, State},
    steps::{has_begun, may_roll},
    strategy::Strategy,
};

/// What becomes of a loan.
pub(crate) enum Verdict {
    Keep,
    End,
    /// It is recorded like this.
    Record(Loan),
    Write(Action),
}

/// What becomes of the `loan` of `member`, which may be `allowed` at most.
pub(crate) fn of(
    rollout: &Rollout<'_>,
    state: &State,
    member: &Member<'_>,
    loan: &Loan,
    allowed: Strategy,
) -> Verdict {
    match (member.state, &member.deployment) {
        (MemberState::Lost, _) if !loan.lost => Verdict::Record(Loan {
            lost: true,
            ..loan.clone()
        }),
        (MemberState::Lost | MemberState::Unknown, _) => Verdict::Keep,
        (MemberState::Writable, None) => Verdict::End,
        (MemberState::Writable, Some(found)) if loan.evicts => {
            let is_needed = !loan.lost
                && allowed.covers(loan.strategy)
                && evict::needs_loan(rollout, state, member, found);
            evicting(found, loan, is_needed)
        }
        (MemberState::Writable, Some(found)) => {
            if let Some(verdict) = pause(rollout, found, loan) {
                return verdict;
            }
            let is_stopped = rollout.paused && found.local.is_some();
            let is_due = !member.cordoned && has_begun(rollout, state, member);
            let is_due = is_due && !is_stopped;
            let is_due = is_due && !loan.lost && !is_replaced_at_speed(rollout, found, loan);
            let is_kept = is_due && allowed.covers(loan.strategy);
            let verdict = settled(rollout, found, loan, is_kept);
            verdict.unwrap_or_else(|| match (is_kept, is_due) {
                (true, _) => go_on(rollout, found, loan, may_roll(rollout, state, member)),
                (false, true) => recall(found, loan, allowed),
                (false, false) => recall(found, loan, Strategy::default()),
            })
        }
    }
}

/// While the rollout is paused, a Deployment with pods of two templates is, too (L8). That is recorded first. If another revision is
/// to be rolled out after that, the write of its template ends the pause; with a speed the loan is recalled before.
fn pause(rollout: &Rollout<'_>, found: &Deployment<'_>, loan: &Loan) -> Option<Verdict> {
    if found.local.is_some() || loan.lost {
        return None;
    }
    let record = |paused| {
        Some(Verdict::Record(Loan {
            paused,
            ..loan.clone()
        }))
    };
    match (rollout.paused, loan.paused, found.paused) {
        (true, false, _) if found.has_old_pods() => record(true),
        (true, true, false) if found.has_old_pods() => Some(Verdict::Write(Action::Pause)),
        (false, true, true) if loan.is_for(rollout.target, found) || rollout.speed.is_some() => {
            Some(Verdict::Write(Action::Resume))
        }
        (false, true, false) => record(false),
        _ => None,
    }
}

/// With a speed, a new template within a loan counts like a new loan: see `speed`.
fn is_replaced_at_speed(rollout: &Rollout<'_>, found: &Deployment<'_>, loan: &Loan) -> bool {
    let has_started = loan.is_over(found) || found.is_rolling();
    rollout.speed.is_some() && !loan.is_for(rollout.target, found) && has_started
}

/// What follows from what the Deployment has observed: the loan ends, or is no more than the Deployment has.
fn settled(
    rollout: &Rollout<'_>,
    found: &Deployment<'_>,
    loan: &Loan,
    is_kept: bool,
) -> Option<Verdict> {
    if !loan.is_over(found) || !found.is_observed() {
        return None;
    }
    if found.local.is_some() && found.strategy.pods() == 0 {
        // It was recalled; or it was never written, and is recorded anew.
        let is_recalled = !is_kept || found.revision == rollout.target;
        return is_recalled.then_some(Verdict::End);
    }
    if !found.is_rolling() {
        let is_unused = !is_kept || found.revision == rollout.target && found.is_complete();
        return is_unused.then_some(Verdict::End);
    }
    let strategy = found.strategy.and(loan.strategy);
    if strategy.pods() == 0 {
        // Nothing of it is in effect, as it was never written: what is must come within it, so that the record shows it.
        return Some(recall(found, loan, Strategy::default()));
    }
    let reduced = Loan {
        strategy,
        beyond: loan.beyond.min(strategy.unavailable),
        // It is recalled once only the smallest strategy is left.
        lost: loan.lost && (strategy.pods() > 1 || found.local.is_some()),
        ..loan.clone()
    };
    (reduced != *loan).then_some(Verdict::Record(reduced))
}

/// The next step towards the target revision, if the member `may_roll`.
fn go_on(rollout: &Rollout<'_>, found: &Deployment<'_>, loan: &Loan, may_roll: bool) -> Verdict {
    let has_template = found.revision == rollout.target;
    let is_current = loan.revision == rollout.target;
    let is_complete = found.is_complete() && found.waiting_evictions() == 0;
    if has_template && is_complete || found.generation < loan.generation {
        return recall(found, loan, Strategy::default());
    }
    let is_paused = found.local.is_some_and(|local| local.paused);
    if has_template && is_current && loan.is_over(found) && !is_paused || !may_roll {
        return Verdict::Keep;
    }
    if is_current && loan.generation == found.generation {
        return Verdict::Write(Action::Roll(loan.strategy));
    }
    if !found.is_observed() {
        return Verdict::Keep;
    }
    // Another revision was to be written with it, or something else was written in the meantime.
    // What is in effect ends with the write. With a speed, that has started pods as well.
    let in_effect = rollout.speed.map(|_| reach(found, None));
    Verdict::Record(Loan {
        strategy: loan.strategy.or(in_effect.unwrap_or_default()),
        revision: rollout.target.to_owned(),
        generation: found.generation,
        available: if has_template {
            found.updated_available
        } else {
            0
        },
        paused: false,
        ..loan.clone()
    })
}

/// What becomes of a loan for evictions, which ends as soon as none waits: a pod whose eviction has begun counts as unavailable.
fn evicting(found: &Deployment<'_>, loan: &Loan, is_needed: bool) -> Verdict {
    match (loan.is_over(found), found.is_observed()) {
        (false, _) if is_needed && found.generation == loan.generation => {
            Verdict::Write(Action::Lend(loan.strategy))
        }
        (true, false) => Verdict::Keep,
        (true, true) if found.strategy.pods() == 0 => Verdict::End,
        (true, true) if is_needed => Verdict::Keep,
        _ => recall(found, loan, Strategy::default()),
    }
}

/// The write that makes the loan smaller, if one is needed.
fn recall(found: &Deployment<'_>, loan: &Loan, allowed: Strategy) -> Verdict {
    match smaller(found, Some(loan), allowed) {
        Some(strategy) => Verdict::Write(Action::Shrink(strategy)),
        None if !loan.is_over(found) => Verdict::Write(Action::Fence),
        None => Verdict::Keep,
    }
}
