//! How numbers are told.

use std::fmt::Display;

/// So many of something: `1 replica`, `2 replicas`.
pub fn pluralize<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::pluralize;

    #[test]
    fn one_is_told_as_one() {
        let told = [0, 1, 2].map(|number: u64| pluralize(number, "replica"));
        assert_eq!(told, ["0 replicas", "1 replica", "2 replicas"]);
    }
}
