//! `fedrs cordon` and `fedrs uncordon`: whether replicas are added to a member.

use std::process::ExitCode;

use clap::Args;
use fedrs_api::MemberClusterSpec;
use serde_json::{Value, json};

use crate::{
    host::HostOfMembers,
    membership::cluster,
    remote::{Remote, Side},
    say::Say,
    values,
};

/// Add no more replicas to a member; those that run there stay
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs cordon eu-west
  fedrs uncordon eu-west      # takes it back")]
pub(crate) struct CordonArgs {
    #[command(flatten)]
    which: Which,
}

/// Add replicas to a member again; ends a drain, too
#[derive(Args, Debug)]
pub(crate) struct UncordonArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
struct Which {
    /// The member
    #[arg(value_parser = values::dns_label)]
    name: String,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Cordons.
pub(crate) async fn cordon(args: CordonArgs) -> anyhow::Result<ExitCode> {
    set(&args.which, cordoned).await
}

/// Uncordons.
pub(crate) async fn uncordon(args: UncordonArgs) -> anyhow::Result<ExitCode> {
    set(&args.which, uncordoned).await
}

/// What is to be changed, if anything, and what to say.
type Decision = (Option<Value>, &'static str);

fn cordoned(spec: &MemberClusterSpec) -> Decision {
    if spec.unschedulable {
        return (None, "is cordoned already");
    }
    (Some(json!({ "unschedulable": true })), "cordoned")
}

fn uncordoned(spec: &MemberClusterSpec) -> Decision {
    let told = match (spec.unschedulable, spec.drain) {
        (false, false) => return (None, "is not cordoned"),
        (_, false) => "uncordoned",
        (_, true) => "uncordoned: it is no longer drained",
    };
    // Absent, as they are where nobody asked for anything.
    let spec = json!({ "unschedulable": null, "drain": null });
    (Some(spec), told)
}

async fn set(
    which: &Which,
    decide: fn(&MemberClusterSpec) -> Decision,
) -> anyhow::Result<ExitCode> {
    let host = Remote::new(Side::Host, which.host.config().await?)?;
    let member = cluster::existing(&host, &which.name).await?;
    let (spec, told) = decide(&member.spec);
    if let Some(spec) = spec {
        cluster::ask(&host, &member, spec).await?;
    }
    Say::to_terminal().line(format_args!("membercluster/{} {told}", which.name));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(false, false, true, false)]
    #[case(true, false, false, true)]
    #[case(false, true, true, true)]
    #[case(true, true, false, true)]
    fn only_what_is_not_so_already_is_changed(
        #[case] unschedulable: bool,
        #[case] drain: bool,
        #[case] cordon_changes: bool,
        #[case] uncordon_changes: bool,
    ) {
        let spec = MemberClusterSpec {
            unschedulable,
            drain,
            ..MemberClusterSpec::default()
        };
        assert_eq!(cordoned(&spec).0.is_some(), cordon_changes);
        assert_eq!(uncordoned(&spec).0.is_some(), uncordon_changes);
    }
}
