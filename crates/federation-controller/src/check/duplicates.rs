//! Finds clusters that are registered under several names, by several kubeconfigs: all of these show a local ReplicaSet with
//! the same uid.
//!
//! If its replicas counted once for each name, fewer would run than desired (F20). So they count under one name, and the
//! others are duplicates: a name that answers, or may answer in a moment, comes before others, then the one in the label of
//! the local ReplicaSet. A kubeconfig that is renamed, by adding it under another name and removing the old one, moves nothing.

use cluster_informer::Health;

use super::{eligibility::Eligibility, snapshot::Member};

/// The eligibility of `members`, of which one counts for each cluster; `alone` is the eligibility of each without the others.
pub(super) fn resolve<'a>(
    members: &'a [Member],
    alone: Vec<Eligibility<'a>>,
) -> Vec<Eligibility<'a>> {
    let mut by_uid: Vec<(&str, usize)> = members
        .iter()
        .enumerate()
        .filter_map(|(index, member)| Some((member.own_set()?.uid.as_str(), index)))
        .collect();
    by_uid.sort_unstable();
    let mut resolved = alone;
    for names in by_uid.chunk_by(|a, b| a.0 == b.0) {
        let indices = names.iter().map(|(_, index)| *index);
        let rank = |index: &usize| {
            let answers = match resolved[*index] {
                Eligibility::Joining { .. } => true,
                Eligibility::Eligible { .. } => members[*index].health == Health::Healthy,
                _ => false,
            };
            (!answers, !members[*index].has_label(), *index)
        };
        let Some(counted) = indices.clone().min_by_key(rank) else {
            continue;
        };
        for index in indices.filter(|index| *index != counted) {
            let of = &members[counted].name;
            resolved[index] = Eligibility::Duplicate { of };
        }
    }
    resolved
}
