//! Names in the preferences that are no member clusters, and the members that they may mean.

use std::collections::BTreeSet;

use fedrs_api::Placement;

/// Names that are shown at most.
const SHOWN: usize = 3;

/// Names in `placement` that are none of `members`, each with the closest name of a member.
pub(super) fn unknown_names<'a>(
    placement: &'a Placement,
    members: &[&'a str],
) -> Vec<(&'a str, Option<&'a str>)> {
    let known: BTreeSet<_> = members.iter().copied().collect();
    let named = placement.clusters.keys().map(String::as_str);
    named
        .filter(|name| *name != "*" && !known.contains(name))
        .take(SHOWN)
        .map(|name| (name, closest(name, members)))
        .collect()
}

/// The member whose name is closest to `name`, if a few edits lead from one to the other.
fn closest<'a>(name: &str, members: &[&'a str]) -> Option<&'a str> {
    let limit = name.len().max(3) / 3;
    let distances = members
        .iter()
        .map(|member| (edit_distance(name, member), *member));
    let (_, member) = distances.filter(|(distance, _)| *distance <= limit).min()?;
    Some(member)
}

/// Insertions, deletions and replacements of bytes that lead from `a` to `b` (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_a_few_edits_away() {
        let members = ["eu-east", "eu-west", "us-west"];
        for (name, expected) in [
            ("eu-wst", Some("eu-west")),
            ("us-wets", Some("us-west")),
            ("eu_west", Some("eu-west")),
            ("asia", None),
            ("eu", None),
        ] {
            assert_eq!(closest(name, &members), expected, "{name}");
        }
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }
}
