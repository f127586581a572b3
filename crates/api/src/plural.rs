//! Numbers with nouns in messages.

use std::fmt::Display;

/// A number with its noun: `1 replica`, `2 replicas`.
pub fn pluralize<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    format!("{number} {}", plural(number, noun))
}

/// The noun of a number of things, without the number: `finalizer` for 1, else `finalizers`.
pub fn plural<N: Copy + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::pluralize;

    #[test]
    fn one_takes_the_singular() {
        let texts = [0, 1, 2].map(|number: u64| pluralize(number, "replica"));
        assert_eq!(texts, ["0 replicas", "1 replica", "2 replicas"]);
    }
}
