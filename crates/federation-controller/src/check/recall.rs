//! Finds what the last check remembered of each member.
//!
//! The status lists clusters in the order of the members it was made for, so that each search nearly always ends where it
//! starts: behind the entry that was found last. Searching from the front costs the square of the number of members.

use fedrs_api::ClusterStatus;

/// Looks members up in the memory, in any order; quickest in its own.
pub(crate) struct Recall<'a> {
    clusters: &'a [ClusterStatus],
    next: usize,
}

impl<'a> Recall<'a> {
    /// Looks members up in `clusters`.
    pub(crate) fn from(clusters: &'a [ClusterStatus]) -> Self {
        Self { clusters, next: 0 }
    }

    /// The entry of the member with this name.
    pub(crate) fn of(&mut self, name: &str) -> Option<&'a ClusterStatus> {
        let (before, after) = self.clusters.split_at(self.next);
        let from_next = (self.next..).zip(after).chain((0..).zip(before));
        let (place, found) = from_next.into_iter().find(|(_, it)| it.name == name)?;
        self.next = place + 1;
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
        let mut recall = Recall::from(&clusters);
        for name in ["a", "b", "c", "d", "d", "a", "", "b", "d"] {
            let found = recall.of(name).map(|it| it.name.as_str());
            assert_eq!(
                found,
                clusters
                    .iter()
                    .map(|it| it.name.as_str())
                    .find(|it| *it == name)
            );
        }
        assert!(Recall::from(&[]).of("a").is_none());
    }
}
