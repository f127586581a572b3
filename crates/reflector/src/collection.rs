//! What is listed and watched.

use std::sync::Arc;

/// A collection of the API, such as all pods, or those that selectors match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Path of the collection, such as `/apis/apps/v1/replicasets`.
    pub path: Arc<str>,
    /// Label selector, or all objects.
    pub label_selector: Option<String>,
    /// Field selector, or all objects.
    pub field_selector: Option<String>,
}

impl Collection {
    /// All objects of the collection at `path`.
    pub fn all(path: impl Into<Arc<str>>) -> Self {
        Self {
            path: path.into(),
            label_selector: None,
            field_selector: None,
        }
    }

    /// The objects at `path` that `label_selector` matches.
    pub fn with_labels(path: impl Into<Arc<str>>, label_selector: impl Into<String>) -> Self {
        Self {
            label_selector: Some(label_selector.into()),
            ..Self::all(path)
        }
    }

    /// The objects at `path` that `field_selector` matches.
    pub fn with_fields(path: impl Into<Arc<str>>, field_selector: impl Into<String>) -> Self {
        Self {
            field_selector: Some(field_selector.into()),
            ..Self::all(path)
        }
    }

    /// The collection's URI with `parameters` and its selectors.
    pub(crate) fn uri(&self, parameters: &[(&str, &str)]) -> String {
        let mut uri = self.path.to_string();
        let selectors = [
            ("labelSelector", &self.label_selector),
            ("fieldSelector", &self.field_selector),
        ];
        let selectors = selectors
            .iter()
            .filter_map(|(name, selector)| Some((*name, selector.as_deref()?)));
        for (position, (name, value)) in parameters.iter().copied().chain(selectors).enumerate() {
            uri.push(if position == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            percent_encode(value, &mut uri);
        }
        uri
    }
}

/// Percent-encodes all but what is unreserved in a URI (RFC 3986, 2.3).
fn percent_encode(value: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let [high, low] =
                [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
            out.extend(['%', high, low]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_encoded() {
        let collection = Collection::with_labels("/api/v1/pods", "example.com/team=a,app");
        assert_eq!(
            collection.uri(&[("limit", "500"), ("continue", "a+b=")]),
            "/api/v1/pods?limit=500&continue=a%2Bb%3D&labelSelector=example.com%2Fteam%3Da%2Capp"
        );
        assert_eq!(Collection::all("/api/v1/pods").uri(&[]), "/api/v1/pods");
        assert_eq!(
            Collection::with_fields("/api/v1/secrets", "type=example.com/token").uri(&[]),
            "/api/v1/secrets?fieldSelector=type%3Dexample.com%2Ftoken"
        );
    }
}
