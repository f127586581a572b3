//! How the controller would roll the template of a FederatedDeployment out.

use std::{collections::BTreeMap, time::Duration};

use federation_controller::forecast::{
    Forecast, Question, forecast,
    rollout::{
        ClusterForecast, MemberState, RolloutCluster, RolloutEnd, RolloutForecast, RolloutQuestion,
        State, StepForecast, forecast_rollout, revision,
    },
};
use fedrs_api::{
    ClusterState, ClusterStatus, MemberCluster, ObjectKey, RolloutSettings, SetKind, ValidFrs,
    annotations, unknown_clusters,
};
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use super::{
    read::{PlannedSet, Read},
    request::{PlanRequest, Sets},
    warnings,
};
use crate::{Error, cluster_client::ClusterClient};

/// How the controller would roll a template out. Times count from the present, without those until approvals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutPlan {
    /// The namespace of the FederatedDeployment.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The revision that is rolled out.
    pub revision: String,
    /// `spec.replicas`.
    pub replicas: u32,
    /// The pods that may be unavailable, over all clusters together.
    pub max_unavailable: u64,
    /// The pods that may exist beyond `replicas`, over all clusters together.
    pub max_surge: u64,
    /// How long a pod must be ready to count as available.
    pub min_ready_seconds: u32,
    /// How long a pod takes to become ready.
    pub pod_start_seconds: u64,
    /// The most pods that start in a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedPlan>,
    /// How long the rollout takes at least; none if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least_seconds: Option<u64>,
    /// The steps, in their order.
    pub steps: Vec<StepPlan>,
    /// The clusters with replicas, by name.
    pub clusters: Vec<RolloutClusterPlan>,
    /// What the user should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The most pods that start in a time, over all clusters together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpeedPlan {
    /// Pods.
    pub update_portion: u64,
    /// In any period of this length.
    pub min_delay_seconds: u64,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepPlan {
    /// Its name; none of the implied last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its clusters with replicas.
    pub clusters: Vec<String>,
    /// How many of them are updated at the same time at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_clusters: Option<usize>,
    /// Whether it waits for an approval that is not there yet.
    pub needs_approval: bool,
    /// How long it must be complete before the next step begins.
    pub soak_seconds: u64,
    /// When it begins; none if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin_seconds: Option<u64>,
    /// When its clusters are updated and available; none if they never are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_seconds: Option<u64>,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutClusterPlan {
    /// Its name.
    pub name: String,
    /// The name of its step; none of the implied last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its replicas.
    pub replicas: u32,
    /// The parts of the budget that are lent to it, in the order of their times: how many of its pods are replaced at a time.
    pub loans: Vec<LoanPlan>,
    /// When it gets the template; none if it has it, or does not get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin_seconds: Option<u64>,
    /// When all its pods are updated and available; none if they never are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_seconds: Option<u64>,
    /// Why it is not updated, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A part of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoanPlan {
    /// When it is lent.
    pub at_seconds: u64,
    /// How many pods of the cluster may be unavailable.
    pub max_unavailable: u64,
    /// How many pods it may have beyond its replicas.
    pub max_surge: u64,
}

/// Plans the rollout of one set of the host, or of a manifest, at `now`.
pub async fn plan_rollout(
    host: &ClusterClient,
    request: &PlanRequest,
    pod_start: Duration,
    now: Timestamp,
) -> Result<RolloutPlan, Error> {
    let mut read = Read::of_host(host, request).await?;
    let restarts = matches!(request.sets, Sets::One(_)) && read.planned.iter().all(is_up_to_date);
    if restarts {
        for set in &mut read.planned {
            let annotations = &mut set.set.frs.template.metadata.annotations;
            annotations.insert(annotations::RESTARTED_AT.to_owned(), now.to_string());
        }
    }
    // One set is asked for, and an error if it can't be planned.
    let set = &read.planned[0];
    let Some(rollout) = &set.set.rollout else {
        return Err(Error::SetNotPlanned {
            set: set.set.frs.key.clone(),
            reason: "a FederatedReplicaSet has no rollouts".to_owned(),
        });
    };
    let question = read.question(set, request, now);
    let layout = forecast(&question);
    let clusters = clusters(&question, &layout);
    let recorded = set.status.rollout.clone().unwrap_or_default().record;
    let forecast = forecast_rollout(&RolloutQuestion {
        frs: &set.set.frs,
        settings: rollout,
        recorded: &recorded,
        pod_start,
        now,
        clusters: &clusters,
    });
    let mut plan = RolloutPlan::of(&set.set.frs, rollout, &clusters, &forecast, pod_start);
    let of_members = warnings::of_members(&read.members, &request.what_if);
    plan.warnings.extend(of_members);
    plan.warnings.extend(layout.warnings.iter().cloned());
    let members: Vec<_> = read.members.iter().map(ResourceExt::name_any).collect();
    let members: Vec<_> = members.iter().map(String::as_str).collect();
    plan.warnings.extend(unknown_of_steps(rollout, &members));
    plan.warnings.extend(warnings_of(set, rollout));
    plan.warnings.extend(restarts.then(|| {
        "all clusters have the template of the spec: the plan is that of a restart".to_owned()
    }));
    Ok(plan)
}

