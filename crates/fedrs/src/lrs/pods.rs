//! How the update of a LocalReplicaSet is shown: a line for each revision, with its pods by group (L16).

use std::ops::Range;

use fedrs_api::{LocalReplicaSet, RevisionPods};

use crate::{output, rollout::view::View};

impl View for LocalReplicaSet {
    const USERS: &'static str = "PODS";
    const COLUMNS: &'static [&'static str] = &[
        "REVISION",
        "READY",
        "IN-PROGRESS",
        "FAILED",
        "MARKED-REMOVE",
    ];
    const NUMBERS: Range<usize> = 1..5;

    fn row(pods: &RevisionPods) -> Vec<String> {
        let RevisionPods {
            revision,
            ready,
            in_progress,
            failed,
            marked_remove,
        } = pods;
        let name = if revision.is_empty() {
            "<unknown>"
        } else {
            revision
        };
        let groups = [ready, in_progress, failed, marked_remove];
        let groups = groups.into_iter().map(ToString::to_string);
        [name.to_owned()].into_iter().chain(groups).collect()
    }

    /// Each revision has pods that may still be updated.
    fn is_complete(_pods: &RevisionPods) -> bool {
        false
    }

    fn details(revisions: &[RevisionPods]) -> String {
        if revisions.is_empty() {
            return String::new();
        }
        let rows = revisions.iter().map(Self::row).collect();
        output::table(Self::COLUMNS, Self::NUMBERS, rows)
    }
}
