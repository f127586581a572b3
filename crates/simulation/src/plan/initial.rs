//! What a plan begins with: members, sets, and the configuration of the controllers.

use federation_controller::config::Config;
use fedrs_api::SetKind;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::{MemberPlan, SetPlan};
use crate::sim_federation::frs;

/// The annotation of a pod with the time in which it starts.
pub(crate) const START_SECONDS: &str = "sim-cluster.dev/start-seconds";
/// The seeds of configurations are a stream of their own.
const CONFIG_STREAM: u64 = 0x636f_6e66;

/// The configuration of the controllers of a seed, which is `config` where that differs from the defaults.
///
/// With few workers, a set that keeps one from working is noticed: the others wait.
pub(super) fn config(seed: u64, config: &Config) -> Config {
    let mut random = StdRng::seed_from_u64(seed ^ (CONFIG_STREAM << 32));
    let mut config = config.clone();
    if config.workers == Config::default().workers {
        let few = [1, 2, config.workers];
        config.workers = *few.choose(&mut random).unwrap_or(&config.workers);
    }
    config
}

/// The members.
pub(super) fn members(random: &mut StdRng) -> Vec<MemberPlan> {
    (1..=random.random_range(2..=5))
        .map(|number| MemberPlan {
            name: format!("m{number}"),
            nodes: random.random_range(1..=3),
            pods_per_node: *[4, 8, 20, 110].choose(random).unwrap_or(&20),
            joined: random.random_bool(0.3),
        })
        .collect()
}

/// The sets.
pub(super) fn sets(members: &[MemberPlan], random: &mut StdRng) -> Vec<SetPlan> {
    ["web", "shop", "mail"]
        .into_iter()
        .take(random.random_range(1..=3))
        .map(|name| SetPlan {
            kind: SetKind::FederatedReplicaSet,
            name: name.to_owned(),
            spec: spec_of(name, members, random),
        })
        .collect()
}

/// The preference for one cluster.
pub(super) fn preference(random: &mut StdRng) -> Value {
    let least = random.random_range(0..5);
    let most = least + random.random_range(0..15);
    json!({ "minReplicas": least, "maxReplicas": most, "weight": random.random_range(0..4) })
}

/// The spec of a set at the start.
fn spec_of(name: &str, members: &[MemberPlan], random: &mut StdRng) -> Value {
    let mut clusters = json!({ "*": { "weight": 1 } });
    for member in members {
        if random.random_bool(0.2) {
            clusters[&member.name] = preference(random);
        }
    }
    let placement = json!({ "rebalance": random.random_bool(0.6), "clusters": clusters });
    let most = *[4, 12, 30].choose(random).unwrap_or(&12);
    let mut set = frs(name, random.random_range(0..=most), &placement);
    if random.random_bool(0.15) {
        set["spec"]["minReadySeconds"] = random.random_range(1..20).into();
    }
    if random.random_bool(0.3) {
        let surge = [json!(1), json!(5), json!("50%"), json!("100%")];
        set["spec"]["rescheduling"] = json!({
            "maxMoveSurge": (surge.choose(random)),
            "unscheduledTimeoutSeconds": ([5, 60, 300].choose(random)),
            "lostGracePeriodSeconds": ([0, 20, 60, 300].choose(random)),
        });
    }
    // The slower pods start, the more happens meanwhile.
    if random.random_bool(0.4) {
        let seconds = random.random_range(5..60).to_string();
        set["spec"]["template"]["metadata"]["annotations"] = json!({ START_SECONDS: seconds });
    }
    set["spec"].take()
}
