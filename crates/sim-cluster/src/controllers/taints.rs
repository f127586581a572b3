//! Taints and tolerations, for the scheduler and the node lifecycle controller. Pure.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::object::{integer, list, text, time};

/// The taint of nodes that are not ready.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The taint of nodes that are unreachable.
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The taint of cordoned nodes.
pub(crate) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Whether the toleration tolerates the taint.
pub(crate) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let effect = text(toleration, "/effect");
    if !effect.is_empty() && effect != text(taint, "/effect") {
        return false;
    }
    let key = text(toleration, "/key");
    if !key.is_empty() && key != text(taint, "/key") {
        return false;
    }
    match text(toleration, "/operator") {
        "" | "Equal" => text(toleration, "/value") == text(taint, "/value"),
        "Exists" => true,
        _ => false,
    }
}

/// Whether the node has a taint that keeps a pod with these tolerations off it.
pub(crate) fn hinders_placement(node: &Value, tolerations: &[Value]) -> bool {
    let hard = list(node, "/spec/taints")
        .iter()
        .filter(|taint| text(taint, "/effect") != "PreferNoSchedule");
    hard.into_iter().any(|taint| {
        !tolerations
            .iter()
            .any(|toleration| tolerates(toleration, taint))
    })
}

/// When a pod is evicted because of the `NoExecute` taints of its node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EvictionTime {
    /// Never.
    Never,
    /// At that time.
    At(Timestamp),
}

/// Decides by the taints' `timeAdded` and the shortest `tolerationSeconds` of the matching tolerations. A taint that is not
/// tolerated means `now`.
pub(crate) fn eviction_time(node: &Value, tolerations: &[Value], now: Timestamp) -> EvictionTime {
    let mut shortest: Option<i64> = None;
    let mut since: Option<Timestamp> = None;
    for taint in list(node, "/spec/taints")
        .iter()
        .filter(|taint| text(taint, "/effect") == "NoExecute")
    {
        let Some(toleration) = tolerations
            .iter()
            .find(|toleration| tolerates(toleration, taint))
        else {
            return EvictionTime::At(now);
        };
        if let Some(seconds) = integer(toleration, "/tolerationSeconds") {
            shortest = Some(shortest.map_or(seconds, |s| s.min(seconds)).max(0));
            let added = time(taint, "/timeAdded").unwrap_or(now);
            since = Some(since.map_or(added, |s| s.min(added)));
        }
    }
    match shortest.zip(since) {
        Some((seconds, since)) => EvictionTime::At(
            since
                .saturating_add(SignedDuration::from_secs(seconds))
                .unwrap_or(now),
        ),
        None => EvictionTime::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::equal(json!({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}), true)]
    #[case::equal_is_default(json!({"key": "k", "value": "v"}), true)]
    #[case::other_value(json!({"key": "k", "value": "w"}), false)]
    #[case::exists(json!({"key": "k", "operator": "Exists"}), true)]
    #[case::everything(json!({"operator": "Exists"}), true)]
    #[case::other_effect(json!({"key": "k", "operator": "Exists", "effect": "NoExecute"}), false)]
    #[case::other_key(json!({"key": "l", "operator": "Exists"}), false)]
    fn tolerations(#[case] toleration: Value, #[case] expected: bool) {
        let taint = json!({"key": "k", "value": "v", "effect": "NoSchedule"});
        assert_eq!(tolerates(&toleration, &taint), expected);
        assert_eq!(
            hinders_placement(&json!({"spec": {"taints": [taint]}}), &[toleration]),
            !expected
        );
    }

    #[rstest]
    #[case::untolerated(json!([]), EvictionTime::At(Timestamp::from_second(1000).unwrap()))]
    #[case::for_ever(json!([{"operator": "Exists"}]), EvictionTime::Never)]
    #[case::for_300s(json!([{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300}]),
        EvictionTime::At(Timestamp::from_second(1200).unwrap()))]
    fn no_execute(#[case] tolerations: Value, #[case] expected: EvictionTime) {
        let node = json!({"spec": {"taints": [
            {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": "1970-01-01T00:15:00Z"},
            {"key": UNREACHABLE, "effect": "NoSchedule"},
        ]}});
        let now = Timestamp::from_second(1000).unwrap();
        assert_eq!(
            eviction_time(&node, tolerations.as_array().unwrap(), now),
            expected
        );
    }
}
