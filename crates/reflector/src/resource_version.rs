//! Which of two states of an object, or of a collection, is older.

/// A `resourceVersion` as a number; unknown if the server writes something else.
///
/// Since Kubernetes 1.35 clients may compare resource versions as numbers; every release before does the same inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceVersion(u64);

impl ResourceVersion {
    /// Reads `text`. Kubernetes never assigns 0, so 0 marks a text that is not a number.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(text.parse().unwrap_or(0))
    }

    fn is_known(self) -> bool {
        self.0 != 0
    }

    /// Whether this is certainly older than `other`: only if both are numbers.
    #[must_use]
    pub fn is_older_than(self, other: Self) -> bool {
        self.is_known() && other.is_known() && self.0 < other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers_or_not_at_all() {
        let is_older = |a, b| ResourceVersion::parse(a).is_older_than(ResourceVersion::parse(b));
        assert!(is_older("9", "10"));
        assert!(!is_older("10", "10"));
        assert!(!is_older("a", "10"));
        assert!(!is_older("9", "b"));
    }
}
