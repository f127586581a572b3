//! The conditions of a local workload that a check reads.

use jiff::Timestamp;
use reflector::{
    partial::{Text, for_each_item},
    printable,
};
use serde::{Deserialize, Deserializer};

use crate::{deployment_state::Progressing, workload::ReplicaFailure};

/// The conditions of a local workload.
#[derive(Debug, Default)]
pub(crate) struct WorkloadConditions {
    /// `ReplicaFailure`, while it is true (F32).
    pub(crate) failure: Option<Box<ReplicaFailure>>,
    /// `Progressing`, of a Deployment.
    pub(crate) progressing: Option<Progressing>,
    /// The message of `EvictionBlocked`, of a LocalReplicaSet, while it is true (L19).
    pub(crate) eviction_blocked: Option<String>,
}

impl<'de> Deserialize<'de> for WorkloadConditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Condition<'a> {
            #[serde(borrow)]
            r#type: Text<'a>,
            #[serde(borrow)]
            status: Text<'a>,
            last_transition_time: Option<Timestamp>,
            #[serde(default, borrow)]
            reason: Option<Text<'a>>,
            #[serde(default, borrow)]
            message: Option<Text<'a>>,
        }
        let mut conditions = Self::default();
        let text = |text: Option<Text<'_>>| text.map(|text| printable(&text.0)).unwrap_or_default();
        for_each_item(deserializer, |condition: Condition<'_>| {
            match (&*condition.r#type.0, &*condition.status.0) {
                ("ReplicaFailure", "True") => {
                    conditions.failure.get_or_insert_with(|| {
                        Box::new(ReplicaFailure {
                            since: condition.last_transition_time,
                            message: text(condition.message),
                        })
                    });
                }
                ("Progressing", _) => {
                    conditions.progressing.get_or_insert_with(|| Progressing {
                        reason: text(condition.reason),
                        message: text(condition.message),
                    });
                }
                ("EvictionBlocked", "True") => {
                    (conditions.eviction_blocked).get_or_insert_with(|| text(condition.message));
                }
                _ => {}
            }
        })?;
        Ok(conditions)
    }
}
