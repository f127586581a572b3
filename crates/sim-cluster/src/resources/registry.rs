//! The kinds that are served: the built-in ones, and those of established definitions.
//!
//! definition committed -> `custom_kinds` -> `define` -> found by path; definition removed -> `forget`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::schema::CustomSchema;

use super::builtin::kinds;
use super::kind::{CustomVersion, Kind, KindInfo, ScalePaths, Subresource};

/// The served kinds by group, version and plural.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    kinds: BTreeMap<(String, String, String), Kind>,
    /// Groups in the order of discovery, each with its versions, the preferred one first.
    groups: Vec<(String, Vec<String>)>,
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Self {
            kinds: BTreeMap::new(),
            groups: Vec::new(),
        };
        for kind in kinds::all() {
            registry.insert(kind);
        }
        registry
    }
}

impl Registry {
    /// The kind of a path's group, version and plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        // Three short strings a request; a borrowed key would cost a wrapper type.
        self.kinds
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The kind of an object's `apiVersion` and `kind`.
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kinds
            .values()
            .find(|each| each.kind == kind && each.group == group && each.version == version)
    }

    /// All kinds, ordered by group, version and plural.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.values()
    }

    /// The kinds of one group and version, ordered by plural.
    pub(crate) fn of_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Kind> {
        self.kinds
            .values()
            .filter(move |kind| kind.group == group && kind.version == version)
    }

    /// Groups in the order of discovery with their versions, the preferred one first.
    pub(crate) fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }

    /// Serves the kinds of a definition and no longer those of its former state.
    pub(crate) fn define(&mut self, definition: &Value) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        self.forget(name);
        for kind in custom_kinds(definition) {
            self.insert(kind);
        }
    }

    /// Stops serving the kinds of that definition.
    pub(crate) fn forget(&mut self, definition: &str) {
        let is_of = |kind: &Kind| {
            (kind.custom.as_ref()).is_some_and(|custom| custom.definition == definition)
        };
        self.kinds.retain(|_, kind| !is_of(kind));
        let kinds = &self.kinds;
        for (group, versions) in &mut self.groups {
            versions.retain(|version| {
                kinds
                    .values()
                    .any(|kind| kind.group == *group && kind.version == *version)
            });
        }
        self.groups.retain(|(_, versions)| !versions.is_empty());
    }

    fn insert(&mut self, kind: Kind) {
        let position = (self.groups.iter()).position(|(group, _)| *group == kind.group);
        let versions = if let Some(position) = position {
            &mut self.groups[position].1
        } else {
            self.groups.push((kind.group.clone(), Vec::new()));
            &mut self.groups.last_mut().expect("just pushed").1
        };
        if !versions.contains(&kind.version) {
            versions.push(kind.version.clone());
            versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        }
        let key = (
            kind.group.clone(),
            kind.version.clone(),
            kind.plural.clone(),
        );
        self.kinds.insert(key, kind);
    }
}

/// The order of versions that Kubernetes documents: v10 > v2 > v1 > v2beta1 > v1beta1 > v1alpha1 > others.
fn version_priority(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let other = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return other();
    };
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse() else {
        return other();
    };
    let (stage, minor) = match &rest[digits..] {
        "" => (3, Ok(0)),
        tail if tail.starts_with("beta") => (2, tail["beta".len()..].parse()),
        tail if tail.starts_with("alpha") => (1, tail["alpha".len()..].parse()),
        _ => return other(),
    };
    minor.map_or_else(
        |_| other(),
        |minor| (stage, major, minor, std::cmp::Reverse(String::new())),
    )
}

/// The kinds a definition serves, one per served version.
fn custom_kinds(definition: &Value) -> Vec<Kind> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let words = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .map(|items| items.iter().map(text).collect())
            .unwrap_or_default()
    };
    let (group, names) = (text(&spec["group"]), &spec["names"]);
    let plural = text(&names["plural"]);
    let served = (spec["versions"].as_array().into_iter().flatten())
        .filter(|version| version["served"] == json!(true));
    served
        .map(|version| {
            let custom = custom_version(definition, version);
            Kind::new(KindInfo {
                group: group.clone(),
                version: text(&version["name"]),
                kind: text(&names["kind"]),
                list_kind: text(&names["listKind"]),
                plural: plural.clone(),
                singular: text(&names["singular"]),
                short_names: words(&names["shortNames"]),
                categories: words(&names["categories"]),
                namespaced: spec["scope"] == json!("Namespaced"),
                subresources: custom_subresources(version, &text(&names["kind"])),
                storage: Arc::from(format!("{plural}.{group}")),
                custom: Some(Arc::new(custom)),
            })
        })
        .collect()
}

fn custom_version(definition: &Value, version: &Value) -> CustomVersion {
    let schema = version.pointer("/schema/openAPIV3Schema").cloned();
    let scale = version.pointer("/subresources/scale");
    let pointer = |scale: &Value, field: &str| -> Option<String> {
        let path = scale[field].as_str().filter(|path| !path.is_empty())?;
        Some(path.replace('.', "/"))
    };
    let replicas = scale.and_then(|scale| pointer(scale, "specReplicasPath"));
    let schema = CustomSchema::new(&schema.unwrap_or_else(
        || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    ));
    CustomVersion {
        version: version.clone(),
        schema: match replicas {
            Some(pointer) => schema.with_replicas_at(&pointer),
            None => schema,
        },
        definition: (definition["metadata"]["name"].as_str().unwrap_or_default()).to_owned(),
        scale: scale.and_then(|scale| {
            Some(ScalePaths {
                spec_replicas: pointer(scale, "specReplicasPath")?,
                status_replicas: pointer(scale, "statusReplicasPath")?,
                label_selector: pointer(scale, "labelSelectorPath"),
            })
        }),
    }
}

fn custom_subresources(version: &Value, kind: &str) -> Vec<Subresource> {
    let mut subresources = Vec::new();
    if version.pointer("/subresources/status").is_some() {
        subresources.push(Subresource {
            name: "status".to_owned(),
            kind: kind.to_owned(),
            group_version: None,
        });
    }
    if version.pointer("/subresources/scale").is_some() {
        subresources.push(Subresource {
            name: "scale".to_owned(),
            kind: "Scale".to_owned(),
            group_version: Some(("autoscaling".to_owned(), "v1".to_owned())),
        });
    }
    subresources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_kubernetes() {
        let mut versions = [
            "foo1",
            "v1alpha1",
            "v11beta2",
            "v2",
            "v10",
            "v3beta1",
            "v1",
            "v12alpha1",
            "foo10",
            "v11alpha2",
        ];
        versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10"
            ]
        );
    }

    #[test]
    fn a_definition_adds_and_removes_its_kinds() {
        let definition = json!({"metadata": {"name": "widgets.example.org"}, "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": true, "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}},
                {"name": "v1beta1", "served": false}]}});
        let mut registry = Registry::default();
        registry.define(&definition);
        let kind = registry
            .find("example.org", "v1", "widgets")
            .unwrap()
            .clone();
        assert!(kind.has_subresource("status") && kind.has_subresource("scale"));
        let scale = kind.custom.as_ref().unwrap().scale.clone().unwrap();
        assert_eq!(scale.spec_replicas, "/spec/replicas");
        assert!(registry.find("example.org", "v1beta1", "widgets").is_none());
        assert!(
            registry
                .groups()
                .iter()
                .any(|(group, _)| group == "example.org")
        );
        registry.forget("widgets.example.org");
        assert!(registry.find("example.org", "v1", "widgets").is_none());
        assert!(
            !registry
                .groups()
                .iter()
                .any(|(group, _)| group == "example.org")
        );
    }
}
