//! What is to be rolled out, and how: the input.

use std::time::Duration;

use crate::{
    budget::{Budget, Limits},
    member::{Member, MemberState},
};

/// A rollout over all clusters.
#[derive(Clone, Copy, Debug)]
pub struct Rollout<'a> {
    /// The revision that all members should have.
    pub target: &'a str,
    /// The revision that all members had last, if that is another one: missing Deployments of later steps are created with it.
    /// `None` until all members had one: the first creation is no rollout.
    pub previous: Option<&'a str>,
    /// Desired replicas over all clusters, N.
    pub replicas: u64,
    /// What may be unavailable, and what may run beyond N, over all clusters (L14).
    pub budget: Budget,
    /// What others allow of it; `None` if nobody limits it.
    pub limit: Option<Limit>,
    /// The most pods to start in a time, over all clusters (L15).
    pub speed: Option<Speed>,
    /// The order of the members. A last step with all that are in none is implied.
    pub steps: &'a [Step<'a>],
    /// What was approved.
    pub approvals: &'a [Approval<'a>],
    /// No loan is given and no template written (L8); recalls go on. Deployments that roll are paused, and keep what is lent to
    /// them; LocalReplicaSets give it back.
    pub paused: bool,
    /// After this time without progress the rollout has failed. Counted while loans are out in members whose view is current.
    pub progress_deadline: Option<Duration>,
    /// What happens then.
    pub on_failure: OnFailure,
    /// The members in the order in which loans are given where needs are equal. The loan of a member that is missing here ends:
    /// pass lost members in.
    pub members: &'a [Member<'a>],
}

/// What others allow of a budget, such as an AvailabilitySet that lends parts of its own one to evictions, too (A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most pods of N that may be unavailable.
    pub unavailable: u64,
    /// Whether one member is updated at a time (M16).
    pub one_member: bool,
}

/// The most pods that start updating in a time, over all clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Pods, at least 1.
    pub portion: u64,
    /// In any period of this length. Each member's `minReadySeconds` is at least as long.
    pub min_delay: Duration,
}

/// Members that are updated together.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The step's name.
    pub name: &'a str,
    /// The names of its members. A member in two steps belongs to the first one.
    pub members: &'a [&'a str],
    /// How long all of them have to be updated and available before the next step begins.
    pub soak: Duration,
    /// Whether it begins only when it was approved for the target revision.
    pub approval_before: bool,
    /// The most of its members that are updated at the same time; no limit if `None`.
    pub max_concurrent: Option<usize>,
}

/// A step that may begin, for one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approval<'a> {
    /// The step's name.
    pub step: &'a str,
    /// The revision that was approved.
    pub revision: &'a str,
}

/// What happens when a rollout fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Nothing: loans that are out stay out.
    Stop,
    /// The caller sets the previous revision as the target.
    Undo,
}

impl Rollout<'_> {
    /// The budget in pods, within what others allow.
    pub(crate) fn limits(&self) -> Limits {
        let limits = self.own_limits();
        let most = self.limit.map_or(u64::MAX, |limit| limit.unavailable);
        Limits {
            unavailable: limits.unavailable.min(most),
            ..limits
        }
    }

    fn own_limits(&self) -> Limits {
        let present = (self.members.iter()).filter(|member| member.state != MemberState::Lost);
        let replicas = present.filter_map(|member| member.deployment.map(|found| found.replicas));
        let largest = replicas.clone().max().unwrap_or_default();
        let limits = self.budget.resolve(self.replicas, largest);
        if self.budget != Budget::CreateFirst {
            return limits;
        }
        let beyond = replicas.sum::<u64>().saturating_sub(self.replicas);
        Limits {
            unavailable: limits.unavailable.min(beyond),
            ..limits
        }
    }
}