impl RolloutPlan {
    /// The plan of a rollout over clusters with these replicas, of which nothing else is known.
    #[must_use]
    pub fn without_host(
        frs: &ValidFrs,
        rollout: &RolloutSettings,
        replicas: &BTreeMap<String, u32>,
        pod_start: Duration,
    ) -> Self {
        let with_replicas = replicas.iter().filter(|(_, replicas)| **replicas > 0);
        let clusters = with_replicas.map(|(name, replicas)| RolloutCluster {
            name: name.clone(),
            replicas: *replicas,
            updated: false,
            state: MemberState::Writable,
            cordoned: false,
        });
        let clusters: Vec<_> = clusters.collect();
        let forecast = forecast_rollout(&RolloutQuestion {
            frs,
            settings: rollout,
            recorded: &State::default(),
            pod_start,
            now: Timestamp::UNIX_EPOCH,
            clusters: &clusters,
        });
        let mut plan = Self::of(frs, rollout, &clusters, &forecast, pod_start);
        let members: Vec<_> = replicas.keys().map(String::as_str).collect();
        plan.warnings.extend(unknown_of_steps(rollout, &members));
        plan
    }

    fn of(
        frs: &ValidFrs,
        rollout: &RolloutSettings,
        clusters: &[RolloutCluster],
        forecast: &RolloutForecast,
        pod_start: Duration,
    ) -> Self {
        let clusters = clusters.iter().zip(&forecast.clusters);
        let clusters = clusters.map(|(cluster, forecast)| {
            let step = rollout.order.step_name(forecast.step);
            RolloutClusterPlan::of(cluster, forecast, step)
        });
        Self {
            namespace: frs.key.namespace.to_string(),
            name: frs.key.name.to_string(),
            revision: forecast.revision.clone(),
            replicas: frs.replicas,
            max_unavailable: forecast.limits.unavailable,
            max_surge: forecast.limits.surge,
            min_ready_seconds: frs.min_ready_seconds,
            pod_start_seconds: pod_start.as_secs(),
            speed: rollout.order.speed.map(|speed| SpeedPlan {
                update_portion: speed.portion,
                min_delay_seconds: speed.min_delay.as_secs(),
            }),
            at_least_seconds: match forecast.end {
                RolloutEnd::Complete(time) => Some(time.as_secs()),
                RolloutEnd::Waiting | RolloutEnd::GoesOn(_) => None,
            },
            steps: forecast.steps.iter().map(StepPlan::of).collect(),
            clusters: clusters.collect(),
            warnings: no_end(forecast.end).into_iter().collect(),
        }
    }

    /// The key of the set.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        let kind = SetKind::FederatedDeployment;
        ObjectKey::of_kind(kind, &*self.namespace, &*self.name)
    }
}

impl StepPlan {
    fn of(step: &StepForecast) -> Self {
        Self {
            name: step.name.clone(),
            clusters: step.clusters.clone(),
            max_concurrent_clusters: step.max_concurrent,
            needs_approval: step.needs_approval,
            soak_seconds: step.soak.as_secs(),
            begin_seconds: seconds(step.begins),
            complete_seconds: seconds(step.completes),
        }
    }
}

impl RolloutClusterPlan {
    fn of(cluster: &RolloutCluster, forecast: &ClusterForecast, step: Option<&str>) -> Self {
        let loans = forecast.loans.iter().map(|(at, strategy)| LoanPlan {
            at_seconds: at.as_secs(),
            max_unavailable: strategy.unavailable,
            max_surge: strategy.surge,
        });
        let message = match cluster.state {
            _ if cluster.updated => "up to date",
            MemberState::Lost => "lost: it is updated when it returns",
            MemberState::Unknown => "its state is unknown: the rollout waits for it",
            MemberState::Writable if cluster.cordoned => {
                "cordoned: it is updated when it is uncordoned"
            }
            MemberState::Writable => "",
        };
        Self {
            name: cluster.name.clone(),
            step: step.map(str::to_owned),
            replicas: cluster.replicas,
            loans: loans.collect(),
            begin_seconds: seconds(forecast.begins),
            complete_seconds: seconds(forecast.completes),
            message: message.to_owned(),
        }
    }
}

