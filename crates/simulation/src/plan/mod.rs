//! What happens in a run, as data: members, sets, and steps with their times.
//!
//! ```text
//! seed --generate--> Plan <--JSON--> file
//!                     '--> run
//! ```
//!
//! A plan contains everything that is random in a run, except what the clusters and the controller draw from its seed. So a
//! change of the code changes no plan, and removing a step changes no other step. A step that is not possible at its time has
//! no effect, and the trace says so.

mod action;
mod availability;
mod availability_work;
mod discovery;
mod generate;
mod initial;
mod kind;
mod maintenance;
mod node_work;
mod rollouts;
mod scenario;
mod selected;
mod stream;
mod trial;

use federation_controller::config::Config;
use fedrs_api::SetKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use action::crash;
pub use action::{Action, Disk, Fault};
pub use availability_work::AvailabilityWork;
pub use discovery::generate_discovery;
pub use generate::generate;
pub(crate) use initial::START_SECONDS;
pub use node_work::NodeWork;
pub(crate) use rollouts::recovered as recovered_rollout;
pub use selected::Selected;
pub use trial::{Closing, Drift, Trial};

/// A run: what there is, and what happens to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// The seed of what the clusters and the controller draw themselves: uids, jitter.
    pub seed: u64,
    /// What of the controller's configuration differs from the defaults.
    #[serde(default, with = "config", skip_serializing_if = "config::is_default")]
    pub config: Config,
    /// How many controllers take part in the election; 0 is one controller without an election.
    #[serde(default)]
    pub candidates: u32,
    /// Whether discovery runs beside the controllers, with an EndpointSet for each set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discovery: bool,
    /// The members.
    pub members: Vec<MemberPlan>,
    /// The sets, which are created at the start.
    pub sets: Vec<SetPlan>,
    /// What happens, in the order of time.
    pub steps: Vec<Step>,
    /// When the steps have ended, in milliseconds since the start.
    pub end_ms: u64,
    /// The members that recover at the end, together with the host; all others stay as they are. Without it no cluster
    /// recovers, and only the safety is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Vec<String>>,
    /// What is tried at the end, if all members have recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberPlan {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// How many pods each of them can run.
    pub pods_per_node: u32,
    /// Whether its kubeconfig is in a Secret on the host, with the permissions of the controller's ServiceAccount, and not in
    /// a file, with those of an administrator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
}

/// A set in the namespace `default`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetPlan {
    /// Its kind.
    #[serde(default, skip_serializing_if = "is_replica_set")]
    pub kind: SetKind,
    /// Its name.
    pub name: String,
    /// Its spec.
    pub spec: Value,
}

/// What happens at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step<A = Action> {
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// What happens.
    #[serde(flatten)]
    pub action: A,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_replica_set(kind: &SetKind) -> bool {
    *kind == SetKind::FederatedReplicaSet
}

/// A configuration without its defaults.
mod config {
    use federation_controller::config::Config;
    use serde::{
        Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _,
    };
    use serde_json::Value;

    pub(super) fn is_default(config: &Config) -> bool {
        *config == Config::default()
    }

    pub(super) fn serialize<S: Serializer>(config: &Config, to: S) -> Result<S::Ok, S::Error> {
        let value = |config: &Config| serde_json::to_value(config).map_err(S::Error::custom);
        let (mut all, defaults) = (value(config)?, value(&Config::default())?);
        if let Value::Object(fields) = &mut all {
            fields.retain(|name, field| defaults[name] != *field);
        }
        all.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Config, D::Error> {
        let config = Config::deserialize(from)?;
        config.validate().map_err(D::Error::custom)?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn plans_are_the_same_after_they_were_written_and_read() {
        for seed in 0..200 {
            let config = Config::default();
            for plan in [
                generate(seed, &config, true),
                generate_discovery(seed, &config),
            ] {
                let json = plan.to_json();
                let read = Plan::from_json(&json).unwrap();
                assert_eq!(read, plan);
                assert_eq!(read.to_json(), json);
            }
        }
    }

    #[test]
    fn a_seed_gives_one_plan_and_others_give_others() {
        let json = |seed| generate(seed, &Config::default(), true).to_json();
        assert_eq!(json(7), json(7));
        assert_ne!(json(7), json(8));
    }
}
