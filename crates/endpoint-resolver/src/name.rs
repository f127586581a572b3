//! The name of a set.

use std::{fmt, str::FromStr, sync::Arc};

/// The most characters of a namespace.
const MAX_NAMESPACE: usize = 63;
/// The most characters of a name.
const MAX_NAME: usize = 253;

/// The name of an `EndpointSet`: `NAMESPACE/NAME`, both as Kubernetes has them. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetName(Arc<(String, String)>);

/// A text that names no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no EndpointSet: must be NAMESPACE/NAME, of lower case letters, digits, '-', and '.' in the name"
)]
pub struct InvalidSetName(String);

impl SetName {
    /// The set `name` of `namespace`.
    pub fn new(namespace: &str, name: &str) -> Result<Self, InvalidSetName> {
        let is_valid = namespace.len() <= MAX_NAMESPACE
            && is_label(namespace)
            && name.len() <= MAX_NAME
            && name.split('.').all(is_label);
        if !is_valid {
            return Err(InvalidSetName(format!("{namespace}/{name}")));
        }
        Ok(Self(Arc::new((namespace.to_owned(), name.to_owned()))))
    }

    /// The namespace: a DNS label.
    pub fn namespace(&self) -> &str {
        &self.0.0
    }

    /// The name in the namespace: DNS labels with dots between them.
    pub fn name(&self) -> &str {
        &self.0.1
    }
}

impl FromStr for SetName {
    type Err = InvalidSetName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((namespace, name)) => Self::new(namespace, name),
            None => Err(InvalidSetName(text.to_owned())),
        }
    }
}

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace(), self.name())
    }
}

/// Whether the text is a DNS label. Such names lead to no other directory when they are parts of the names of files.
fn is_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_name("shop/web", true)]
    #[case::dots_in_the_name("shop/web.v2", true)]
    #[case::dots_in_the_namespace("shop.eu/web", false)]
    #[case::no_namespace("web", false)]
    #[case::empty_namespace("/web", false)]
    #[case::empty_name("shop/", false)]
    #[case::three_parts("a/b/c", false)]
    #[case::another_directory("../web", false)]
    #[case::the_directory_above("shop/..", false)]
    #[case::upper_case("Shop/web", false)]
    #[case::a_dash_at_the_end("shop/web-", false)]
    fn d1_a_set_has_a_namespace_and_a_name(#[case] text: &str, #[case] is_valid: bool) {
        let name = text.parse::<SetName>();
        assert_eq!(name.is_ok(), is_valid, "{name:?}");
        if let Ok(name) = name {
            assert_eq!(name.to_string(), text);
        }
    }
}
