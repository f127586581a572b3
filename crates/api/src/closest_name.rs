//! The name that was probably meant.

/// Unknown names that are shown at most.
const SHOWN: usize = 3;

/// Those of `names` that are no members, each with the closest one of `members`: it may be a typing error.
pub fn unknown_clusters<'a, 'm>(
    names: impl Iterator<Item = &'a str>,
    is_member: impl Fn(&str) -> bool,
    members: &(impl Iterator<Item = &'m str> + Clone),
) -> Option<String> {
    let unknown = names.filter(|name| !is_member(name)).take(SHOWN);
    let unknown = unknown.map(|name| match closest_name(name, members.clone()) {
        Some(member) => format!("no member cluster is named {name:?}; did you mean {member:?}?"),
        None => format!("no member cluster is named {name:?}"),
    });
    let unknown: Vec<_> = unknown.collect();
    (!unknown.is_empty()).then(|| unknown.join("; "))
}

/// The one of `names` that is closest to `name`, if a few edits lead from one to the other.
pub fn closest_name<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.len().max(3) / 3;
    let distances = names.map(|other| (edit_distance(name, other), other));
    let (_, closest) = distances.filter(|(distance, _)| *distance <= limit).min()?;
    Some(closest)
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
            assert_eq!(closest_name(name, members.into_iter()), expected, "{name}");
        }
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }
}
