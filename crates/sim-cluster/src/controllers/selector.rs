//! Label selectors in the form objects hold them: `{matchLabels, matchExpressions} -> does it match these labels?`
//! Selectors in query strings belong to the API server.

use serde_json::{Map, Value};

use crate::object::{list, map, text};

/// Does a `LabelSelector` match? An empty selector matches everything, an absent (null) one nothing.
pub(crate) fn matches(selector: &Value, labels: Option<&Map<String, Value>>) -> bool {
    if selector.is_null() {
        return false;
    }
    let mut by_label = map(selector, "/matchLabels").into_iter().flatten();
    by_label.all(|(key, value)| label(labels, key) == value.as_str())
        && list(selector, "/matchExpressions")
            .iter()
            .all(|rule| requirement_holds(rule, labels))
}

/// Is every pair of `wanted` among the labels? (A node selector, or a template's labels.)
pub(crate) fn contains(
    labels: Option<&Map<String, Value>>,
    wanted: Option<&Map<String, Value>>,
) -> bool {
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| label(labels, key) == value.as_str())
}

/// One `{key, operator, values}`. `Gt` and `Lt` occur in node selectors alone.
pub(crate) fn requirement_holds(rule: &Value, labels: Option<&Map<String, Value>>) -> bool {
    holds(
        text(rule, "/operator"),
        label(labels, text(rule, "/key")),
        list(rule, "/values"),
    )
}

/// The operator applied to what is there.
pub(crate) fn holds(operator: &str, present: Option<&str>, values: &[Value]) -> bool {
    let listed = || values.iter().any(|value| value.as_str() == present);
    let compared = |fits: fn(i64, i64) -> bool| {
        let wanted = values
            .first()
            .and_then(Value::as_str)
            .and_then(|v| v.parse().ok());
        let have = present.and_then(|p| p.parse().ok());
        have.zip(wanted)
            .is_some_and(|(have, wanted)| fits(have, wanted))
    };
    match operator {
        "In" => present.is_some() && listed(),
        "NotIn" => present.is_none() || !listed(),
        "Exists" => present.is_some(),
        "DoesNotExist" => present.is_none(),
        "Gt" => compared(|have, wanted| have > wanted),
        "Lt" => compared(|have, wanted| have < wanted),
        _ => false,
    }
}

fn label<'a>(labels: Option<&'a Map<String, Value>>, key: &str) -> Option<&'a str> {
    labels?.get(key)?.as_str()
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
}
