//! One step of a rollout.

use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    account::Account,
    action::{Action, Write},
    deadline,
    decision::Decision,
    evict,
    lend::lend,
    loan::smaller,
    member::Member,
    recall,
    rollout::{OnFailure, Rollout},
    speed,
    state::State,
    steps::{Stage, advance, created_revision},
    strategy::Strategy,
    verdict::{self, Verdict},
    wait,
};

/// Decides what comes next at `now`. `recorded` is the state that is published on the host.
///
/// Publish [`Decision::state`], and step again with it: only what is recorded leads to writes of a template.
#[must_use]
pub fn step(rollout: &Rollout<'_>, recorded: &State, now: Timestamp) -> Decision {
    let mut state = recorded.for_revision(rollout.target);
    let names = |name: &String| rollout.members.iter().any(|member| member.name == name);
    state.loans.retain(|name, _| names(name));
    let stage = advance(rollout, &mut state, now);
    let mut writes = judge(rollout, &mut state);
    speed::record_returns(rollout, recorded, &mut state, now);
    deadline::check(rollout, recorded, &mut state, now);
    evict::lend(rollout, &mut state);
    let lent_before = state.loans.len();
    let unlimited = Rollout {
        speed: None,
        ..*rollout
    };
    let forgets = is_planted(PlantedBug::SpeedForgottenByRestart)
        && recorded.progressed.is_none()
        && !recorded.loans.is_empty();
    let limited = if forgets { &unlimited } else { rollout };
    let (refusals, empty) = lend(limited, &mut state, now);
    if state.loans.len() > lent_before {
        state.progressed.get_or_insert(now);
    }
    let roll = |member: &&Member<'_>| {
        let strategy = member.writable()?.without_loan();
        write(member, Action::Roll(strategy))
    };
    writes.extend(empty.iter().filter_map(roll));

    let account = Account::of(rollout, &state);
    let waits = rollout.members.iter().map(|member| {
        let write = writes.iter().find(|write| write.member == member.name);
        let refusal = refusals.get(member.name).copied();
        let (decided, stage) = ((write, refusal), (stage, &account));
        wait::reason(rollout, &state, member, decided, stage, now)
    });
    let waits = waits.collect();
    let members = rollout.members.iter();
    let created = members.map(|member| created_revision(rollout, &state, member));
    let created = created
        .map(|revision| revision.map(str::to_owned))
        .collect();
    let (step, soaked) = match stage {
        Stage::Updating(step) | Stage::AwaitingApproval(step) => (step, None),
        Stage::Soaking(step, until) => (step, Some(until)),
    };
    let times = [
        soaked,
        speed::next(rollout, &state, now).filter(|_| !refusals.is_empty()),
        deadline::next(rollout, &state),
    ];
    Decision {
        writes,
        waits,
        created,
        account,
        step,
        undo: state.failed && rollout.on_failure == OnFailure::Undo,
        next: times.into_iter().flatten().min(),
        state,
    }
}

/// Decides on what is out: changes the loans of `state`, and returns the writes that the recorded ones allow.
fn judge(rollout: &Rollout<'_>, state: &mut State) -> Vec<Write> {
    let allowed = recall::allowed(rollout, state, rollout.limits());
    let mut writes = Vec::new();
    for (member, allowed) in rollout.members.iter().zip(allowed) {
        let Some(loan) = state.loans.get(member.name) else {
            writes.extend(shrink_unlent(member));
            continue;
        };
        match verdict::of(rollout, state, member, loan, allowed) {
            Verdict::Keep => {}
            Verdict::End => _ = state.loans.remove(member.name),
            Verdict::Record(loan) => _ = state.loans.insert(member.name.to_owned(), loan),
            Verdict::Write(action) => writes.extend(write(member, action)),
        }
        forget_replaced(state, member);
    }
    writes
}

/// A Deployment that rolls without a loan came back from a loss, or was changed by somebody else.
fn shrink_unlent(member: &Member<'_>) -> Option<Write> {
    let found = member.writable()?;
    let is_rolling = found.is_observed() && found.is_rolling();
    let strategy = smaller(found, None, Strategy::default()).filter(|_| is_rolling)?;
    write(member, Action::Shrink(strategy))
}

/// Once a new template is seen in a member, the pods that the previous one had count as given back.
fn forget_replaced(state: &mut State, member: &Member<'_>) {
    if let (Some(loan), Some(found)) = (state.loans.get_mut(member.name), member.writable())
        && loan.is_over(found)
    {
        loan.replaced = 0;
    }
}

fn write(member: &Member<'_>, action: Action) -> Option<Write> {
    Some(Write {
        member: member.name.to_owned(),
        generation: member.writable()?.generation,
        action,
    })
}
