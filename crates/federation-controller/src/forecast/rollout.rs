//! Forecasts a rollout: runs the steps of `federated-rollout` against models of the members' Deployments until all clusters that
//! it waits for are updated. Pure.
//!
//! ```text
//! settings, clusters --> step --writes--> DeploymentModel of each cluster --pods--> step, ..., from one event to the next
//! ```
//!
//! Each pod that starts becomes ready, each state is recorded at once, and each step is approved when it asks for it. So the
//! times are those that a rollout takes at least.

use std::{collections::BTreeMap, time::Duration};

use federated_rollout::{
    Amount, Approval, Budget, Decision, Limits, Member, OnFailure, Rollout, Step, Strategy, step,
};
pub use federated_rollout::{MemberState, State};
use fedrs_api::{LocalKind, RolloutSettings, ValidFrs, revision_name};
use jiff::{SignedDuration, Timestamp};

use super::deployment_model::DeploymentModel;
use crate::manifest;

/// The most rounds of a forecast.
const MAX_ROUNDS: u32 = 50_000;
/// The revision of the clusters that do not have the target.
const OTHER: &str = "";

/// A rollout to forecast.
#[derive(Clone, Copy, Debug)]
pub struct RolloutQuestion<'a> {
    /// What is rolled out.
    pub frs: &'a ValidFrs,
    /// How a new template reaches the clusters. A pause has no effect.
    pub settings: &'a RolloutSettings,
    /// What the host has recorded. The forecast continues its steps; what is lent is lent anew.
    pub recorded: &'a State,
    /// How long a pod takes to become ready.
    pub pod_start: Duration,
    /// The present time, from which others count.
    pub now: Timestamp,
    /// The clusters by name, once the replicas are where they should be.
    pub clusters: &'a [RolloutCluster],
}

/// A cluster before the rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutCluster {
    /// Its name.
    pub name: String,
    /// Its replicas.
    pub replicas: u32,
    /// Whether all its pods have the template already.
    pub updated: bool,
    /// Whether its state is known.
    pub state: MemberState,
    /// Whether it gets no template, because it is cordoned or drained.
    pub cordoned: bool,
}

/// How a rollout would go on. Times count from the present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutForecast {
    /// The name of the revision that is rolled out.
    pub revision: String,
    /// The budget in pods.
    pub limits: Limits,
    /// How it ends.
    pub end: RolloutEnd,
    /// The steps with clusters, in their order.
    pub steps: Vec<StepForecast>,
    /// The clusters, in the order of the question.
    pub clusters: Vec<ClusterForecast>,
}

/// How a rollout ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutEnd {
    /// All clusters that it waits for are updated after this time at least, without the time until steps are approved.
    Complete(Duration),
    /// It waits for clusters that can't be updated now.
    Waiting,
    /// It is not complete after this time: nothing later was computed.
    GoesOn(Duration),
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepForecast {
    /// Its name; `None` of the implied last one.
    pub name: Option<String>,
    /// The names of its clusters that have replicas.
    pub clusters: Vec<String>,
    /// How many of them are updated at the same time at most.
    pub max_concurrent: Option<usize>,
    /// Whether it begins only when it is approved, and is not approved yet.
    pub needs_approval: bool,
    /// How long it must be complete before the next one begins.
    pub soak: Duration,
    /// When it begins; `None` if it does not.
    pub begins: Option<Duration>,
    /// When its clusters are updated and available.
    pub completes: Option<Duration>,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterForecast {
    /// The index of its step in [`RolloutForecast::steps`].
    pub step: usize,
    /// The parts of the budget that are lent to it, in the order of their times.
    pub loans: Vec<(Duration, Strategy)>,
    /// When it gets the template; `None` if it has it already, or does not get it.
    pub begins: Option<Duration>,
    /// When all its pods are updated and available; `None` if they never are.
    pub completes: Option<Duration>,
}

/// The name of the revision with the template of a set.
#[must_use]
pub fn revision(frs: &ValidFrs) -> String {
    revision_name(&frs.key.name, manifest::template_hash(frs))
}

/// Finds how the rollout would go on.
#[must_use]
pub fn forecast_rollout(question: &RolloutQuestion<'_>) -> RolloutForecast {
    let names: Vec<_> = question
        .clusters
        .iter()
        .map(|cluster| &*cluster.name)
        .collect();
    let members = question.settings.order.step_members(&names);
    let steps = question.settings.order.steps(&members);
    let mut run = Run::begin(question, &steps);
    let settles = run.play();
    run.forecast(settles)
}

/// The rounds so far.
struct Run<'a> {
    question: &'a RolloutQuestion<'a>,
    steps: &'a [Step<'a>],
    revision: String,
    /// One for each cluster.
    models: Vec<DeploymentModel>,
    state: State,
    limits: Limits,
    now: Timestamp,
    /// When each step has begun, and was complete.
    step_times: BTreeMap<usize, (Duration, Option<Duration>)>,
    /// One for each cluster.
    clusters: Vec<ClusterForecast>,
}

