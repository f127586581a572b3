//! Conversion of HorizontalPodAutoscalers between `autoscaling/v1` and `autoscaling/v2`.
//!
//! `autoscaling/v1` has only the CPU utilization. All other fields of a v2 object are in annotations of the v1 object, so
//! that a round trip loses nothing.

use serde_json::{Map, Value, json};

use crate::object::{list, map, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The sources of metrics that have a target of their own.
const SOURCES: [&str; 5] = [
    "resource",
    "containerResource",
    "pods",
    "object",
    "external",
];

/// Turns a v2 object into a v1 object, all but its `apiVersion`.
pub(super) fn to_v1(object: &mut Value) {
    let metrics = take(&mut object["spec"], "metrics");
    let behavior = take(&mut object["spec"], "behavior");
    let current = take(&mut object["status"], "currentMetrics");
    let conditions = take(&mut object["status"], "conditions");
    if let Some(target) = cpu_utilization(&metrics, "target") {
        object["spec"]["targetCPUUtilizationPercentage"] = json!(target);
    }
    if let Some(utilization) = cpu_utilization(&current, "current") {
        object["status"]["currentCPUUtilizationPercentage"] = json!(utilization);
    }
    let others: Vec<Value> = list(&metrics, "")
        .iter()
        .filter(|metric| utilization_of_cpu(metric, "target").is_none())
        .map(|metric| metric_to_v1(metric, "target"))
        .collect();
    // The annotation has the whole status, because the utilization does not contain the raw value.
    let current: Vec<Value> = list(&current, "")
        .iter()
        .map(|metric| metric_to_v1(metric, "current"))
        .collect();
    remove_annotations(object);
    for (annotation, kept) in [
        (METRICS, Value::from(others)),
        (CURRENT_METRICS, Value::from(current)),
        (CONDITIONS, conditions),
        (BEHAVIOR, behavior),
    ] {
        let is_empty = kept.is_null() || kept.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            object["metadata"]["annotations"][annotation] = json!(kept.to_string());
        }
    }
    if object["status"].is_object() && object["status"].get("currentReplicas").is_none() {
        object["status"]["currentReplicas"] = json!(0);
    }
}

/// Turns a v1 object into a v2 object, all but its `apiVersion`.
pub(super) fn to_v2(object: &mut Value) {
    let kept = |annotation: &str| -> Value {
        let annotations = map(object, "/metadata/annotations");
        let text = annotations.and_then(|annotations| annotations.get(annotation)?.as_str());
        text.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    };
    let (others, current, conditions, behavior) = (
        kept(METRICS),
        kept(CURRENT_METRICS),
        kept(CONDITIONS),
        kept(BEHAVIOR),
    );
    let to_v2 = |metrics: &Value, of: &str| -> Vec<Value> {
        let metrics = list(metrics, "").iter();
        metrics.map(|metric| metric_to_v2(metric, of)).collect()
    };
    let mut metrics = to_v2(&others, "target");
    let mut current = to_v2(&current, "current");
    let target = take(&mut object["spec"], "targetCPUUtilizationPercentage");
    if !target.is_null() {
        let target = json!({"type": "Utilization", "averageUtilization": target});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    let utilization = take(&mut object["status"], "currentCPUUtilizationPercentage");
    if !utilization.is_null() && current.is_empty() {
        let resource = json!({"name": "cpu", "current": {"averageUtilization": utilization}});
        current.push(json!({"type": "Resource", "resource": resource}));
    }
    remove_annotations(object);
    if !metrics.is_empty() {
        object["spec"]["metrics"] = json!(metrics);
    }
    if !behavior.is_null() {
        object["spec"]["behavior"] = behavior;
    }
    if object["status"].is_object() {
        if object["status"]["currentReplicas"] == json!(0) {
            take(&mut object["status"], "currentReplicas");
        }
        let none = current.is_empty();
        object["status"]["currentMetrics"] = if none { Value::Null } else { json!(current) };
        if !conditions.is_null() {
            object["status"]["conditions"] = conditions;
        }
    }
}

fn take(object: &mut Value, field: &str) -> Value {
    let fields = object.as_object_mut();
    let taken = fields.and_then(|fields| fields.remove(field));
    taken.unwrap_or_default()
}

fn remove_annotations(object: &mut Value) {
    let Some(annotations) = object["metadata"].get_mut("annotations") else {
        return;
    };
    for annotation in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
        take(annotations, annotation);
    }
    if annotations.as_object().is_some_and(Map::is_empty) {
        take(&mut object["metadata"], "annotations");
    }
}

/// The utilization of the first metric of the CPU.
fn cpu_utilization(metrics: &Value, of: &str) -> Option<i64> {
    let mut metrics = list(metrics, "").iter();
    metrics.find_map(|metric| utilization_of_cpu(metric, of))
}

fn utilization_of_cpu(metric: &Value, of: &str) -> Option<i64> {
    let is_cpu = metric["type"] == "Resource" && text(metric, "/resource/name") == "cpu";
    let utilization = &metric["resource"][of]["averageUtilization"];
    utilization.as_i64().filter(|_| is_cpu)
}

