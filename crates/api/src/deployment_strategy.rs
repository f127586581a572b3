//! How a new template replaces the pods of the old one: `strategy` of an apps/v1 Deployment, over all member clusters (L6, L14).

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use federated_rollout::{Amount, Budget};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{field::Errors, percentage::percentage};

/// How the pods of a new template replace those of the old one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("self.type != 'Recreate' || !has(self.rollingUpdate)")
        .message("must not be set if type is Recreate")
        .reason(Reason::FieldValueForbidden)
        .field_path(".rollingUpdate")
)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStrategy {
    /// Whether old pods run until new ones are available. Defaults to `RollingUpdate`.
    #[serde(default, rename = "type")]
    pub type_: StrategyType,
    /// The budget of a rolling update. Must not be set if the type is `Recreate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// Whether old pods run until new ones are available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StrategyType {
    /// Old pods are replaced bit by bit, within the budget.
    #[default]
    RollingUpdate,
    /// One cluster at a time removes all its old pods before it creates new ones.
    Recreate,
}

/// The budget of a rolling update, over all member clusters together (L14). With Kubernetes' defaults and rounding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("!(self.maxUnavailable == 0 || self.maxUnavailable == '0%') || !(self.maxSurge == 0 || self.maxSurge == '0%')")
        .message("must not be 0 if maxSurge is 0")
        .field_path(".maxUnavailable")
)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// The pods that may be unavailable, over all member clusters together: a number, or a percentage of `spec.replicas` of at
    /// most 100%, rounded down. Must not be 0 if `maxSurge` is 0. Defaults to 25%.
    #[serde(default = "quarter")]
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: IntOrString,
    /// The pods that may exist beyond `spec.replicas`, over all member clusters together: a number, or a percentage of
    /// `spec.replicas`, rounded up. Must not be 0 if `maxUnavailable` is 0. Defaults to 25%.
    #[serde(default = "quarter")]
    #[schemars(schema_with = "max_surge_schema")]
    pub max_surge: IntOrString,
}

pub(crate) fn quarter() -> IntOrString {
    IntOrString::String("25%".to_owned())
}

impl Default for RollingUpdate {
    fn default() -> Self {
        Self {
            max_unavailable: quarter(),
            max_surge: quarter(),
        }
    }
}

impl DeploymentStrategy {
    /// Validates all fields, and adds every error at its field below `path`. What it returns is valid if there is none.
    pub(crate) fn check(&self, path: &str, errors: &mut Errors) -> Budget {
        let field = format!("{path}.rollingUpdate");
        match (self.type_, &self.rolling_update) {
            (StrategyType::RollingUpdate, None) => RollingUpdate::default().check(&field, errors),
            (StrategyType::RollingUpdate, Some(rolling)) => rolling.check(&field, errors),
            (StrategyType::Recreate, rolling) => {
                let message = format!("must not be set if {path}.type is Recreate");
                errors.require(rolling.is_none(), &field, &message);
                Budget::Recreate
            }
        }
    }
}

impl RollingUpdate {
    fn check(&self, path: &str, errors: &mut Errors) -> Budget {
        let field = format!("{path}.maxUnavailable");
        let max_unavailable = part_of_pods(&self.max_unavailable, &field, errors);
        let max_surge = amount_of_pods(&self.max_surge, &format!("{path}.maxSurge"), errors);
        errors.require(
            !(is_zero(max_unavailable) && is_zero(max_surge)),
            &field,
            &format!("must not be 0 if {path}.maxSurge is 0"),
        );
        Budget::RollingUpdate {
            max_unavailable,
            max_surge,
        }
    }
}

const IS_NO_AMOUNT: &str = "must be a number of pods, not negative, or a percentage such as 25%";

/// The valid number or percentage; 1 and an error if it is neither.
pub(crate) fn amount_of_pods(value: &IntOrString, field: &str, errors: &mut Errors) -> Amount {
    amount(value).unwrap_or_else(|| {
        errors.add(field, IS_NO_AMOUNT);
        Amount::Number(1)
    })
}

/// As [`amount_of_pods`], of at most 100%.
pub(crate) fn part_of_pods(value: &IntOrString, field: &str, errors: &mut Errors) -> Amount {
    let amount = amount_of_pods(value, field, errors);
    if let Amount::Percent(percent @ 101..) = amount {
        errors.add(field, format!("must not be above 100%, but is {percent}%"));
    }
    amount
}

fn amount(value: &IntOrString) -> Option<Amount> {
    match value {
        IntOrString::Int(number) => u64::try_from(*number).ok().map(Amount::Number),
        IntOrString::String(text) => {
            percentage(text).map(|percent| Amount::Percent(percent.into()))
        }
    }
}

fn is_zero(amount: Amount) -> bool {
    matches!(amount, Amount::Number(0) | Amount::Percent(0))
}

/// The longest percentage, with room for mistakes that a rule explains. Bounds the cost of the rules.
const MAX_TEXT: usize = 16;

pub(crate) fn max_unavailable_schema(_: &mut SchemaGenerator) -> Schema {
    let message = "must be a number of pods, or a percentage from 0% to 100%";
    amount_schema("^(100|[1-9]?[0-9])%$", message)
}

pub(crate) fn max_surge_schema(_: &mut SchemaGenerator) -> Schema {
    let message = "must be a number of pods, or a percentage such as 25%";
    amount_schema("^(0|[1-9][0-9]{0,3})%$", message)
}

/// A number, or a percentage that matches `pattern`. A rule and not a `pattern`, which could not say what is expected.
fn amount_schema(pattern: &str, message: &str) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 0,
        "maximum": i32::MAX,
        "maxLength": MAX_TEXT,
        "x-kubernetes-validations": [{
            "rule": format!("type(self) != string || self.matches('{pattern}')"),
            "message": message,
        }],
    })
}
