//! One cluster that is a member under several names, by two kubeconfigs: the uid of the set that all of them show tells.
//!
//! What runs there would count once for each name, and fewer would run than wanted (F20). So one name counts, and the
//! others hold nothing: one that is usable, or may be in a moment, before others, then the one that the set is marked
//! with. A kubeconfig that is renamed by adding it under another name and taking the old one away moves nothing.

use super::{snapshot::Member, standing::Standing};

/// Leaves one name to each cluster.
pub(super) fn tell_apart(members: &[Member], standings: &mut [Standing]) {
    let mut by_uid: Vec<(&str, usize)> = members
        .iter()
        .enumerate()
        .filter_map(|(i, it)| Some((it.own_set()?.uid.as_str(), i)))
        .collect();
    by_uid.sort_unstable();
    for names in by_uid.chunk_by(|a, b| a.0 == b.0).filter(|it| it.len() > 1) {
        let rank = |i: usize| {
            let hopeful = matches!(standings[i], Standing::Usable | Standing::Joining { .. });
            (!hopeful, !members[i].is_marked(), i)
        };
        let places = names.iter().map(|(_, i)| *i);
        let Some(counts) = places.clone().min_by_key(|i| rank(*i)) else {
            continue;
        };
        for i in places.filter(|i| *i != counts) {
            let of = members[counts].name.clone();
            standings[i] = Standing::Twin { of };
        }
    }
}
