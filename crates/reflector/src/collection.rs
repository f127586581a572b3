//! What is listed and watched.

use std::sync::Arc;

use crate::error::Verb;

/// A collection of the API, such as all pods, or those that selectors match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Path of the collection, such as `/apis/apps/v1/replicasets`.
    pub path: Arc<str>,
    /// Label selector, or all objects.
    pub label_selector: Option<String>,
    /// Field selector, or all objects.
    pub field_selector: Option<String>,
    /// Whether the server sends nothing but the metadata of objects.
    pub only_metadata: bool,
}

impl Collection {
    /// All objects of the collection at `path`.
    pub fn all(path: impl Into<Arc<str>>) -> Self {
        Self {
            path: path.into(),
            label_selector: None,
            field_selector: None,
            only_metadata: false,
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

    /// The same, of each object nothing but its metadata.
    #[must_use]
    pub fn metadata(self) -> Self {
        Self {
            only_metadata: true,
            ..self
        }
    }

    /// The media type that is asked for. Servers that do not know the one for metadata send whole objects.
    pub(crate) fn accept(&self, verb: Verb) -> &'static str {
        match verb {
            _ if !self.only_metadata => "application/json",
            Verb::List => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
            Verb::Watch => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
            }
        }
    }

    /// The collection's URI with `parameters` and its selectors.
    pub(crate) fn uri(&self, parameters: &[(&str, &str)]) -> String {
        let selectors = [
            ("labelSelector", &self.label_selector),
            ("fieldSelector", &self.field_selector),
        ];
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        for (name, selector) in selectors {
            query.extend_pairs(selector.iter().map(|selector| (name, selector)));
        }
        format!("{}?{}", self.path, query.finish())
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
        assert_eq!(
            Collection::with_fields("/api/v1/secrets", "type=example.com/token").uri(&[]),
            "/api/v1/secrets?fieldSelector=type%3Dexample.com%2Ftoken"
        );
    }

    #[test]
    fn only_metadata_is_asked_for_if_servers_know_how() {
        let all = Collection::all("/api/v1/pods");
        let metadata = all.clone().metadata();
        for (collection, verb, expected) in [
            (&all, Verb::List, None),
            (&all, Verb::Watch, None),
            (&metadata, Verb::List, Some("PartialObjectMetadataList")),
            (&metadata, Verb::Watch, Some("PartialObjectMetadata")),
        ] {
            let accepted: Vec<_> = collection.accept(verb).split(',').collect();
            let partial = expected.map(|of| format!("application/json;as={of};g=meta.k8s.io;v=v1"));
            let expected = partial.as_deref().into_iter().chain(["application/json"]);
            assert_eq!(accepted, expected.collect::<Vec<_>>());
        }
    }
}
