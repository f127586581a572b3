//! Resource quotas: the usage of an object, and whether it fits.
//!
//! object -> [`usage_of`] -> with the quota's `status.used` -> [`check_quota`] -> the new `used`, or an error.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::checks::fields;
use super::pod_resources::{pod_resources, qos_class};
use crate::quantity::Quantity;

/// Amounts by resource name, as in `status.used` of a quota.
pub(crate) type Usage = BTreeMap<String, Quantity>;

/// Why a quota rejects an object; the message after `is forbidden: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuotaError {
    /// The object exceeds the quota.
    #[error("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")]
    Exceeded {
        /// Name of the quota.
        quota: String,
        /// The requests of the object for the exceeded resources.
        requested: String,
        /// The current usage.
        used: String,
        /// The limits.
        limited: String,
    },
    /// A quota of a compute resource requires it of every container.
    #[error("failed quota: {quota}: must specify {missing}")]
    Unspecified {
        /// Name of the quota.
        quota: String,
        /// `limits.cpu for: a,b; requests.memory for: a`
        missing: String,
    },
}

/// The usage of one object: `count/RESOURCE[.GROUP]`, for some kinds the resource's name as well, and for pods their
/// requests and limits. A terminated pod counts as an object only.
pub(crate) fn usage_of(group: &str, plural: &str, object: &Value) -> Usage {
    const COUNTED_BY_NAME: &[&str] = &[
        "configmaps",
        "persistentvolumeclaims",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    ];
    let counted = if group.is_empty() {
        format!("count/{plural}")
    } else {
        format!("count/{plural}.{group}")
    };
    let mut usage = Usage::from([(counted, Quantity::units(1))]);
    if group.is_empty() && COUNTED_BY_NAME.contains(&plural) {
        usage.insert(plural.to_owned(), Quantity::units(1));
    }
    let ended = ["Succeeded", "Failed"]
        .iter()
        .any(|phase| object["status"]["phase"] == *phase);
    if (group, plural) == ("", "pods") && !ended {
        usage.insert("pods".to_owned(), Quantity::units(1));
        for (name, amount) in pod_resources(object, "requests") {
            if ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str()) {
                usage.insert(name.clone(), amount);
            }
            usage.insert(format!("requests.{name}"), amount);
        }
        for (name, amount) in pod_resources(object, "limits") {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
    usage
}

/// The amounts in a map of quantities, such as `spec.hard` or `status.used`.
pub(crate) fn usage_from(amounts: &Value) -> Usage {
    fields(amounts)
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.parse().ok()?)))
        .collect()
}

/// The amounts as a map of quantities.
pub(crate) fn usage_to_value(usage: &Usage) -> Value {
    Value::Object(
        usage
            .iter()
            .map(|(name, amount)| (name.clone(), amount.to_string().into()))
            .collect::<Map<_, _>>(),
    )
}

