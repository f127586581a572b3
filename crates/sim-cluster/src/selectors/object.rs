//! Label selectors as objects hold them: `{matchLabels, matchExpressions}`.

use serde_json::{Map, Value};

use super::requirement::Operator;
use crate::object::{list, map, strings, text};

type Labels = Map<String, Value>;

/// Whether a `LabelSelector` matches. An empty selector matches everything, an absent one (null) nothing.
pub(crate) fn matches(selector: &Value, labels: Option<&Labels>) -> bool {
    !selector.is_null()
        && contains(labels, map(selector, "/matchLabels"))
        && list(selector, "/matchExpressions")
            .iter()
            .all(|requirement| requirement_holds(requirement, labels))
}

/// Whether a `LabelSelector` has no requirements.
pub(crate) fn is_empty(selector: &Value) -> bool {
    map(selector, "/matchLabels").is_none_or(Map::is_empty)
        && list(selector, "/matchExpressions").is_empty()
}

/// Whether every pair of `wanted` (a node selector, the labels of a template) is among the labels.
pub(crate) fn contains(labels: Option<&Labels>, wanted: Option<&Labels>) -> bool {
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| label(labels, key) == value.as_str())
}

/// Whether one `{key, operator, values}` holds.
pub(crate) fn requirement_holds(requirement: &Value, labels: Option<&Labels>) -> bool {
    value_fits(requirement, label(labels, text(requirement, "/key")))
}

/// Whether a value, or its absence, meets the operator and values of a `{key, operator, values}`.
pub(crate) fn value_fits(requirement: &Value, present: Option<&str>) -> bool {
    Operator::parse(text(requirement, "/operator"))
        .is_some_and(|operator| operator.holds(present, strings(requirement, "/values")))
}

fn label<'a>(labels: Option<&'a Labels>, key: &str) -> Option<&'a str> {
    labels?.get(key)?.as_str()
}

/// A `LabelSelector`, or the map of a ReplicationController, in the form of query strings, as Go prints it.
pub(crate) fn to_query(selector: &Value) -> String {
    let is_map = ["matchLabels", "matchExpressions"]
        .iter()
        .all(|field| selector.get(field).is_none());
    let labels = map(selector, if is_map { "" } else { "/matchLabels" });
    let mut requirements: Vec<(&str, String)> = (labels.into_iter().flatten())
        .map(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            (key.as_str(), format!("{key}={value}"))
        })
        .collect();
    for requirement in list(selector, "/matchExpressions") {
        let key = text(requirement, "/key");
        let mut values: Vec<&str> = strings(requirement, "/values").collect();
        values.sort_unstable();
        let values = values.join(",");
        let printed = match Operator::parse(text(requirement, "/operator")) {
            Some(Operator::In) => format!("{key} in ({values})"),
            Some(Operator::NotIn) => format!("{key} notin ({values})"),
            Some(Operator::DoesNotExist) => format!("!{key}"),
            _ => key.to_owned(),
        };
        requirements.push((key, printed));
    }
    requirements.sort();
    let printed: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    printed.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::empty_matches_all(json!({}), true)]
    #[case::null_matches_none(json!(null), false)]
    #[case::label(json!({"matchLabels": {"app": "web"}}), true)]
    #[case::other_value(json!({"matchLabels": {"app": "db"}}), false)]
    #[case::missing(json!({"matchLabels": {"zone": "a"}}), false)]
    #[case::in_list(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}), true)]
    #[case::not_in(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}), false)]
    #[case::not_in_missing(json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}), true)]
    #[case::exists(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true)]
    #[case::absent(json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false)]
    #[case::greater(json!({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["3"]}]}), true)]
    #[case::less(json!({"matchExpressions": [{"key": "cores", "operator": "Lt", "values": ["4"]}]}), false)]
    fn selectors(#[case] selector: Value, #[case] expected: bool) {
        let labels = json!({"app": "web", "cores": "4"});
        assert_eq!(matches(&selector, labels.as_object()), expected);
    }

    #[test]
    fn selectors_print_as_go_prints_them() {
        let selector = json!({"matchLabels": {"b": "1"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "DoesNotExist"}]});
        assert_eq!(to_query(&selector), "a in (x,y),b=1,!c");
        assert_eq!(to_query(&json!({"app": "web"})), "app=web");
    }
}
