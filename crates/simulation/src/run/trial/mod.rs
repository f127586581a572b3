//! The trial at the end of a run: one change of a federation that is as it should be, and what must follow from it, how soon,
//! and what must not.

mod identity;
mod members;
mod namespaces;
mod nodes;
mod pods;
mod sets;
mod terms;
mod wait;

use fedrs_api::SetKind;

use self::wait::reached;
use super::{
    goal::{Goal, REACHED_WITHIN, is_any_unsettled},
    runner::Runner,
};
use crate::{plan::Trial, trace::Topic};

/// Tries `trial` in a federation in which all of `goal` is reached, and no fault is left.
pub(super) async fn carry_out(runner: &mut Runner, goal: &Goal, trial: &Trial) {
    if trial.names().iter().any(|name| {
        !goal.members.iter().any(|member| member == name) && !has_all(runner, goal, name)
    }) {
        runner.recorder.trace(
            Topic::Step,
            format!("(no trial: {trial}: there is none with all its replicas)"),
        );
        return;
    }
    if !is_of_deployments(runner, trial) {
        return;
    }
    runner.recorder.trace(Topic::Step, trial.to_string());
    runner.count("trials");
    let ended = match trial {
        Trial::Drift { set, drift } => sets::drift(runner, set, *drift).await,
        Trial::Growth { set } => sets::growth(runner, set).await,
        Trial::Template { set } => sets::template(runner, set).await,
        Trial::Pause { set } => sets::pause(runner, set).await,
        Trial::Invalid { set } => sets::invalid(runner, set).await,
        Trial::Annotation { set, member } => sets::annotation(runner, set, member).await,
        Trial::Unbalanced { set, member } => sets::unbalanced(runner, set, member).await,
        Trial::Deletion {
            set,
            deletes,
            rejections,
        } => sets::deletion(runner, set, *deletes, *rejections).await,
        Trial::Conflict { set } => sets::conflict(runner, set).await,
        Trial::Churn { set } => pods::churn(runner, set).await,
        Trial::Foreign { set } => identity::foreign(runner, set).await,
        Trial::Closing { member, closing } => {
            members::closing(runner, goal, member, *closing).await
        }
        Trial::Loss { member } => members::loss(runner, goal, member).await,
        Trial::Disconnection => members::disconnection(runner, goal).await,
        Trial::Unauthorized { member } => members::unauthorized(runner, member).await,
        Trial::NodeLoss { member } => nodes::loss(runner, goal, member).await,
        Trial::Namespace { member } => namespaces::lost(runner, member).await,
        Trial::Resume { set } => terms::resume(runner, set).await,
        Trial::Idle { set, member } => pods::idle(runner, set, member).await,
        // What members reject, or have no capacity for, is tried again.
        Trial::Restart | Trial::Twin { .. } if is_any_unsettled(runner) => Ok(()),
        Trial::Twin { member } => identity::twin(runner, member).await,
        Trial::Restart => members::restart(runner).await,
    };
    if ended.is_ok() {
        let all = |runner: &Runner| goal.pending(runner).into_iter().next();
        let _ = reached(runner, REACHED_WITHIN, "after the trial", all).await;
    }
}

/// Whether a trial is one of sets of both kinds, or its set is no FederatedDeployment.
fn is_of_deployments(runner: &Runner, trial: &Trial) -> bool {
    let is_deployment =
        |name: &&str| runner.federation.kind_of(name) == SetKind::FederatedDeployment;
    let differs = matches!(
        trial,
        Trial::Drift { .. }
            | Trial::Invalid { .. }
            | Trial::Churn { .. }
            | Trial::Idle { .. }
            | Trial::Resume { .. }
            | Trial::Foreign { .. }
            | Trial::Annotation { .. }
    );
    !differs || !trial.names().iter().any(is_deployment)
}

/// Whether the set exists, and members accept it and run all its replicas.
fn has_all(runner: &Runner, goal: &Goal, set: &str) -> bool {
    goal.wanted(runner, set)
        .is_some_and(|(wanted, replicas)| wanted == replicas && replicas > 0)
}
