//! The metrics of several registries as one text: each family once, as the format requires.

use std::fmt::Write as _;

/// The lines of one family.
struct Family<'t> {
    name: &'t str,
    /// HELP, TYPE and UNIT.
    head: Vec<&'t str>,
    samples: Vec<&'t str>,
}

/// Merges `texts`, in which metrics that have the same name have the same head. Families keep the order in which they appear first.
pub(crate) fn merge(texts: &[String]) -> String {
    let mut families: Vec<Family<'_>> = Vec::new();
    for text in texts {
        let mut current = None;
        let mut is_new = false;
        for line in text.lines() {
            let Some(name) = described(line) else {
                if let Some(family) = current.map(|place: usize| &mut families[place]) {
                    family.samples.push(line);
                }
                continue;
            };
            if current.is_none_or(|place: usize| families[place].name != name) {
                let known = families.iter().position(|family| family.name == name);
                is_new = known.is_none();
                current = Some(known.unwrap_or(families.len()));
                if is_new {
                    families.push(Family {
                        name,
                        head: Vec::new(),
                        samples: Vec::new(),
                    });
                }
            }
            if is_new && let Some(place) = current {
                families[place].head.push(line);
            }
        }
    }
    let mut merged = String::new();
    for family in &families {
        for line in family.head.iter().chain(&family.samples) {
            let _ = writeln!(merged, "{line}");
        }
    }
    merged
}

/// The name of the family that a line of a head describes.
fn described(line: &str) -> Option<&str> {
    let words = line.strip_prefix("# ")?;
    let (kind, rest) = words.split_once(' ')?;
    let name = rest.split(' ').next()?;
    matches!(kind, "HELP" | "TYPE" | "UNIT").then_some(name)
}

#[cfg(test)]
mod tests {
    use prometheus_client::{
        encoding::text::encode_registry, metrics::counter::Counter, registry::Registry,
    };

    use super::*;

    #[test]
    fn each_family_is_described_once() {
        let text = |cluster: &str, names: &[&str]| {
            let labels = [("cluster".into(), cluster.to_owned().into())].into_iter();
            let mut registry = Registry::with_prefix_and_labels("fedrs", labels);
            for name in names {
                registry.register(*name, "Some", Counter::<u64>::default());
            }
            let mut text = String::new();
            encode_registry(&mut text, &registry).unwrap();
            text
        };
        let merged = merge(&[text("a", &["one", "two"]), text("b", &["two", "three"])]);
        insta::assert_snapshot!(merged, @r#"
        # HELP fedrs_one Some.
        # TYPE fedrs_one counter
        fedrs_one_total{cluster="a"} 0
        # HELP fedrs_two Some.
        # TYPE fedrs_two counter
        fedrs_two_total{cluster="a"} 0
        fedrs_two_total{cluster="b"} 0
        # HELP fedrs_three Some.
        # TYPE fedrs_three counter
        fedrs_three_total{cluster="b"} 0
        "#);
    }
}
