//! What the controller of a Deployment may do with the strategy that it has.

use serde_json::Value;
use sim_cluster::Object;

/// Pods that a Deployment may make unavailable, and pods that it may run beyond its replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) unavailable: u64,
    pub(crate) surge: u64,
}

impl Reach {
    /// The smallest strategy that an API server accepts.
    pub(crate) const SMALLEST: Self = Self {
        unavailable: 0,
        surge: 1,
    };

    /// What a Deployment may do now: nothing once all of its pods have its template, and it has observed this.
    pub(crate) fn of(deployment: &Object) -> Self {
        if is_rolling(deployment) {
            Self::of_strategy(deployment)
        } else {
            Self::default()
        }
    }

    /// What the strategy of a Deployment allows. The defaults of API servers are percentages, which the controller never writes.
    pub(crate) fn of_strategy(deployment: &Object) -> Self {
        let strategy = &deployment["spec"]["strategy"];
        let all = deployment["spec"]["replicas"].as_u64().unwrap_or(0);
        if strategy["type"] == "Recreate" {
            return Self {
                unavailable: all,
                surge: 0,
            };
        }
        let amount = |field: &str| strategy["rollingUpdate"][field].as_u64().unwrap_or(all);
        Self {
            unavailable: amount("maxUnavailable"),
            surge: amount("maxSurge"),
        }
    }
}

/// Whether a Deployment has pods of several templates, or does not know its latest one.
pub(crate) fn is_rolling(deployment: &Object) -> bool {
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let status = &deployment["status"];
    number(&status["observedGeneration"]) < number(&deployment["metadata"]["generation"])
        || number(&status["replicas"]) > number(&status["updatedReplicas"])
}
