//! What a LocalReplicaSet has in common with Kubernetes' own ReplicaSet (C1 to C8): the same cases run with both, and what the
//! two do is compared.
//!
//! ```text
//! case(MemberSet) -> lines of what was seen, of a ReplicaSet
//!               -> lines of what was seen, of a LocalReplicaSet -> equal, but for the differences that the case explains
//! ```

mod deletion;
mod ownership;
mod removal;
mod scaling;
mod status;

use fedrs_tests::{scenario::Scenario, test_environment::TestEnvironment};

use crate::member_set::{Kind, MEMBER, MemberSet};

pub(crate) fn scenarios() -> Vec<Scenario> {
    let mut scenarios = scaling::scenarios();
    scenarios.extend(removal::scenarios());
    scenarios.extend(ownership::scenarios());
    scenarios.extend(deletion::scenarios());
    scenarios.extend(status::scenarios());
    for scenario in &mut scenarios {
        scenario.name = format!("replica_sets::{}", scenario.name);
    }
    scenarios
}

/// A line that differs on purpose.
struct Difference {
    native: &'static str,
    local: &'static str,
    why: &'static str,
}

/// Runs a case with each kind of set, and compares what was seen. `expected` is what a ReplicaSet shows, so that a case that shows
/// nothing fails.
async fn compare(
    env: &mut TestEnvironment,
    expected: &[&str],
    differences: &[Difference],
    case: impl AsyncFn(&MemberSet<'_>) -> Vec<String>,
) {
    env.start_local_controller(MEMBER).await;
    let mut seen = Vec::new();
    for kind in [Kind::Native, Kind::Local] {
        let set = MemberSet { env, kind };
        seen.push(case(&set).await);
        set.remove().await;
    }
    let [native, local] = &seen[..] else {
        unreachable!("there are two kinds")
    };
    assert_eq!(native, expected, "of the ReplicaSet");
    let expected: Vec<_> = (expected.iter())
        .map(|line| {
            let difference = differences.iter().find(|known| known.native == *line);
            difference.map_or(*line, |difference| difference.local)
        })
        .collect();
    let why: Vec<_> = differences.iter().map(|known| known.why).collect();
    assert_eq!(*local, expected, "of the LocalReplicaSet; {why:?}");
}