impl<'a> Run<'a> {
    fn begin(question: &'a RolloutQuestion<'a>, steps: &'a [Step<'a>]) -> Self {
        let revision = revision(question.frs);
        let of_cluster = |cluster: &RolloutCluster| ClusterForecast {
            step: step_of(steps, &cluster.name),
            loans: Vec::new(),
            begins: None,
            completes: None,
        };
        Self {
            question,
            steps,
            state: begun(question, &revision),
            revision,
            models: (question.clusters.iter())
                .map(|cluster| model(question, cluster))
                .collect(),
            limits: Limits::default(),
            now: question.now,
            step_times: BTreeMap::new(),
            clusters: question.clusters.iter().map(of_cluster).collect(),
        }
    }

    /// Returns whether nothing more happens in the end.
    fn play(&mut self) -> bool {
        for _ in 0..MAX_ROUNDS {
            let decision = self.decide();
            let min_ready = self.question.frs.min_ready_seconds;
            let delay = self.question.pod_start + Duration::from_secs(min_ready.into());
            let mut changed = self.state != decision.state || !decision.writes.is_empty();
            self.limits = decision.account.limits;
            self.record_loans(&decision.state);
            self.state = decision.state;
            for write in &decision.writes {
                let mut clusters = self.question.clusters.iter();
                let index = clusters.position(|cluster| cluster.name == write.member);
                if let Some(index) = index {
                    self.models[index].write(write.action);
                }
            }
            for model in &mut self.models {
                changed |= model.sync(self.now, delay);
                changed |= model.mature(self.now);
            }
            self.record_completion();
            if changed {
                continue;
            }
            let pods = self.models.iter().filter_map(DeploymentModel::next);
            match pods.chain(decision.next).min() {
                Some(next) if next > self.now => self.now = next,
                _ => return true,
            }
        }
        false
    }

    /// One step of the rollout, with all approvals.
    fn decide(&self) -> Decision {
        let RolloutQuestion {
            frs,
            settings,
            clusters,
            ..
        } = *self.question;
        let revision = &*self.revision;
        let speed = settings.order.speed;
        let min_delay = speed.map(|speed| speed.min_delay);
        let members = clusters.iter().zip(&self.models);
        let members = members.map(|(cluster, model)| Member {
            name: &cluster.name,
            state: cluster.state,
            cordoned: cluster.cordoned,
            requested: 0,
            creates: false,
            waits_for_nodes: false,
            deployment: Some(model.seen((revision, OTHER), min_delay, self.now)),
        });
        let members: Vec<_> = members.collect();
        let approvals = self.steps.iter().map(|step| Approval {
            step: step.name,
            revision,
        });
        let rollout = Rollout {
            target: revision,
            previous: None,
            replicas: frs.replicas.into(),
            budget: match settings.budget {
                // The one that is created first is modeled as a surge.
                Budget::CreateFirst => Budget::RollingUpdate {
                    max_unavailable: Amount::Number(0),
                    max_surge: Amount::Number(1),
                },
                budget => budget,
            },
            limit: None,
            speed,
            steps: self.steps,
            approvals: &approvals.collect::<Vec<_>>(),
            paused: false,
            progress_deadline: None,
            on_failure: OnFailure::Stop,
            members: &members,
        };
        step(&rollout, &self.state, self.now)
    }

    fn elapsed(&self) -> Duration {
        let elapsed = self.now.duration_since(self.question.now);
        elapsed.max(SignedDuration::ZERO).unsigned_abs()
    }

    /// Records what `state` lends, and which steps it begins.
    fn record_loans(&mut self, state: &State) {
        let now = self.elapsed();
        for step in 0..state.begun.len() {
            self.step_times.entry(step).or_insert((now, None));
        }
        for (cluster, forecast) in self.question.clusters.iter().zip(&mut self.clusters) {
            let Some(loan) = state.loans.get(&cluster.name) else {
                continue;
            };
            let last = forecast.loans.last();
            if last.is_none_or(|(_, strategy)| *strategy != loan.strategy) {
                forecast.loans.push((now, loan.strategy));
            }
            forecast.begins.get_or_insert(now);
        }
    }

    fn record_completion(&mut self) {
        let now = self.elapsed();
        for (model, forecast) in self.models.iter().zip(&mut self.clusters) {
            if model.is_complete() {
                forecast.completes.get_or_insert(now);
            }
        }
        let awaited = self.question.clusters.iter().zip(&self.clusters);
        let awaited: Vec<_> = awaited
            .filter(|(cluster, _)| is_awaited(cluster))
            .map(|(_, forecast)| forecast)
            .collect();
        for (step, (_, completes)) in &mut self.step_times {
            let mut clusters = awaited.iter().filter(|forecast| forecast.step == *step);
            if clusters.all(|forecast| forecast.completes.is_some()) {
                completes.get_or_insert(now);
            }
        }
    }

    fn forecast(self, settles: bool) -> RolloutForecast {
        let of_step = |step: usize| {
            let clusters = self.question.clusters.iter().zip(&self.clusters);
            let clusters = clusters.filter(|(_, forecast)| forecast.step == step);
            let clusters: Vec<_> = clusters.map(|(cluster, _)| cluster.name.clone()).collect();
            let settings = self.steps.get(step);
            let times = self.step_times.get(&step);
            StepForecast {
                name: settings.map(|settings| settings.name.to_owned()),
                clusters,
                max_concurrent: settings.and_then(|settings| settings.max_concurrent),
                needs_approval: settings.is_some_and(|settings| self.needs_approval(settings)),
                soak: settings.map(|settings| settings.soak).unwrap_or_default(),
                begins: times.map(|(begins, _)| *begins),
                completes: times.and_then(|(_, completes)| *completes),
            }
        };
        let steps = (0..=self.steps.len()).map(of_step);
        // The implied last step may have no clusters.
        let steps: Vec<_> = steps
            .filter(|step| step.name.is_some() || !step.clusters.is_empty())
            .collect();
        let ends: Option<Vec<_>> = steps.iter().map(|step| step.completes).collect();
        RolloutForecast {
            limits: self.limits,
            end: match ends {
                Some(ends) => RolloutEnd::Complete(ends.into_iter().max().unwrap_or_default()),
                None if settles => RolloutEnd::Waiting,
                None => RolloutEnd::GoesOn(self.elapsed()),
            },
            revision: self.revision,
            steps,
            clusters: self.clusters,
        }
    }

    fn needs_approval(&self, step: &Step<'_>) -> bool {
        let approvals = self.question.settings.order.approvals();
        let mut approvals = approvals.iter();
        let approved = approvals
            .any(|approval| (approval.step, approval.revision) == (step.name, &*self.revision));
        step.approval_before && !approved
    }
}

/// What is recorded of the steps of the revision.
fn begun(question: &RolloutQuestion<'_>, revision: &str) -> State {
    let recorded = question.recorded;
    if recorded.revision != revision {
        return State::default();
    }
    State {
        revision: revision.to_owned(),
        begun: recorded.begun.clone(),
        soaking_since: recorded.soaking_since,
        ..State::default()
    }
}

/// Whether the rollout waits for the cluster.
fn is_awaited(cluster: &RolloutCluster) -> bool {
    !cluster.cordoned && cluster.state != MemberState::Lost
}

fn step_of(steps: &[Step<'_>], cluster: &str) -> usize {
    let mut steps_of = steps.iter();
    let step = steps_of.position(|step| step.members.contains(&cluster));
    step.unwrap_or(steps.len())
}

/// The Deployment of a cluster before the rollout. A LocalReplicaSet that is given one replica more first is modeled as a Deployment
/// with a surge.
fn model(question: &RolloutQuestion<'_>, cluster: &RolloutCluster) -> DeploymentModel {
    let is_local = question.frs.local == LocalKind::LocalReplicaSet
        && question.settings.budget != Budget::CreateFirst;
    DeploymentModel::new(cluster.replicas.into(), cluster.updated, is_local)
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
