//! Cordon and uncordon: whether a member gets new replicas.

use fedrs_api::MemberClusterSpec;
use serde_json::json;

use crate::{
    Error,
    cluster_client::ClusterClient,
    member_cluster::{SpecChange, change_spec},
    progress::{Progress, Reporter},
};

/// Cordons the member `name`: it gets no new replicas, and running ones stay.
pub async fn cordon(
    host: &ClusterClient,
    name: &str,
    reporter: &mut dyn Reporter,
) -> Result<(), Error> {
    change_spec(host, name, cordon_change, reporter).await?;
    Ok(())
}

/// Uncordons the member `name`: it gets replicas again. Cancels a drain.
pub async fn uncordon(
    host: &ClusterClient,
    name: &str,
    reporter: &mut dyn Reporter,
) -> Result<(), Error> {
    change_spec(host, name, uncordon_change, reporter).await?;
    Ok(())
}

fn cordon_change(spec: &MemberClusterSpec) -> SpecChange {
    if spec.unschedulable {
        (None, Progress::AlreadyCordoned)
    } else {
        (Some(json!({ "unschedulable": true })), Progress::Cordoned)
    }
}

fn uncordon_change(spec: &MemberClusterSpec) -> SpecChange {
    // Removes the fields, as in a member that was never cordoned.
    let schedulable = json!({ "unschedulable": null, "drain": null });
    match (spec.drain, spec.unschedulable) {
        (true, _) => (Some(schedulable), Progress::DrainCanceled),
        (false, true) => (Some(schedulable), Progress::Uncordoned),
        (false, false) => (None, Progress::AlreadyUncordoned),
    }
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
        assert_eq!(cordon_change(&spec).0.is_some(), cordon_writes);
        assert_eq!(uncordon_change(&spec).0.is_some(), uncordon_writes);
    }
}
