//! `fedrs maintenance`: planned work on nodes of members, from its start to its end (M9, M15).

use std::{fmt::Write as _, process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use fedrs_api::{Maintenance, MaintenanceStatus, conditions::ConditionStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use membership::{
    cluster_client::ClusterClient,
    maintenance::{self, Work},
};

use crate::{
    host::HostArgs,
    output::{self, print_error, print_line},
    values::{self, Moment},
};

/// Plan work on nodes of members: their pods leave in time, and nothing is scheduled to them until it ends
///
/// A Maintenance on the host says which nodes of which members are worked on. From its start on, the controller cordons and marks them,
/// and the controllers of LocalReplicaSets there move the pods away, within the budgets of their services, until the deadline.
/// The pods of other controllers stay: `kubectl drain` evicts them.
#[derive(Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:
  # A rack of the member eu is switched off for an hour, in a week at the latest
  fedrs maintenance start rack-7 --clusters=eu -l rack=r7 --duration=1h --deadline=7d

  # Who still blocks, and until when?
  fedrs maintenance status rack-7

  # The machines are back
  fedrs maintenance end rack-7"
)]
pub(crate) struct MaintenanceArgs {
    #[command(subcommand)]
    command: MaintenanceCommand,
    #[command(flatten)]
    host: HostArgs,
}

#[derive(Subcommand)]
enum MaintenanceCommand {
    /// Create a Maintenance
    Start {
        /// The Maintenance
        name: String,
        #[command(flatten)]
        work: Box<WorkArgs>,
    },
    /// Show how far Maintenances are, and of one of them, which pods wait and until when
    Status {
        /// The Maintenance. By default all
        name: Option<String>,
    },
    /// End a Maintenance: its nodes are uncordoned, unless they were cordoned before
    End {
        /// The Maintenance
        name: String,
    },
}

#[derive(Args)]
struct WorkArgs {
    /// The members. By default all
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = values::dns_label)]
    clusters: Vec<String>,
    /// The labels of the nodes. By default all nodes of the members in --clusters
    #[arg(
        long, short = 'l', value_name = "KEY=VALUE,...", value_delimiter = ',', value_parser = values::key_value,
        required_unless_present = "clusters"
    )]
    selector: Vec<(String, String)>,
    /// When it begins, as in 2027-01-15T08:00:00Z. By default at once
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    start_time: Option<Timestamp>,
    /// How long the machines are away
    #[arg(long, value_name = "DURATION", value_parser = values::days_or_less)]
    duration: Option<Duration>,
    /// When pods leave whatever holds them up: a time, or a duration after the start. By default what the configuration of the members'
    /// controllers says, a week
    #[arg(long, value_name = "TIME|DURATION", value_parser = values::moment)]
    deadline: Option<Moment>,
    /// Why, for people
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    reason: String,
    /// Name of the federation. By default the federation without a name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = values::federation)]
    federation: String,
}

impl WorkArgs {
    fn work(self, now: Timestamp) -> Work {
        let begin = self.start_time.unwrap_or(now);
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        Work {
            clusters: self.clusters,
            labels: self.selector.into_iter().collect(),
            start_time: self.start_time,
            duration_seconds: self.duration.map(seconds),
            deadline: self.deadline.map(|deadline| match deadline {
                Moment::At(time) => time,
                Moment::After(duration) => values::after(begin, duration),
            }),
            reason: self.reason,
            federation: self.federation,
        }
    }
}

