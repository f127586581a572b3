//! The requests and limits of a pod, and its quality-of-service class.

use std::collections::BTreeMap;

use serde_json::Value;

use super::checks::{fields, items};
use crate::quantity::Quantity;

/// The quality-of-service class of a pod, by its requests and limits of CPU and memory.
pub(super) fn qos_class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| items(spec, list));
    let (mut any, mut guaranteed) = (false, true);
    for (_, container) in containers {
        for resource in ["cpu", "memory"] {
            let amount = |of: &str| {
                quantity(&container["resources"][of][resource]).filter(|amount| !amount.is_zero())
            };
            let (request, limit) = (amount("requests"), amount("limits"));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// A quantity in an object, if it is one.
pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str()?.parse().ok()
}

/// Requests (or limits) of a pod: the sum of its containers or the largest init container, whichever is more. Sidecars
/// (init containers with restart policy `Always`) count with the containers.
pub(super) fn pod_resources(pod: &Value, of: &str) -> BTreeMap<String, Quantity> {
    let spec = &pod["spec"];
    let mut running: BTreeMap<String, Quantity> = BTreeMap::new();
    let mut starting: BTreeMap<String, Quantity> = BTreeMap::new();
    let amounts = |container: &Value| -> Vec<(String, Quantity)> {
        fields(&container["resources"][of])
            .filter_map(|(name, value)| Some((name.clone(), quantity(value)?)))
            .collect()
    };
    for (_, container) in items(spec, "containers") {
        add(&mut running, amounts(container));
    }
    let mut sidecars: BTreeMap<String, Quantity> = BTreeMap::new();
    for (_, container) in items(spec, "initContainers") {
        let stays = container["restartPolicy"] == "Always";
        if stays {
            add(&mut running, amounts(container));
            add(&mut sidecars, amounts(container));
        }
        for (name, amount) in amounts(container) {
            let others = sidecars
                .get(&name)
                .copied()
                .filter(|_| !stays)
                .unwrap_or(Quantity::ZERO);
            let peak = starting.entry(name).or_insert(Quantity::ZERO);
            *peak = (*peak).max(amount.plus(others));
        }
    }
    for (name, peak) in starting {
        let sum = running.entry(name).or_insert(peak);
        *sum = (*sum).max(peak);
    }
    let overhead = fields(&spec["overhead"])
        .filter_map(|(name, value)| Some((name.clone(), quantity(value)?)));
    add(&mut running, overhead.collect());
    running
}

fn add(sums: &mut BTreeMap<String, Quantity>, amounts: Vec<(String, Quantity)>) {
    for (name, amount) in amounts {
        let sum = sums.entry(name).or_insert(Quantity::ZERO);
        *sum = sum.plus(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(json!({}), "BestEffort")]
    #[case(json!({"requests": {"cpu": "1"}}), "Burstable")]
    #[case(json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1Gi"}}), "Guaranteed")]
    fn the_class_follows_from_requests_and_limits(#[case] resources: Value, #[case] class: &str) {
        assert_eq!(
            qos_class(&json!({ "spec": { "containers": [{ "resources": resources }] } })),
            class
        );
    }
}