/// A metric in the form of v1; `of` is `target` or `current`.
fn metric_to_v1(metric: &Value, of: &str) -> Value {
    let mut metric = metric.clone();
    for source in SOURCES {
        let Some(fields) = metric.get_mut(source) else {
            continue;
        };
        let mut value = take(fields, of);
        for (newer, older) in value_names(source, of) {
            let value = take(&mut value, newer);
            if !value.is_null() {
                fields[older] = value;
            }
        }
        let mut identifier = take(fields, "metric");
        for (newer, older) in [("name", "metricName"), ("selector", selector_name(source))] {
            let value = take(&mut identifier, newer);
            if !value.is_null() {
                fields[older] = value;
            }
        }
        let described = take(fields, "describedObject");
        if !described.is_null() {
            fields["target"] = described;
        }
    }
    metric
}

/// The reverse of [`metric_to_v1`].
fn metric_to_v2(metric: &Value, of: &str) -> Value {
    let mut metric = metric.clone();
    for source in SOURCES {
        let Some(fields) = metric.get_mut(source) else {
            continue;
        };
        let described = take(fields, "target");
        let mut identifier = json!({});
        for (newer, older) in [("name", "metricName"), ("selector", selector_name(source))] {
            let value = take(fields, older);
            if !value.is_null() {
                identifier[newer] = value;
            }
        }
        let mut value = json!({});
        for (newer, older) in value_names(source, of) {
            let given = take(fields, &older);
            // Go writes the quantity of an unused target as zero.
            if !given.is_null() && given != "0" {
                value[newer] = given;
                if of == "target" {
                    value["type"] = json!(target_type(newer));
                }
            }
        }
        fields[of] = value;
        if identifier != json!({}) {
            fields["metric"] = identifier;
        }
        if !described.is_null() {
            fields["describedObject"] = described;
        }
    }
    metric
}

/// The fields of a metric's value: in v2 below `target` or `current`, in v1 beside it.
fn value_names(source: &str, of: &str) -> [(&'static str, String); 3] {
    let average = if source == "object" {
        "averageValue".to_owned()
    } else {
        format!("{of}AverageValue")
    };
    [
        ("averageUtilization", format!("{of}AverageUtilization")),
        ("averageValue", average),
        ("value", format!("{of}Value")),
    ]
}

fn selector_name(source: &str) -> &'static str {
    if source == "external" {
        "metricSelector"
    } else {
        "selector"
    }
}

fn target_type(value: &str) -> &'static str {
    match value {
        "averageUtilization" => "Utilization",
        "averageValue" => "AverageValue",
        _ => "Value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts to v1 and back.
    fn round_trip(object: &Value) -> (Value, Value) {
        let mut older = object.clone();
        to_v1(&mut older);
        let mut newer = older.clone();
        to_v2(&mut newer);
        (older, newer)
    }

    #[test]
    fn the_cpu_utilization_is_a_field_of_v1() {
        let object = json!({
            "metadata": {"name": "web"},
            "spec": {"maxReplicas": 3, "minReplicas": 1, "scaleTargetRef": {"kind": "ReplicaSet", "name": "web"},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 50}}}]},
            "status": {"desiredReplicas": 0, "currentMetrics": null},
        });
        let (older, newer) = round_trip(&object);
        let expected = json!({
            "metadata": {"name": "web"},
            "spec": {"maxReplicas": 3, "minReplicas": 1, "scaleTargetRef": {"kind": "ReplicaSet", "name": "web"},
                "targetCPUUtilizationPercentage": 50},
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
        });
        assert_eq!(older, expected);
        assert_eq!(newer, object);
    }

    #[test]
    fn other_metrics_survive_in_annotations() {
        let reference = json!({"kind": "Service", "name": "web", "apiVersion": "v1"});
        let object = json!({
            "metadata": {"name": "web", "annotations": {"a": "b"}},
            "spec": {"maxReplicas": 3, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}, "metrics": [
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                {"type": "Pods", "pods": {"metric": {"name": "rate"}, "target": {"type": "AverageValue", "averageValue": "5"}}},
                {"type": "Object", "object": {"describedObject": reference, "metric": {"name": "hits", "selector": {}},
                    "target": {"type": "Value", "value": "9"}}},
                {"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {"x": "y"}}},
                    "target": {"type": "AverageValue", "averageValue": "7"}}},
                {"type": "ContainerResource", "containerResource": {"container": "c", "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 70}}},
            ]},
            "status": {"currentReplicas": 2, "desiredReplicas": 2,
                "conditions": [{"type": "AbleToScale", "status": "True"}],
                "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
                    "current": {"averageUtilization": 40, "averageValue": "200m"}}}]},
        });
        let (older, newer) = round_trip(&object);
        assert_eq!(older["status"]["currentCPUUtilizationPercentage"], 40);
        let metrics = older["metadata"]["annotations"][METRICS].as_str().unwrap();
        let metrics: Value = serde_json::from_str(metrics).unwrap();
        assert_eq!(
            metrics[0]["resource"],
            json!({"name": "memory", "targetAverageValue": "1Gi"})
        );
        assert_eq!(
            metrics[2]["object"],
            json!({"metricName": "hits", "selector": {}, "target": reference, "targetValue": "9"})
        );
        assert_eq!(newer, object);
    }
}
