//! `fedrs rollout plan`: how a new template would reach the clusters. Writes nothing.
//!
//! ```text
//! NAME, or -f with a host    --> membership::plan::plan_rollout --.
//! -f with --clusters         --> layout, RolloutPlan ------------'--> tables, JSON or YAML
//! ```

use std::{fmt::Write as _, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::anyhow;
use clap::Args;
use federation_controller::forecast::WhatIf;
use fedrs_api::pluralize;
use jiff::Timestamp;
use membership::{
    ValidSet,
    plan::{PlanRequest, RolloutClusterPlan, RolloutPlan, Sets, StepPlan, plan_rollout},
};

use crate::{
    config_file,
    host::HostArgs,
    output::{self, Format},
    plan::{self, ClusterArgs},
    set_name::{self, NAME_OF_KIND},
    values,
};

/// The columns of the steps.
const STEP_HEADER: &[&str] = &[
    "STEP",
    "CLUSTERS",
    "AT A TIME",
    "APPROVAL",
    "BEGINS",
    "COMPLETE",
    "SOAKS",
];
/// The columns of the clusters.
const CLUSTER_HEADER: &[&str] = &[
    "CLUSTER",
    "STEP",
    "REPLICAS",
    "UNAVAILABLE+SURGE",
    "BEGINS",
    "COMPLETE",
    "MESSAGE",
];
/// The step of the clusters that no step names.
const OTHERS: &str = "(others)";

/// Show in which order, how many pods at a time, and how fast a rollout would go, without changing anything
///
/// Computes what the controller would do with a changed FederatedDeployment (-f), or with the one of the host: with what is left
/// of its rollout, or else with a restart. The computation is the controller's own, against models of the Deployments in the
/// members, once replicas are where they should be. All pods become ready, and steps are approved at once: so the times are the
/// least that a rollout takes.
///
/// UNAVAILABLE+SURGE is the part of the budget that a cluster has: how many of its pods may be unavailable, and how many may
/// exist beyond its replicas.
#[derive(Args)]
#[command(after_help = "Examples:
  # How would this manifest be rolled out?
  fedrs rollout plan -f web.yaml

  # How would a restart of the FederatedDeployment web go, if a pod takes 20 seconds to become ready?
  fedrs rollout plan web --pod-start 20s

  # The rollout of a manifest over three clusters, without a host
  fedrs rollout plan -f web.yaml --clusters eu,us,asia")]
pub(super) struct PlanArgs {
    /// The FederatedDeployment. fdeploy/NAME works as well
    #[arg(value_name = NAME_OF_KIND, required_unless_present = "filename", conflicts_with = "filename")]
    name: Option<String>,
    /// File with a new or changed FederatedDeployment in JSON or YAML; - for standard input
    #[arg(short, long, value_name = "FILE")]
    filename: Option<PathBuf>,
    /// How long a pod takes to become ready
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    pod_start: Duration,
    /// Configuration file of the controller. By default the default configuration
    #[arg(long, value_name = "FILE", conflicts_with = "clusters")]
    config: Option<PathBuf>,
    /// Output format. By default tables
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    clusters: ClusterArgs,
}

/// Plans and prints.
pub(super) async fn run(
    args: PlanArgs,
    namespace: Option<String>,
    host: HostArgs,
) -> anyhow::Result<ExitCode> {
    let set = match args.filename.as_deref().map(plan::read_manifest) {
        Some(Err(errors)) => return Ok(plan::print_errors(errors)),
        Some(Ok(set)) => Some(set),
        None => None,
    };
    let plan = match set {
        Some(set) if args.clusters.is_used() => {
            let set = plan::placed(set, namespace.as_deref(), "default")?;
            match without_host(&set, &args) {
                Ok(plan) => plan,
                Err(errors) => return Ok(plan::print_errors(errors)),
            }
        }
        set => with_host(&args, set, namespace.as_deref(), host).await?,
    };
    let text = match args.output {
        Some(format) => format.serialize(&plan),
        None => text(&plan),
    };
    Ok(output::print(&text))
}

async fn with_host(
    args: &PlanArgs,
    set: Option<ValidSet>,
    namespace: Option<&str>,
    host: HostArgs,
) -> anyhow::Result<RolloutPlan> {
    let host = host.client().await?;
    let sets = match (set, &args.name) {
        (Some(set), _) => Sets::Manifest(Box::new(plan::placed(set, namespace, host.namespace())?)),
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            Sets::One(set_name::parse_deployment(name, namespace)?.on(&host))
        }
    };
    let request = PlanRequest {
        sets,
        replicas: None,
        what_if: WhatIf::default(),
        settings: config_file::read(args.config.as_deref())?,
    };
    Ok(plan_rollout(&host, &request, args.pod_start, Timestamp::now()).await?)
}