/// Whether the quota's scopes match the object; only pods have scopes.
pub(crate) fn quota_matches(quota: &Value, plural: &str, object: &Value) -> bool {
    let spec = &quota["spec"];
    let scopes = spec["scopes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let selected = spec["scopeSelector"]["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    scopes
        .clone()
        .all(|scope| plural == "pods" && in_scope(scope, object))
        && selected
            .into_iter()
            .all(|expression| plural == "pods" && in_selected_scope(expression, object))
}

fn in_scope(scope: &str, pod: &Value) -> bool {
    let terminating = pod["spec"]["activeDeadlineSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds >= 0);
    match scope {
        "Terminating" => terminating,
        "NotTerminating" => !terminating,
        "BestEffort" => qos_class(pod) == "BestEffort",
        "NotBestEffort" => qos_class(pod) != "BestEffort",
        "PriorityClass" => pod["spec"]["priorityClassName"].is_string(),
        _ => false,
    }
}

fn in_selected_scope(expression: &Value, pod: &Value) -> bool {
    let scope = expression["scopeName"].as_str().unwrap_or_default();
    if scope != "PriorityClass" {
        return in_scope(scope, pod);
    }
    let class = &pod["spec"]["priorityClassName"];
    let listed = expression["values"]
        .as_array()
        .is_some_and(|values| values.contains(class));
    match expression["operator"].as_str().unwrap_or_default() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => class.is_string(),
        _ => !class.is_string(),
    }
}

/// The usage of a quota with the object, or why it is rejected. `used` is the current usage; only resources that the
/// quota limits count.
pub(crate) fn check_quota(
    quota: &Value,
    used: &Usage,
    group: &str,
    plural: &str,
    object: &Value,
) -> Result<Usage, QuotaError> {
    let name = quota["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let hard = usage_from(&quota["spec"]["hard"]);
    if !quota_matches(quota, plural, object) {
        return Ok(used.clone());
    }
    if (group, plural) == ("", "pods")
        && let Some(missing) = unspecified(&hard, object)
    {
        return Err(QuotaError::Unspecified {
            quota: name,
            missing,
        });
    }
    let requested = usage_of(group, plural, object);
    let mut after = used.clone();
    let mut short = Vec::new();
    for (resource, limit) in &hard {
        let now = used.get(resource).copied().unwrap_or(Quantity::ZERO);
        let Some(more) = requested.get(resource).copied() else {
            continue;
        };
        let sum = now.plus(more);
        if sum > *limit && !more.is_zero() {
            short.push((resource.as_str(), more, now, *limit));
        }
        after.insert(resource.clone(), sum);
    }
    if short.is_empty() {
        return Ok(after);
    }
    let list = |amount: fn(&(&str, Quantity, Quantity, Quantity)) -> Quantity| {
        short
            .iter()
            .map(|entry| format!("{}={}", entry.0, amount(entry)))
            .collect::<Vec<_>>()
            .join(",")
    };
    Err(QuotaError::Exceeded {
        quota: name,
        requested: list(|entry| entry.1),
        used: list(|entry| entry.2),
        limited: list(|entry| entry.3),
    })
}

/// The compute resources that the quota limits and containers do not specify, as the error lists them.
fn unspecified(hard: &Usage, pod: &Value) -> Option<String> {
    const COMPUTE: [&str; 6] = [
        "cpu",
        "limits.cpu",
        "limits.memory",
        "memory",
        "requests.cpu",
        "requests.memory",
    ];
    let mut parts = Vec::new();
    for resource in COMPUTE
        .into_iter()
        .filter(|resource| hard.contains_key(*resource))
    {
        let (of, name) = resource.split_once('.').unwrap_or(("requests", resource));
        let mut containers: Vec<&str> = ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
            .filter(|container| container["resources"][of][name].is_null())
            .filter_map(|container| container["name"].as_str())
            .collect();
        containers.sort_unstable();
        if !containers.is_empty() {
            parts.push(format!("{resource} for: {}", containers.join(",")));
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(requests: &Value) -> Value {
        json!({ "spec": { "containers": [{ "name": "a", "resources": { "requests": requests } }] } })
    }

    #[test]
    fn an_exceeded_quota_reports_requested_used_and_limited_amounts() {
        let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "2" } } });
        let used = usage_from(&json!({ "pods": "2" }));
        let error = check_quota(&quota, &used, "", "pods", &pod(&json!({}))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
        );
    }

    #[test]
    fn only_short_resources_are_named() {
        let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "10", "requests.cpu": "1", "requests.memory": "1Gi" } } });
        let used =
            usage_from(&json!({ "pods": "1", "requests.cpu": "600m", "requests.memory": "900Mi" }));
        let error = check_quota(
            &quota,
            &used,
            "",
            "pods",
            &pod(&json!({ "cpu": "500m", "memory": "200Mi" })),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "exceeded quota: q, requested: requests.cpu=500m,requests.memory=200Mi, used: requests.cpu=600m,requests.memory=900Mi, limited: requests.cpu=1,requests.memory=1Gi"
        );
    }

    #[test]
    fn a_limited_resource_must_be_stated() {
        let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "requests.cpu": "1", "limits.memory": "1Gi" } } });
        let error = check_quota(&quota, &Usage::new(), "", "pods", &pod(&json!({}))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed quota: q: must specify limits.memory for: a; requests.cpu for: a"
        );
    }

    #[test]
    fn an_accepted_object_is_added_to_the_usage() {
        let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "count/replicasets.apps": "2" } } });
        let after = check_quota(&quota, &Usage::new(), "apps", "replicasets", &json!({})).unwrap();
        assert_eq!(
            usage_to_value(&after),
            json!({ "count/replicasets.apps": "1" })
        );
    }
}
