//! `fedrs rollout history`.

use std::process::ExitCode;

use clap::Args;
use membership::rollout::{History, Revision, Target, history};

use super::{
    name::{NameArgs, kubectl_name},
    view::View,
};
use crate::output::{self, Format};

/// Show the revisions, or the template of one
#[derive(Args)]
#[command(after_help = "Examples:
  # Show the revisions, and which clusters have them
  fedrs rollout history web

  # Show the pod template of revision 3
  fedrs rollout history web --revision=3")]
pub(super) struct HistoryArgs {
    #[command(flatten)]
    pub(super) name: NameArgs,
    #[command(flatten)]
    pub(super) options: HistoryOptions,
}

/// What is shown of the revisions.
#[derive(Args)]
pub(crate) struct HistoryOptions {
    /// Show the pod template of the revision with this number
    #[arg(long, value_name = "N")]
    revision: Option<i64>,
    /// Output format. By default a table
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

pub(crate) async fn run<K: View>(
    target: Target<'_, K>,
    options: &HistoryOptions,
) -> anyhow::Result<ExitCode> {
    let history = history(target).await?;
    let name = kubectl_name(target);
    let text = match (options.revision, options.output) {
        (None, None) => table(&name, &history),
        (None, Some(format)) => format.serialize(&history.revisions),
        (Some(number), None) => template(&name, history.find(number)?),
        (Some(number), Some(format)) => format.serialize(history.find(number)?),
    };
    Ok(output::print(&text))
}

fn table<K: View>(name: &str, history: &History<K>) -> String {
    if history.revisions.is_empty() {
        return format!("{name}\nNo revisions yet.\n");
    }
    let rows = history.revisions.iter().map(|revision| {
        let cause = revision.change_cause.as_deref();
        vec![
            revision.revision.to_string(),
            revision.name.clone(),
            cause.unwrap_or("<none>").to_owned(),
            revision.users.to_string(),
        ]
    });
    let header = ["REVISION", "NAME", "CHANGE-CAUSE", K::USERS];
    let table = output::table(&header, 0..0, rows.collect());
    format!("{name}\n{table}")
}

/// The template below a heading, indented.
fn template(name: &str, revision: &Revision) -> String {
    let yaml = Format::Yaml.serialize(&revision.template);
    let lines = yaml.lines().map(|line| format!("  {line}\n"));
    let cause = revision.change_cause.as_ref();
    let cause = cause.map_or(String::new(), |cause| format!("Change Cause: {cause}\n"));
    let number = revision.revision;
    let mut text = format!("{name} with revision #{number}\n{cause}Pod Template:\n");
    text.extend(lines);
    text
}
