//! Whether a layout is one that the placement asks for (F2, F3, F12, F14, F16): by the placement as the user wrote it, and by
//! the conditions that a fair layout fulfils, instead of the scheduler that is under test.

use std::borrow::Cow;

use fedrs_api::annotations;
use serde_json::{Value, json};

/// What is wrong with the replicas that are `requested` of each member, in a federation where no capacity binds and replicas
/// move to their shares.
pub(super) fn wrong_layout(frs: &Value, requested: &[(&str, u64)]) -> Option<String> {
    let replicas = frs["spec"]["replicas"].as_u64().unwrap_or(1);
    let clusters = clusters(frs);
    let bounds: Vec<_> = requested
        .iter()
        .map(|(member, _)| Bounds::of(&clusters, member))
        .collect();
    let most: u64 = bounds.iter().map(Bounds::most).fold(0, u64::saturating_add);
    if most < replicas {
        // What runs where the placement does not want it stays, as long as no other cluster can take it (F3, F20).
        return None;
    }
    let members = || requested.iter().zip(&bounds);
    let sum: u64 = requested.iter().map(|(_, replicas)| replicas).sum();
    if sum != replicas {
        return Some(format!(
            "{sum} replicas are requested instead of {replicas}"
        ));
    }
    let least: u64 = bounds.iter().map(|bounds| bounds.least).sum();
    let has_minimums = least <= replicas;
    for ((member, requested), bounds) in members() {
        let is_within = if has_minimums {
            (bounds.least..=bounds.most()).contains(requested)
        } else {
            // There are not enough replicas for all minimums.
            *requested <= bounds.least
        };
        if !is_within {
            return Some(format!(
                "{requested} replicas in {member}, which has {bounds:?}"
            ));
        }
    }
    if !has_minimums {
        return None;
    }
    // Webster's condition: no replica above the minimums is worth more in another cluster that may have it.
    for ((from, has), of_from) in members().filter(|((_, has), bounds)| *has > bounds.least) {
        for ((to, other), of_to) in members().filter(|((_, other), bounds)| *other < bounds.most())
        {
            let (extra, others) = (has - of_from.least, other - of_to.least);
            if of_to.weight * (2 * extra - 1) > of_from.weight * (2 * others + 1) {
                return Some(format!(
                    "a replica of {from} ({has}, {of_from:?}) belongs to {to} ({other}, {of_to:?})"
                ));
            }
        }
    }
    None
}

/// The preferences by cluster: of the field, else of the annotation, else even ones.
fn clusters(frs: &Value) -> Cow<'_, Value> {
    if let Some(placement) = frs["spec"].get("placement") {
        return Cow::Borrowed(&placement["clusters"]);
    }
    let preferences = frs["metadata"]["annotations"][annotations::PREFERENCES].as_str();
    let preferences = preferences.and_then(|text| serde_json::from_str::<Value>(text).ok());
    Cow::Owned(match preferences {
        Some(mut preferences) => preferences["clusters"].take(),
        None => json!({ "*": { "weight": 1 } }),
    })
}

/// The preference for one member.
#[derive(Debug)]
struct Bounds {
    least: u64,
    max: u64,
    weight: u64,
}

impl Bounds {
    /// The preference for `member`, by its own name or else by `*`.
    fn of(clusters: &Value, member: &str) -> Self {
        let own = clusters.get(member).or_else(|| clusters.get("*"));
        let nothing = json!({ "maxReplicas": 0 });
        let preference = own.unwrap_or(&nothing);
        let number = |field: &str| {
            let capitalized = field[..1].to_uppercase() + &field[1..];
            let value = preference
                .get(field)
                .or_else(|| preference.get(capitalized));
            value.and_then(Value::as_u64)
        };
        let max = number("maxReplicas").unwrap_or(u64::MAX);
        Self {
            least: number("minReplicas").unwrap_or(0).min(max),
            max,
            weight: number("weight").unwrap_or(0),
        }
    }

    /// The most replicas that the member gets.
    fn most(&self) -> u64 {
        if self.weight == 0 {
            self.least
        } else {
            self.max
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_layout_has_bounds_and_is_fair() {
        let wrong = |clusters: Value, replicas: u64, requested: &[u64]| {
            let frs =
                json!({ "spec": { "replicas": replicas, "placement": { "clusters": clusters } } });
            let members = ["a", "b", "c"].into_iter().zip(requested.iter().copied());
            wrong_layout(&frs, &members.collect::<Vec<_>>()).is_some()
        };
        let even = || json!({ "*": { "weight": 1 } });
        assert!(!wrong(even(), 10, &[3, 3, 4]));
        assert!(wrong(even(), 10, &[2, 4, 4]));
        assert!(wrong(even(), 10, &[3, 3, 3]));
        let weighted = || json!({ "a": { "weight": 3 }, "b": { "weight": 1 } });
        assert!(!wrong(weighted(), 8, &[6, 2, 0]));
        assert!(wrong(weighted(), 8, &[4, 4, 0]));
        assert!(wrong(weighted(), 8, &[5, 2, 1]));
        let bounded = || json!({ "a": { "weight": 1, "maxReplicas": 2 }, "*": { "weight": 1, "minReplicas": 1 } });
        assert!(!wrong(bounded(), 10, &[2, 4, 4]));
        assert!(wrong(bounded(), 10, &[3, 3, 4]));
        let minimums =
            || json!({ "a": { "minReplicas": 4 }, "*": { "weight": 1, "minReplicas": 4 } });
        assert!(!wrong(minimums(), 6, &[4, 2, 0]));
        assert!(wrong(minimums(), 6, &[5, 1, 0]));
        assert!(!wrong(minimums(), 20, &[4, 8, 8]));
        assert!(wrong(minimums(), 20, &[6, 7, 7]));
        // More than the placement allows stays where it is.
        assert!(!wrong(
            json!({ "a": { "weight": 1, "maxReplicas": 2 } }),
            6,
            &[2, 3, 0]
        ));
    }
}
