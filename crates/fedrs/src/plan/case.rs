//! A case: the replicas and preferences of a set, and the clusters that can run them.

use std::collections::BTreeMap;

use anyhow::Error;
use federated_scheduler::{Cluster, Layout, Request};
use federation_controller::preferences::Preferences;
use fedrs_api::{FieldError, FieldErrors, Placement, preferences};
use serde_json::{Map, Value};

use super::fields::{self, invalid};

/// The inputs of one layout.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) name: Option<String>,
    /// Decides ties, as the namespace and name of a set do.
    pub(crate) key: String,
    pub(crate) replicas: u64,
    pub(crate) placement: Placement,
    pub(crate) clusters: Vec<String>,
    pub(crate) current: BTreeMap<String, u64>,
    pub(crate) capacity: BTreeMap<String, u64>,
}

/// All cases of an input.
#[derive(Debug)]
pub(super) struct Cases {
    pub(super) list: Vec<Case>,
    /// Whether the input is a list; then the output is one as well.
    pub(super) is_list: bool,
}

impl Cases {
    /// Reads one case, a list of cases, or an object with a list under `cases`.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<Error>> {
        let input = fields::parse(text).map_err(|error| vec![error.context("invalid input")])?;
        let (values, is_list) = match &input {
            Value::Array(list) => (list.as_slice(), true),
            Value::Object(object) if object.contains_key("cases") => (listed(object)?, true),
            value => (std::slice::from_ref(value), false),
        };
        let mut list = Vec::with_capacity(values.len());
        let mut errors = Vec::new();
        for (place, value) in values.iter().enumerate() {
            match Case::from_value(value) {
                Ok(case) => list.push(case),
                Err(invalid) => {
                    let case = describe(value, place + 1, is_list);
                    let invalid = invalid.into_iter();
                    errors.extend(invalid.map(|error| Error::new(error).context(case.clone())));
                }
            }
        }
        if errors.is_empty() {
            Ok(Self { list, is_list })
        } else {
            Err(errors)
        }
    }
}

/// The list under `cases`, which may only have a `source` beside it.
fn listed(object: &Map<String, Value>) -> Result<&[Value], Vec<Error>> {
    let mut errors = FieldErrors::default();
    for name in object
        .keys()
        .filter(|name| !["cases", "source"].contains(&name.as_str()))
    {
        errors.add(name, "is not a known field beside cases");
    }
    let list = object["cases"].as_array();
    if list.is_none() {
        errors.add("cases", "must be a list");
    }
    let list = list.map_or(&[][..], Vec::as_slice);
    errors.or(list).map_err(invalid)
}

/// Names a case in messages: `case 2 "web"`.
fn describe(value: &Value, number: usize, is_list: bool) -> String {
    let name = value.get("name").and_then(Value::as_str);
    match (name, is_list) {
        (Some(name), true) => format!("case {number} {name:?}"),
        (Some(name), false) => format!("case {name:?}"),
        (None, true) => format!("case {number}"),
        (None, false) => "case".to_owned(),
    }
}

impl Case {
    /// Reads one case. An unknown field is an error.
    fn from_value(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        let mut case = Self {
            placement: Placement::even(),
            ..Self::default()
        };
        let Some(object) = value.as_object() else {
            errors.add("the case", "must be an object with replicas and clusters");
            return errors.or(case);
        };
        let mut key = None;
        for (name, value) in object {
            match name.as_str() {
                "name" => case.name = fields::text(value, name, &mut errors),
                "key" => key = fields::text(value, name, &mut errors),
                "replicas" => {
                    case.replicas = fields::count(value, name, &mut errors).unwrap_or_default();
                }
                "preferences" => match preferences::from_value(value, name) {
                    Ok(placement) => case.placement = placement,
                    Err(invalid) => errors.extend(invalid),
                },
                "clusters" => case.clusters = fields::names(value, name, &mut errors),
                "current" => case.current = fields::counts(value, name, &mut errors),
                "capacity" => case.capacity = fields::counts(value, name, &mut errors),
                // A file of expected layouts has these as well.
                "layout" | "unplaced" | "ties" => {}
                _ => errors.add(name, "is not a known field of a case"),
            }
        }
        for required in ["replicas", "clusters"] {
            if !object.contains_key(required) {
                errors.add(required, "is required");
            }
        }
        case.key =
            key.unwrap_or_else(|| format!("default/{}", case.name.as_deref().unwrap_or_default()));
        errors.or(case)
    }

