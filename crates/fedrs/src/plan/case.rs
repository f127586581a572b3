//! A case: a set with its preferences, and the clusters it meets.

use std::collections::BTreeMap;

use federated_scheduler::{Cluster, Layout, Lookup, Request};
use federation_controller::preferences::Preferences;
use fedrs_api::{FieldError, Placement, preferences};
use serde_json::Value;

use super::fields::{self, Fields};

/// One "what if".
#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) name: Option<String>,
    /// Decides ties, as namespace and name of a set do.
    pub(super) key: String,
    pub(super) replicas: u64,
    pub(super) placement: Placement,
    pub(super) clusters: Vec<String>,
    pub(super) current: BTreeMap<String, u64>,
    pub(super) capacity: BTreeMap<String, u64>,
}

/// All cases of an input.
#[derive(Debug)]
pub(super) struct Cases {
    pub(super) list: Vec<Case>,
    /// Whether they were given as a list, and are answered as one.
    pub(super) is_list: bool,
}

impl Cases {
    /// Reads one case, a list, or an object with a list under `cases`. An error says which case and which field.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<String>> {
        let input = fields::parse(text).map_err(|error| vec![format!("the input {error}")])?;
        let (values, is_list) = match &input {
            Value::Array(list) => (list.as_slice(), true),
            Value::Object(object) if object.contains_key("cases") => {
                let others = object
                    .keys()
                    .filter(|name| !["cases", "source"].contains(&name.as_str()));
                let errors: Vec<_> = others
                    .map(|name| format!("{name}: is not a field beside cases"))
                    .collect();
                if !errors.is_empty() {
                    return Err(errors);
                }
                let list = object["cases"]
                    .as_array()
                    .ok_or_else(|| vec!["cases: must be a list".to_owned()])?;
                (list.as_slice(), true)
            }
            value => (std::slice::from_ref(value), false),
        };
        let mut list = Vec::with_capacity(values.len());
        let mut errors = Vec::new();
        for (place, value) in values.iter().enumerate() {
            match Case::from_value(value) {
                Ok(case) => list.push(case),
                Err(wrong) => {
                    let case = describe(value, place + 1, is_list);
                    errors.extend(wrong.iter().map(|error| format!("{case}: {error}")));
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
    /// Reads one case strictly: a field it doesn't know is an error.
    fn from_value(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut fields = Fields::default();
        let mut case = Self {
            placement: Placement::even(),
            ..Self::default()
        };
        let Some(object) = value.as_object() else {
            fields.error("the case", "must be an object with replicas and clusters");
            return Err(fields.errors);
        };
        let mut key = None;
        for (name, value) in object {
            match name.as_str() {
                "name" => case.name = fields.text(value, name),
                "key" => key = fields.text(value, name),
                "replicas" => case.replicas = fields.count(value, name).unwrap_or_default(),
                "preferences" => match preferences::from_value(value, name) {
                    Ok(placement) => case.placement = placement,
                    Err(errors) => fields.errors.extend(errors),
                },
                "clusters" => case.clusters = fields.names(value, name),
                "current" => case.current = fields.counts(value, name),
                "capacity" => case.capacity = fields.counts(value, name),
                // What a file of expected layouts holds beside the question.
                "layout" | "unplaced" | "ties" => {}
                _ => fields.error(name, "is not a field of a case"),
            }
        }
        for required in ["replicas", "clusters"] {
            if !object.contains_key(required) {
                fields.error(required, "is missing");
            }
        }
        case.key =
            key.unwrap_or_else(|| format!("default/{}", case.name.as_deref().unwrap_or_default()));
        if fields.errors.is_empty() {
            Ok(case)
        } else {
            Err(fields.errors)
        }
    }

    /// What of the input has no effect.
    pub(super) fn notes(&self) -> Vec<String> {
        let name = self
            .name
            .as_deref()
            .map_or_else(String::new, |name| format!("{name}: "));
        [("current", &self.current), ("capacity", &self.capacity)]
            .into_iter()
            .flat_map(|(field, counts)| counts.keys().map(move |cluster| (field, cluster)))
            .filter(|(_, cluster)| !self.clusters.contains(cluster))
            .map(|(field, cluster)| {
                format!("{name}{field}[{cluster}] is ignored: clusters doesn't list it")
            })
            .collect()
    }

    /// Asks the scheduler.
    pub(super) fn plan(&self) -> Layout {
        let mut preferences = Preferences::of(&self.placement);
        let mut current = Lookup::new(&self.current);
        let mut capacity = Lookup::new(&self.capacity);
        let clusters: Vec<Cluster<'_>> = self
            .clusters
            .iter()
            .map(|name| Cluster {
                name,
                preference: preferences.of_cluster(name),
                current: current.get(name).copied().unwrap_or_default(),
                capacity: capacity.get(name).copied(),
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
        Cases::parse(text).expect_err("is invalid")
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
                r#"case 2 "x": cluster: is not a field of a case"#,
                r#"case 2 "x": current[A]: must be a whole number from 0 to 9223372036854775807, not 1.5"#,
                r#"case 2 "x": replicas: must be a whole number from 0 to 9223372036854775807, not -1"#,
                r#"case 2 "x": clusters: is missing"#,
            ]
        );
        let nested = r#"{"replicas": 1, "clusters": ["A", "A"], "preferences": {"clusters": {"A": {"weigth": 1}}}}"#;
        assert_eq!(
            errors(nested),
            [
                "case: clusters[1]: \"A\" is listed twice",
                "case: preferences.clusters[A].weigth: is not a field of a cluster's preferences: \
                 minReplicas, maxReplicas, weight",
            ]
        );
        assert_eq!(
            errors("{\"replicas\": 1,, }"),
            ["the input is not JSON: key must be a string at line 1 column 16"]
        );
        assert_eq!(
            errors("{\"cases\": [], \"case\": 1}"),
            ["case: is not a field beside cases"]
        );
        assert_eq!(
            errors("5"),
            ["case: the case: must be an object with replicas and clusters"]
        );
    }

    #[test]
    fn f13_what_clusters_does_not_list_is_ignored_and_said_so() {
        let cases =
            Cases::parse(r#"{"name": "x", "replicas": 1, "clusters": ["A"], "current": {"B": 1}}"#);
        let notes = cases.expect("is valid").list[0].notes();
        assert_eq!(
            notes,
            ["x: current[B] is ignored: clusters doesn't list it"]
        );
    }
}
