//! Members, rollouts and decisions, as short as the tables need them.

use std::time::Duration;

use federated_rollout::{
    Action, Amount, Budget, Decision, Deployment, Loan, Member, MemberState, OnFailure, Rollout,
    State, Step, Strategy,
};
use jiff::Timestamp;

/// Complete with the old template, at generation 1.
pub(crate) fn old(replicas: u64) -> Deployment<'static> {
    Deployment {
        replicas,
        lowest_replicas: replicas,
        highest_replicas: replicas,
        revision: "old",
        strategy: Strategy::WITHOUT_LOAN,
        generation: 1,
        observed_generation: 1,
        pods: replicas,
        updated: replicas,
        available: replicas,
        updated_available: replicas,
        uncertain: 0,
        pending: 0,
        started_lately: false,
        paused: false,
        local: None,
    }
}

/// Complete with the new template, which was written at generation 1.
pub(crate) fn new(replicas: u64, strategy: Strategy) -> Deployment<'static> {
    Deployment {
        revision: "new",
        strategy,
        generation: 2,
        observed_generation: 2,
        ..old(replicas)
    }
}

/// Halfway: some of the pods have the new template, and are not available.
pub(crate) fn rolling(replicas: u64, started: u64, strategy: Strategy) -> Deployment<'static> {
    Deployment {
        updated: started,
        updated_available: 0,
        available: replicas - started,
        ..new(replicas, strategy)
    }
}

pub(crate) fn member<'a>(name: &'a str, deployment: Deployment<'a>) -> Member<'a> {
    Member {
        name,
        state: MemberState::Writable,
        cordoned: false,
        requested: 0,
        creates: false,
        waits_for_nodes: false,
        deployment: Some(deployment),
    }
}

pub(crate) fn rollout<'a>(members: &'a [Member<'a>], unavailable: u64, surge: u64) -> Rollout<'a> {
    let replicas = members.iter().filter_map(|member| member.deployment);
    Rollout {
        target: "new",
        previous: None,
        replicas: replicas.map(|found| found.replicas).sum(),
        budget: Budget::RollingUpdate {
            max_unavailable: Amount::Number(unavailable),
            max_surge: Amount::Number(surge),
        },
        limit: None,
        speed: None,
        steps: &[],
        approvals: &[],
        paused: false,
        progress_deadline: Some(Duration::from_secs(600)),
        on_failure: OnFailure::Stop,
        members,
    }
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("it is a time")
}

pub(crate) fn state(loans: &[(&str, Strategy)]) -> State {
    let loan = |strategy| Loan {
        strategy,
        revision: "new".to_owned(),
        generation: 1,
        ..Loan::default()
    };
    State {
        revision: "new".to_owned(),
        begun: vec![String::new()],
        progressed: (!loans.is_empty()).then(|| at(0)),
        loans: (loans.iter())
            .map(|&(name, strategy)| (name.to_owned(), loan(strategy)))
            .collect(),
        ..State::default()
    }
}

/// The strategies lent, by member.
pub(crate) fn lent(decision: &Decision) -> Vec<(&str, u64, u64)> {
    let loans = decision.state.loans.iter();
    loans
        .map(|(name, loan)| (&**name, loan.strategy.unavailable, loan.strategy.surge))
        .collect()
}

pub(crate) fn actions(decision: &Decision) -> Vec<(&str, Action)> {
    let writes = decision.writes.iter();
    writes.map(|write| (&*write.member, write.action)).collect()
}

pub(crate) const fn lends(unavailable: u64, surge: u64) -> Strategy {
    Strategy::new(unavailable, surge)
}

pub(crate) fn canary(soak: Duration) -> Step<'static> {
    Step {
        name: "canary",
        members: &["eu"],
        soak,
        approval_before: false,
        max_concurrent: None,
    }
}
