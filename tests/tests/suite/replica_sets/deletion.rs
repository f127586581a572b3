//! The deletion of a set, with its pods or without them (C7).

use std::collections::BTreeSet;

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};

use super::compare;
use crate::member_set::{MemberSet, name_of, owner};

pub(super) fn scenarios() -> Vec<Scenario> {
    use super::deletion;
    vec![scenario!(
        deletion::c7_a_deletion_takes_the_pods_or_leaves_them,
        LocalReplicaSets
    )]
}

async fn c7_a_deletion_takes_the_pods_or_leaves_them(env: &mut TestEnvironment) {
    let expected = [
        "Background: 0 pods",
        "Foreground: 0 pods when the set is gone",
        "Orphan: 3 pods, owned by nobody: true",
        "the next set has the same ones: true",
    ];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        let mut seen = Vec::new();
        set.run(3).await;
        set.delete("Background").await;
        set.until("the pods are gone", async || set.pods().await.is_empty())
            .await;
        seen.push("Background: 0 pods".to_owned());
        set.run(3).await;
        set.delete("Foreground").await;
        seen.push(format!(
            "Foreground: {} pods when the set is gone",
            set.pods().await.len()
        ));
        set.run(3).await;
        let before: BTreeSet<_> = set.owned().await.iter().map(name_of).collect();
        set.delete("Orphan").await;
        let pods = set.pods().await;
        let is_free = pods.iter().all(|pod| owner(pod).is_null());
        seen.push(format!(
            "Orphan: {} pods, owned by nobody: {is_free}",
            pods.len()
        ));
        set.run(3).await;
        let after: BTreeSet<_> = set.owned().await.iter().map(name_of).collect();
        seen.push(format!(
            "the next set has the same ones: {}",
            after == before
        ));
        seen
    })
    .await;
}
