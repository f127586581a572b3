//! Cordon and uncordon: whether a member gets new replicas.

use fedrs_api::MemberClusterSpec;
use serde_json::{Value, json};

use crate::{
    cluster_client::ClusterClient,
    member_cluster::{self, MemberClusterError},
    progress::{Progress, Reporter},
};

/// Cordons the member `name`: it gets no new replicas, and running ones stay.
pub async fn cordon(
    host: &ClusterClient,
    name: &str,
    reporter: &mut dyn Reporter,
) -> Result<(), MemberClusterError> {
    let member = member_cluster::get(host, name).await?;
    let name = name.to_owned();
    let progress = match cordon_patch(&member.spec) {
        Some(patch) => {
            member_cluster::patch_spec(host, &member, patch).await?;
            Progress::Cordoned(name)
        }
        None => Progress::AlreadyCordoned(name),
    };
    reporter.progress(progress);
    Ok(())
}

/// Uncordons the member `name`: it gets replicas again. Cancels a drain.
pub async fn uncordon(
    host: &ClusterClient,
    name: &str,
    reporter: &mut dyn Reporter,
) -> Result<(), MemberClusterError> {
    let member = member_cluster::get(host, name).await?;
    let name = name.to_owned();
    let progress = match uncordon_patch(&member.spec) {
        Some(patch) => {
            member_cluster::patch_spec(host, &member, patch).await?;
            Progress::Uncordoned {
                name,
                canceled_drain: member.spec.drain,
            }
        }
        None => Progress::NotCordoned(name),
    };
    reporter.progress(progress);
    Ok(())
}

/// The patch that cordons a member; `None` if it is cordoned.
fn cordon_patch(spec: &MemberClusterSpec) -> Option<Value> {
    (!spec.unschedulable).then(|| json!({ "unschedulable": true }))
}

/// The patch that uncordons a member; `None` if it is neither cordoned nor drained.
fn uncordon_patch(spec: &MemberClusterSpec) -> Option<Value> {
    // Removes the fields, as in a member that was never cordoned.
    (spec.unschedulable || spec.drain).then(|| json!({ "unschedulable": null, "drain": null }))
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
    fn only_a_change_is_written(
        #[case] unschedulable: bool,
        #[case] drain: bool,
        #[case] cordon_writes: bool,
        #[case] uncordon_writes: bool,
    ) {
        let spec = MemberClusterSpec {
            unschedulable,
            drain,
            ..MemberClusterSpec::default()
        };
        assert_eq!(cordon_patch(&spec).is_some(), cordon_writes);
        assert_eq!(uncordon_patch(&spec).is_some(), uncordon_writes);
    }
}
