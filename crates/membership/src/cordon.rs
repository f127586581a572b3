//! Cordon and uncordon: whether replicas are added to a member.

use fedrs_api::MemberClusterSpec;
use serde_json::{Value, json};

use crate::{cluster_client::ClusterClient, member_cluster, say::Say};

/// Cordons the member `name`.
pub async fn cordon(host: &ClusterClient, name: &str, say: &mut Say) -> anyhow::Result<()> {
    set(host, name, cordoned, say).await
}

/// Uncordons the member `name`; ends a drain, too.
pub async fn uncordon(host: &ClusterClient, name: &str, say: &mut Say) -> anyhow::Result<()> {
    set(host, name, uncordoned, say).await
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
    host: &ClusterClient,
    name: &str,
    decide: fn(&MemberClusterSpec) -> Decision,
    say: &mut Say,
) -> anyhow::Result<()> {
    let member = member_cluster::existing(host, name).await?;
    let (spec, told) = decide(&member.spec);
    if let Some(spec) = spec {
        member_cluster::ask(host, &member, spec).await?;
    }
    say.line(format_args!("membercluster/{name} {told}"));
    Ok(())
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