    /// Warnings about input that has no effect.
    pub(super) fn warnings(&self) -> Vec<String> {
        let name = self
            .name
            .as_deref()
            .map_or_else(String::new, |name| format!("{name}: "));
        [("current", &self.current), ("capacity", &self.capacity)]
            .into_iter()
            .flat_map(|(field, counts)| counts.keys().map(move |cluster| (field, cluster)))
            .filter(|(_, cluster)| !self.clusters.contains(cluster))
            .map(|(field, cluster)| {
                format!("{name}ignored {field}[{cluster}]: the cluster is not in clusters")
            })
            .collect()
    }

    /// Computes the layout.
    pub(crate) fn plan(&self) -> Layout {
        let preferences = Preferences::of(&self.placement);
        let clusters: Vec<Cluster<'_>> = self
            .clusters
            .iter()
            .map(|name| Cluster {
                name,
                preference: preferences.of_cluster(name),
                current: self.current.get(name).copied().unwrap_or_default(),
                capacity: self.capacity.get(name).copied(),
            })
            .collect();
        federated_scheduler::plan(&Request {
            key: &self.key,
            replicas: self.replicas,
            rebalance: self.placement.rebalance,
            clusters: &clusters,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> Vec<String> {
        let errors = Cases::parse(text).expect_err("is invalid");
        errors.iter().map(|error| format!("{error:#}")).collect()
    }

    #[test]
    fn one_case_a_list_and_an_object_with_cases_are_read() {
        let one = r#"{"name": "web", "replicas": 9223372036854775807, "clusters": ["A"]}"#;
        let cases = Cases::parse(one).expect("is valid");
        assert_eq!(
            (cases.is_list, cases.list[0].key.as_str()),
            (false, "default/web")
        );
        assert_eq!(cases.list[0].plan().shares[0].replicas, i64::MAX as u64);
        assert!(Cases::parse(&format!("[{one}]")).expect("is valid").is_list);
        let all = include_str!("../../../../cases/seed-scenarios.json");
        assert_eq!(Cases::parse(all).expect("is valid").list.len(), 17);
        let yaml =
            "- replicas: 3\n  clusters: [a, b]\n  preferences: {Clusters: {a: {Weight: 1}}}\n";
        assert_eq!(
            Cases::parse(yaml).expect("is valid").list[0].plan().shares[0].replicas,
            3
        );
        assert_eq!(
            Cases::parse("{replicas: 3, clusters: [a]}")
                .expect("is valid")
                .list
                .len(),
            1
        );
    }

    #[test]
    fn errors_name_the_case_and_the_field() {
        let two = r#"[{"replicas": 1, "clusters": []}, {"name": "x", "replicas": -1, "cluster": ["A"], "current": {"A": 1.5}}]"#;
        assert_eq!(
            errors(two),
            [
                r#"case 2 "x": cluster: is not a known field of a case"#,
                r#"case 2 "x": current[A]: must be an integer from 0 to 9223372036854775807, not 1.5"#,
                r#"case 2 "x": replicas: must be an integer from 0 to 9223372036854775807, not -1"#,
                r#"case 2 "x": clusters: is required"#,
            ]
        );
        let nested = r#"{"replicas": 1, "clusters": ["A", "A"], "preferences": {"clusters": {"A": {"weigth": 1}}}}"#;
        assert_eq!(
            errors(nested),
            [
                "case: clusters[1]: \"A\" is a duplicate",
                "case: preferences.clusters[A].weigth: is not a known field; the fields are minReplicas, \
                 maxReplicas and weight",
            ]
        );
        assert_eq!(
            errors("{\"replicas\": 1,, }"),
            ["invalid input: not JSON: key must be a string at line 1 column 16"]
        );
        assert_eq!(
            errors("{\"cases\": [], \"case\": 1}"),
            ["case: is not a known field beside cases"]
        );
        assert_eq!(
            errors("5"),
            ["case: the case: must be an object with replicas and clusters"]
        );
    }

    #[test]
    fn f13_counts_of_unlisted_clusters_are_ignored_with_a_warning() {
        let cases =
            Cases::parse(r#"{"name": "x", "replicas": 1, "clusters": ["A"], "current": {"B": 1}}"#);
        let warnings = cases.expect("is valid").list[0].warnings();
        assert_eq!(
            warnings,
            ["x: ignored current[B]: the cluster is not in clusters"]
        );
    }
}