/// Whether all clusters have the template of the spec. One that was found with a template has no revision.
fn is_up_to_date(set: &PlannedSet) -> bool {
    let status = &set.status;
    let mut clusters = status.clusters.iter();
    clusters.all(|cluster| cluster.revision.is_some() || cluster.replicas == 0)
        && status.current_revision == status.update_revision
        && status.update_revision == Some(revision(&set.set.frs))
}

/// The clusters once the replicas are where they should be.
fn clusters(question: &Question<'_>, layout: &Forecast) -> Vec<RolloutCluster> {
    let revision = revision(question.frs);
    let is_new = question.status.update_revision.is_none();
    let desired = layout.status.clusters.iter();
    let desired = desired.filter(|cluster| cluster.desired_replicas > 0);
    let clusters = desired.map(|cluster| {
        let mut before = question.status.clusters.iter();
        let before = before.find(|before| before.name == cluster.name);
        let mut members = question.members.iter();
        let member = members.find(|member| member.name_any() == cluster.name);
        RolloutCluster {
            name: cluster.name.clone(),
            replicas: u32::try_from(cluster.desired_replicas).unwrap_or(0),
            updated: !is_new && before.is_none_or(|before| is_updated(before, &revision)),
            state: match cluster.state {
                Some(ClusterState::Lost) => MemberState::Lost,
                Some(ClusterState::Unknown | ClusterState::Joining) => MemberState::Unknown,
                _ => MemberState::Writable,
            },
            cordoned: member.is_some_and(is_cordoned),
        }
    });
    clusters.collect()
}

/// Whether all pods of a cluster have the revision, or it has none: it gets a Deployment with the template.
fn is_updated(before: &ClusterStatus, revision: &str) -> bool {
    let has_revision = before.revision.as_deref() == Some(revision);
    let is_empty = before.replicas == 0 && before.revision.is_none();
    is_empty || has_revision && before.updated_replicas >= before.replicas
}

fn is_cordoned(member: &MemberCluster) -> bool {
    member.spec.unschedulable || member.spec.drain
}

fn warnings_of(set: &PlannedSet, rollout: &RolloutSettings) -> Vec<String> {
    let status = &set.status;
    let is_new = status.update_revision.is_none();
    let is_rolling = status.current_revision != status.update_revision;
    let is_same = is_up_to_date(set);
    [
        (is_new, "no revision is rolled out yet: it is created at once in clusters without a Deployment of this name, and the plan is for a next \
             one, or for clusters with a Deployment of another template, which is taken over"),
        (is_same, "the template is that of the current revision: nothing is to be rolled out"),
        (
            is_rolling,
            "a rollout is in progress: the plan lends the budget anew to the clusters that are not complete",
        ),
        (rollout.paused, "spec.paused is true: the rollout begins when it is false"),
        (set.set.frs.paused, "spec.stopped is true: nothing changes until it is false"),
    ]
    .into_iter()
    .filter(|(holds, _)| *holds)
    .map(|(_, text)| text.to_owned())
    .collect()
}

/// Clusters of steps that are no members.
fn unknown_of_steps(rollout: &RolloutSettings, members: &[&str]) -> Option<String> {
    let named = rollout.order.named_clusters();
    let unknown = unknown_clusters(
        named,
        |name| members.contains(&name),
        &members.iter().copied(),
    )?;
    Some(format!("spec.rollout.steps: {unknown}"))
}

/// Why it is not known how long the rollout takes.
fn no_end(end: RolloutEnd) -> Option<String> {
    match end {
        RolloutEnd::Complete(_) => None,
        RolloutEnd::Waiting => Some(
            "the rollout does not end while clusters that it waits for can't be updated".to_owned(),
        ),
        RolloutEnd::GoesOn(time) => Some(format!(
            "the rollout goes on after {} s, which is as far as it was computed",
            time.as_secs()
        )),
    }
}

fn seconds(time: Option<Duration>) -> Option<u64> {
    time.map(|time| time.as_secs())
}
