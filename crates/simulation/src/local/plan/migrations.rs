//! A MigrationPolicy, and what happens because of it.
//!
//! It has a stream of random numbers of its own, so that plans without one are what they were before there were policies.

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::{LocalAction, LocalStep};

const STREAM: u64 = 0x6d69_6700;

/// The spec of the policy of all sets with these names, if there is one. Adds its steps, until `end_ms`.
pub(super) fn draw(
    seed: u64,
    (sets, nodes, end_ms): (&[&str], u32, u64),
    steps: &mut Vec<LocalStep>,
) -> Option<Value> {
    let mut random = StdRng::seed_from_u64(seed ^ (STREAM << 32));
    if !random.random_bool(0.4) {
        return None;
    }
    for _ in 0..random.random_range(1..10) {
        let action = action(sets, nodes, &mut random);
        let at_ms = random.random_range(500..end_ms.max(501));
        steps.push(LocalStep { at_ms, action });
    }
    let mut policy = policy(&mut random);
    if random.random_bool(0.5) {
        maintain(nodes, end_ms, &mut random, steps);
        if random.random_bool(0.7) {
            policy["maintenance"] = json!({
                "tolerate": "All",
                "maxDowntimeSeconds": ([20, 100, 400].choose(&mut random)),
                "maxUnavailable": ([json!(null), json!(1), json!("50%")].choose(&mut random)),
            });
        }
    }
    Some(policy)
}

/// Some nodes are worked on. Most of them go down meanwhile, and some are not back in time (M9).
fn maintain(nodes: u32, end_ms: u64, random: &mut StdRng, steps: &mut Vec<LocalStep>) {
    for _ in 0..random.random_range(1..3) {
        let node = random.random_range(0..nodes);
        let seconds = random.random_range(5..200_u32);
        let begin_ms = random.random_range(500..end_ms.max(501));
        let mut add = |seconds: u32, action| {
            let at_ms = (begin_ms + u64::from(seconds) * 1_000).min(end_ms);
            steps.push(LocalStep { at_ms, action });
        };
        let mark = |seconds| LocalAction::Maintenance { node, seconds };
        add(0, mark(Some(seconds)));
        let overrun = seconds / 2 * random.random_range(0..3);
        if random.random_bool(0.7) {
            let down = |fails| LocalAction::Node { node, fails };
            add(seconds / 3, down(true));
            add(seconds + overrun, down(false));
        }
        add(seconds + overrun + 1, mark(None));
    }
}

fn policy(random: &mut StdRng) -> Value {
    let between = *[0, 5, 60].choose(random).unwrap_or(&0);
    let mut spec = json!({
        "selector": {},
        "minSecondsBetween": { "hardware": between, "compaction": between },
    });
    if random.random_bool(0.4) {
        let limits = [json!(1), json!(2), json!("30%")];
        spec["maxUnavailable"] = limits.choose(random).cloned().unwrap_or_default();
    }
    if random.random_bool(0.7) {
        spec["shutdown"] = json!({
            "timeoutSeconds": ([5, 40, 200].choose(random)),
            "onTimeout": (["Evict", "HandsUp", "HandsUp", "Replace"].choose(random)),
        });
    }
    add_method(&mut spec, random);
    spec
}

/// How pods leave: most of them move (M1).
fn add_method(spec: &mut Value, random: &mut StdRng) {
    match random.random_range(0..20) {
        0..5 => {
            spec["method"] = "Copy".into();
            spec["copy"] = json!({
                "maxAtOnce": (random.random_range(1..4)),
                "confirmBeforeActivation": (random.random_bool(0.3)),
                "confirmBeforeShutdown": (random.random_bool(0.3)),
            });
        }
        5..9 => {
            spec["method"] = "Manual".into();
            if spec["shutdown"].is_object() {
                spec["shutdown"]["onTimeout"] = "HandsUp".into();
            }
        }
        _ => {}
    }
}

fn action(sets: &[&str], nodes: u32, random: &mut StdRng) -> LocalAction {
    let set = (*sets.choose(random).unwrap_or(&"")).to_owned();
    let index = random.random_range(0..12);
    match random.random_range(0..10) {
        0..4 => LocalAction::Migrate {
            set,
            index,
            deadline_seconds: random.random_bool(0.4).then(|| random.random_range(1..300)),
        },
        4 => LocalAction::CancelMigrations { set },
        5..7 => LocalAction::ForceDeletePod { set, index },
        7 => LocalAction::ConfirmMigrations,
        _ => LocalAction::Destroy {
            node: random.random_range(0..nodes),
        },
    }
}