fn without_host(set: &ValidSet, args: &PlanArgs) -> Result<RolloutPlan, Vec<anyhow::Error>> {
    let Some(rollout) = &set.rollout else {
        return Err(vec![anyhow!("a FederatedReplicaSet has no rollouts")]);
    };
    let replicas = plan::replicas_of_clusters(&set.frs, &args.clusters)?;
    let pod_start = args.pod_start;
    Ok(RolloutPlan::without_host(
        &set.frs, rollout, &replicas, pod_start,
    ))
}

/// The plan for people: a summary, the steps, the clusters, and warnings.
fn text(plan: &RolloutPlan) -> String {
    let mut text = summary(plan);
    let steps = plan.steps.iter().map(step_row).collect::<Vec<_>>();
    let has_steps = plan.steps.iter().any(|step| step.name.is_some());
    let clusters: Vec<_> = plan.clusters.iter().map(cluster_row).collect();
    if has_steps {
        let _ = write!(text, "\n{}", output::table(STEP_HEADER, 0..0, steps));
    }
    if !clusters.is_empty() {
        let _ = write!(text, "\n{}", output::table(CLUSTER_HEADER, 2..3, clusters));
    }
    for (index, warning) in plan.warnings.iter().enumerate() {
        let separator = if index == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{separator}Warning: {warning}");
    }
    text
}

/// What the rollout is limited by, and how long it takes.
fn summary(plan: &RolloutPlan) -> String {
    let replicas = pluralize(plan.replicas, "replica");
    let clusters = pluralize(plan.clusters.len() as u64, "cluster");
    let (unavailable, surge) = (plan.max_unavailable, plan.max_surge);
    let mut text = format!(
        "{}: {replicas} in {clusters}, at most {unavailable} unavailable and {surge} surplus pods\n",
        plan.key()
    );
    let Some(seconds) = plan.at_least_seconds else {
        return text + "The end of the rollout is not known.\n";
    };
    if (plan.clusters.iter()).all(|cluster| cluster.begin_seconds.is_none()) {
        return text;
    }
    if seconds == 0 && plan.pod_start_seconds == 0 {
        return text + "Takes as long as pods take to become ready: see --pod-start.\n";
    }
    let _ = write!(text, "Takes at least {}", length(seconds));
    if plan.steps.iter().any(|step| step.needs_approval) {
        text.push_str(", without the time until approvals");
    }
    let ready = plan.pod_start_seconds + u64::from(plan.min_ready_seconds);
    let ready = length(ready);
    let _ = write!(text, ": a pod is available {ready} after it starts");
    if let Some(speed) = plan.speed {
        let pods = pluralize(speed.update_portion, "pod");
        let _ = write!(
            text,
            "; at most {pods} in {}",
            length(speed.min_delay_seconds)
        );
    }
    text + "\n"
}

fn step_row(step: &StepPlan) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let concurrent = step.max_concurrent_clusters;
    vec![
        step.name.as_deref().unwrap_or(OTHERS).to_owned(),
        or_none(Some(step.clusters.join(", ")).filter(|clusters| !clusters.is_empty())),
        or_none(concurrent.map(|limit| pluralize(limit as u64, "cluster"))),
        or_none(step.needs_approval.then(|| "needed".to_owned())),
        or_none(step.begin_seconds.map(length)),
        or_none(step.complete_seconds.map(length)),
        or_none(Some(length(step.soak_seconds)).filter(|_| step.soak_seconds > 0)),
    ]
}

fn cluster_row(cluster: &RolloutClusterPlan) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let loans = cluster.loans.iter().enumerate().map(|(index, loan)| {
        let (unavailable, surge) = (loan.max_unavailable, loan.max_surge);
        match index {
            0 => format!("{unavailable}+{surge}"),
            _ => format!("{unavailable}+{surge} from {}", length(loan.at_seconds)),
        }
    });
    let loans = loans.collect::<Vec<_>>().join(", ");
    vec![
        cluster.name.clone(),
        cluster.step.as_deref().unwrap_or("-").to_owned(),
        cluster.replicas.to_string(),
        or_none(Some(loans).filter(|loans| !loans.is_empty())),
        or_none(cluster.begin_seconds.map(length)),
        or_none(cluster.complete_seconds.map(length)),
        cluster.message.clone(),
    ]
}

/// A length of time: `1h2m`, `11m30s`.
fn length(seconds: u64) -> String {
    let parts = [
        (seconds / 3600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, unit)| format!("{count}{unit}"));
    match &*parts.collect::<Vec<_>>().concat() {
        "" => "0s".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
