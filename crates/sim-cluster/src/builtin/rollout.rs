//! Validation of how a Deployment rolls out: strategy, deadline, history.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use crate::field::FieldErrorKind;
use crate::names::explain_format;
use crate::validation::Field;

const PERCENT_FORMAT: &str = "[0-9]+%";

/// Validates the fields of a Deployment that a ReplicaSet does not have.
pub(super) fn validate_rollout(spec: &Field<'_>) {
    validate_strategy(&spec.field("strategy"));
    let min_ready = spec.field("minReadySeconds");
    min_ready.require_not_negative();
    spec.field("revisionHistoryLimit").require_not_negative();
    let deadline = spec.field("progressDeadlineSeconds");
    deadline.require_not_negative();
    let is_too_short = |seconds: i64| seconds <= min_ready.number().unwrap_or(0);
    if deadline.number().is_some_and(is_too_short) {
        deadline.invalid("must be greater than minReadySeconds");
    }
}

fn validate_strategy(strategy: &Field<'_>) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "Recreate" => {
            if !rolling.value.is_null() {
                rolling.forbidden("may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => validate_rolling_update(&rolling),
        other => {
            // The message shows the API server's own structure.
            let shown = json!({"Type": other, "RollingUpdate": rolling.value});
            let detail = r#"supported values: "Recreate", "RollingUpdate""#;
            strategy.report(FieldErrorKind::NotSupported, shown, detail);
        }
    }
}

fn validate_rolling_update(rolling: &Field<'_>) {
    let [unavailable, surge] =
        ["maxUnavailable", "maxSurge"].map(|name| Amount::read(rolling.field(name)));
    unavailable.validate();
    surge.validate();
    if unavailable.number == 0 && surge.number == 0 {
        unavailable
            .field
            .invalid("may not be 0 when `maxSurge` is 0");
    }
    if unavailable.is_percent && unavailable.number > 100 {
        unavailable.field.invalid("must not be greater than 100%");
    }
}

/// A number of pods or a percentage.
struct Amount<'a> {
    field: Field<'a>,
    /// The number before `%`, or the number; 0 for another text.
    number: i64,
    is_percent: bool,
}

impl<'a> Amount<'a> {
    fn read(field: Field<'a>) -> Self {
        static PERCENT: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(&format!("^{PERCENT_FORMAT}$")).expect("the format is a constant")
        });
        let is_percent = PERCENT.is_match(field.text());
        let digits = field.text().trim_end_matches('%');
        let number = field.number().or_else(|| digits.parse().ok());
        Self {
            field,
            number: number.unwrap_or(0),
            is_percent,
        }
    }

    fn validate(&self) {
        if self.field.value.is_string() && !self.is_percent {
            let words = "a valid percent string must be a numeric string followed by an ending '%'";
            let detail = explain_format(words, PERCENT_FORMAT, &["1%", "93%"]);
            self.field.invalid(&detail);
        }
        self.field.require_not_negative();
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::Value;

    use super::*;
    use crate::validation::errors_of;

    #[rstest]
    #[case::defaults(json!({"maxUnavailable": "25%", "maxSurge": "25%"}), &[])]
    #[case::numbers(json!({"maxUnavailable": 0, "maxSurge": 1}), &[])]
    #[case::both_zero(json!({"maxUnavailable": 0, "maxSurge": "0%"}), &["maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"])]
    #[case::negative(json!({"maxUnavailable": 1, "maxSurge": -1}), &["maxSurge: Invalid value: -1: must be greater than or equal to 0"])]
    #[case::too_many(json!({"maxUnavailable": "101%", "maxSurge": "200%"}), &["maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"])]
    #[case::no_percentage(json!({"maxUnavailable": 1, "maxSurge": "5"}), &["maxSurge: Invalid value: \"5\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"])]
    fn a_rolling_update(#[case] rolling: Value, #[case] expected: &[&str]) {
        let spec = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}});
        let expected: Vec<String> = (expected.iter())
            .map(|text| format!("strategy.rollingUpdate.{text}"))
            .collect();
        assert_eq!(texts(&spec), expected);
    }

    #[rstest]
    #[case::recreate(json!({"strategy": {"type": "Recreate"}}), &[])]
    #[case::recreate_rolling(json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}}), &["strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"])]
    #[case::unknown(json!({"strategy": {"type": "Odd"}}), &[r#"strategy: Unsupported value: {"RollingUpdate":null,"Type":"Odd"}: supported values: "Recreate", "RollingUpdate""#])]
    #[case::short_deadline(json!({"strategy": {"type": "Recreate"}, "minReadySeconds": 60, "progressDeadlineSeconds": 60}), &["progressDeadlineSeconds: Invalid value: 60: must be greater than minReadySeconds"])]
    #[case::no_history(json!({"strategy": {"type": "Recreate"}, "revisionHistoryLimit": 0}), &[])]
    #[case::negative_history(json!({"strategy": {"type": "Recreate"}, "revisionHistoryLimit": -1}), &["revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"])]
    fn other_fields(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(texts(&spec), expected);
    }

    fn texts(spec: &Value) -> Vec<String> {
        let errors = errors_of(spec, validate_rollout);
        errors.iter().map(ToString::to_string).collect()
    }
}