/// Runs `fedrs maintenance`.
pub(crate) async fn run(args: MaintenanceArgs) -> anyhow::Result<ExitCode> {
    let host = args.host.client().await?;
    match args.command {
        MaintenanceCommand::Start { name, work } => {
            maintenance::start(&host, &name, work.work(Timestamp::now())).await?;
            print_line(format_args!("maintenance/{name} created"));
        }
        MaintenanceCommand::End { name } => {
            let ended = maintenance::end(&host, &name).await?;
            let done = if ended { "ended" } else { "had ended before" };
            print_line(format_args!("maintenance/{name} {done}"));
        }
        MaintenanceCommand::Status { name } => return status(&host, name.as_deref()).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn status(host: &ClusterClient, name: Option<&str>) -> anyhow::Result<ExitCode> {
    let Some(name) = name else {
        let all = maintenance::list(host).await?;
        if all.is_empty() {
            print_error("no Maintenances");
            return Ok(ExitCode::SUCCESS);
        }
        return Ok(output::print(&table(&all)));
    };
    let one = maintenance::get(host, name).await?;
    let status = one.status.clone().unwrap_or_default();
    let mut text = table(&[one]);
    if !status.clusters.is_empty() {
        text.push('\n');
        text.push_str(&clusters(&status));
    }
    if !status.blocking.is_empty() {
        text.push('\n');
        text.push_str(&blocking(&status));
    }
    let problems = problems(&status);
    if !problems.is_empty() {
        text.push('\n');
        text.push_str(&problems);
    }
    Ok(output::print(&text))
}

fn table(maintenances: &[Maintenance]) -> String {
    let columns = [
        "NAME", "PHASE", "NODES", "CORDONED", "EMPTIED", "BLOCKING", "START", "DEADLINE", "REASON",
    ];
    let rows = maintenances.iter().map(|maintenance| {
        let status = maintenance.status.clone().unwrap_or_default();
        let spec = &maintenance.spec;
        let start = spec.start_time.as_ref().or(status.started.as_ref());
        vec![
            maintenance.name_any(),
            status
                .phase
                .map_or_else(String::new, |phase| phase.to_string()),
            status.nodes.matched.to_string(),
            status.nodes.cordoned.to_string(),
            status.nodes.emptied.to_string(),
            status.blocking_total.to_string(),
            output::time(start.map(|start| start.0)),
            output::time(spec.deadline.as_ref().map(|deadline| deadline.0)),
            spec.reason.clone(),
        ]
    });
    output::wide_table(&columns, 2..6, rows.collect())
}

fn clusters(status: &MaintenanceStatus) -> String {
    let columns = ["CLUSTER", "NODES", "CORDONED", "EMPTIED", "PODS-LEFT"];
    let rows = status.clusters.iter().map(|cluster| {
        let counts = [
            cluster.nodes,
            cluster.cordoned,
            cluster.emptied,
            cluster.pods_left,
        ];
        let counts = counts.iter().map(ToString::to_string);
        [cluster.name.clone()].into_iter().chain(counts).collect()
    });
    output::wide_table(&columns, 1..5, rows.collect())
}

/// The pods that wait, and how many more there are.
fn blocking(status: &MaintenanceStatus) -> String {
    let columns = [
        "CLUSTER",
        "NAMESPACE",
        "POD",
        "NODE",
        "PHASE",
        "UNTIL",
        "DEADLINE",
        "MESSAGE",
    ];
    let rows = status.blocking.iter().map(|pod| {
        vec![
            pod.cluster.clone(),
            pod.namespace.clone(),
            pod.pod.clone(),
            pod.node.clone(),
            pod.phase
                .map_or_else(String::new, |phase| phase.to_string()),
            output::time(pod.until.as_ref().map(|until| until.0)),
            output::time(pod.deadline.as_ref().map(|deadline| deadline.0)),
            pod.message.clone(),
        ]
    });
    let mut text = output::wide_table(&columns, 0..0, rows.collect());
    let total = usize::try_from(status.blocking_total).unwrap_or_default();
    let more = total.saturating_sub(status.blocking.len());
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
    text
}

/// The conditions that say what is wrong, one in each line.
fn problems(status: &MaintenanceStatus) -> String {
    use fedrs_api::MaintenanceConditionType::{NodesHeld, PodsNotAsked};
    let is_problem = |type_: &str, status: &str| {
        let is_bad = [NodesHeld, PodsNotAsked]
            .iter()
            .any(|of| of.as_str() == type_);
        let good = if is_bad {
            ConditionStatus::False
        } else {
            ConditionStatus::True
        };
        status != good.as_str()
    };
    let conditions = status.conditions.iter();
    let problems = conditions.filter(|of| is_problem(&of.type_, &of.status));
    let lines = problems.map(|of| {
        let text = format!("{} {} ({}): {}", of.type_, of.status, of.reason, of.message);
        output::in_one_line(text) + "\n"
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m15_the_status_shows_who_blocks_until_when() {
        let pod = json!({
            "cluster": "eu", "namespace": "shop", "pod": "web-0a1b2", "node": "n1",
            "phase": "WaitingForBudget", "message": "the budget of the set",
            "until": "2027-01-15T09:00:00Z", "deadline": "2027-01-22T08:00:00Z",
        });
        let condition = |type_: &str, status: &str, reason: &str, message: &str| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2027-01-15T08:00:00Z",
            })
        };
        let status: MaintenanceStatus = serde_json::from_value(json!({
            "phase": "Draining", "started": "2027-01-15T08:00:00Z",
            "nodes": { "matched": 3, "cordoned": 2, "emptied": 1 },
            "clusters": [{ "name": "eu", "nodes": 3, "cordoned": 2, "emptied": 1, "podsLeft": 21 }],
            "blocking": [pod], "blockingTotal": 21,
            "conditions": [
                condition("Accepted", "True", "Valid", "the spec is valid"),
                condition("MembersReachable", "False", "MembersUnreachable", "us: no answer"),
                condition("NodesHeld", "True", "MarkedByAnother", "eu/n3 (rack-8)"),
            ],
        }))
        .unwrap();
        let mut maintenance = Maintenance::new(
            "rack-7",
            serde_json::from_value(json!({
                "nodeSelector": {}, "deadline": "2027-01-22T08:00:00Z", "reason": "power supply",
            }))
            .unwrap(),
        );
        maintenance.status = Some(status.clone());
        let text = [
            table(&[maintenance]),
            clusters(&status),
            blocking(&status),
            problems(&status),
        ];
        insta::assert_snapshot!(text.join("\n"));
    }
}
