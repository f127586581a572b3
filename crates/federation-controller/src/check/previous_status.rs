//! Finds the previous status of each member.
//!
//! The status lists clusters in the order of the members it was decided for, so that each search nearly always ends where it
//! starts: behind the entry that was found last. Searching from the front costs the square of the number of members.

use fedrs_api::ClusterStatus;

/// Looks up members in the previous status, in any order; fastest in its own.
pub(super) struct PreviousStatus<'a> {
    clusters: &'a [ClusterStatus],
    next: usize,
}

impl<'a> PreviousStatus<'a> {
    pub(super) fn of(clusters: &'a [ClusterStatus]) -> Self {
        Self { clusters, next: 0 }
    }

    /// The entry of the member with this name.
    pub(super) fn get(&mut self, name: &str) -> Option<&'a ClusterStatus> {
        let (before, after) = self.clusters.split_at(self.next);
        let mut entries = (self.next..).zip(after).chain((0..).zip(before));
        let (index, found) = entries.find(|(_, cluster)| cluster.name == name)?;
        self.next = index + 1;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_members_in_any_order() {
        let clusters = ["a", "b", "d"].map(|name| ClusterStatus {
            name: name.to_owned(),
            ..ClusterStatus::default()
        });
        let mut previous = PreviousStatus::of(&clusters);
        for name in ["a", "b", "c", "d", "d", "a", "", "b", "d"] {
            let found = previous.get(name).map(|cluster| cluster.name.as_str());
            let expected = ["a", "b", "d"].contains(&name).then_some(name);
            assert_eq!(found, expected);
        }
        assert!(PreviousStatus::of(&[]).get("a").is_none());
    }
}
