//! FederatedDeployments in a plan: which sets are some, how they roll out, and what happens to their rollouts.
//!
//! All of it is drawn from a stream of its own, after the rest of the plan: a plan without FederatedDeployments has no other
//! steps than before.

use fedrs_api::SetKind;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

use super::{Action, MemberPlan, SetPlan, Step};

/// The seeds of rollouts are a stream of their own.
const STREAM: u64 = 0x726f_6c6c;
/// The share of plans with FederatedDeployments, and that of the sets in these.
const PLANS: f64 = 0.5;
const SETS: f64 = 0.7;
/// When most runs have sets that are as they should be.
const STARTED_MS: u64 = 15_000;
/// Steps of a rollout, which members may belong to.
const STEPS: [&str; 3] = ["first", "second", "third"];
/// A condition that no pod ever has.
const NEVER: &str = "example.com/never";

/// Makes FederatedDeployments of some sets, and adds what happens to their rollouts until `end_ms`.
pub(super) fn add(
    seed: u64,
    members: &[MemberPlan],
    sets: &mut [SetPlan],
    steps: &mut Vec<Step>,
    end_ms: u64,
) {
    let mut random = StdRng::seed_from_u64(seed ^ (STREAM << 32));
    if !random.random_bool(PLANS) {
        return;
    }
    let mut names = Vec::new();
    for set in sets {
        if random.random_bool(SETS) {
            set.kind = SetKind::FederatedDeployment;
            let fields = initial(members, &mut random);
            set.spec
                .as_object_mut()
                .into_iter()
                .for_each(|spec| spec.extend(fields.clone()));
            names.push(set.name.clone());
        }
    }
    if names.is_empty() {
        return;
    }
    for step in &mut *steps {
        stop_instead(&mut step.action, &names, &mut random);
    }
    let mut generator = Generator {
        random,
        names,
        members: members.iter().map(|member| member.name.clone()).collect(),
        steps,
        end_ms: end_ms.max(STARTED_MS + 1),
    };
    for _ in 0..generator.random.random_range(2..=14) {
        generator.draw();
    }
}

/// What a user changes in a FederatedDeployment when all faults have ended, so that its rollout is completed.
pub(crate) fn recovered() -> Map<String, Value> {
    object(json!({
        "paused": false,
        "stopped": false,
        "progressDeadlineSeconds": 600,
        "rollout": { "steps": null, "speed": null },
        "template": { "spec": {
            "containers": [{
                "name": "main",
                "image": "registry.example/main:recovered",
                "ports": [{ "containerPort": 80 }],
            }],
            "readinessGates": null,
        } },
    }))
}

/// `spec.paused` of a FederatedReplicaSet stops all changes; so does `spec.stopped` of a FederatedDeployment.
fn stop_instead(action: &mut Action, names: &[String], random: &mut StdRng) {
    if let Action::EditSet { set, spec } = action
        && names.contains(set)
        && let Some(paused) = spec.get("paused").cloned()
        && random.random_bool(0.5)
    {
        *spec = json!({ "stopped": paused });
    }
}

/// The fields that only a FederatedDeployment has, at the start.
fn initial(members: &[MemberPlan], random: &mut StdRng) -> Map<String, Value> {
    let names: Vec<_> = members.iter().map(|member| member.name.clone()).collect();
    let mut spec = json!({ "strategy": strategy(random), "rollout": {} });
    spec["progressDeadlineSeconds"] = deadline(random);
    if random.random_bool(0.3) {
        spec["rollout"]["speed"] = speed(random);
    }
    if random.random_bool(0.3) {
        spec["rollout"]["steps"] = rollout_steps(&names, random);
    }
    object(spec)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Never 0 and 0, which the API server rejects.
fn strategy(random: &mut StdRng) -> Value {
    let amounts = [
        json!(0),
        json!(1),
        json!(2),
        json!(5),
        json!("10%"),
        json!("25%"),
        json!("60%"),
    ];
    let mut amount = |from: usize| amounts[from..].choose(random).cloned().unwrap_or_default();
    let (unavailable, surge) = (amount(0), amount(0));
    let surge = if unavailable == 0 && surge == 0 {
        amount(1)
    } else {
        surge
    };
    json!({ "rollingUpdate": { "maxUnavailable": unavailable, "maxSurge": surge } })
}

/// Above the longest `minReadySeconds` and speed.
fn deadline(random: &mut StdRng) -> Value {
    let seconds = [30, 120, 600, i32::MAX];
    json!(seconds.choose(random))
}

fn speed(random: &mut StdRng) -> Value {
    json!({
        "updatePortion": random.random_range(1..=6),
        "minDelaySeconds": random.random_range(1..=20),
    })
}

fn rollout_steps(members: &[String], random: &mut StdRng) -> Value {
    let mut clusters = vec![Vec::new(); STEPS.len()];
    for member in members {
        // Members in none of them form a last step.
        if random.random_bool(0.8) {
            let place = random.random_range(0..STEPS.len());
            clusters[place].push(member.clone());
        }
    }
    let steps = STEPS
        .iter()
        .zip(clusters)
        .filter(|(_, clusters)| !clusters.is_empty());
    let steps = steps.map(|(name, clusters)| {
        let mut step = json!({ "name": name, "clusters": clusters });
        if random.random_bool(0.4) {
            step["soakSeconds"] = random.random_range(1..60).into();
        }
        if random.random_bool(0.3) {
            step["approval"] = "Before".into();
        }
        if random.random_bool(0.3) {
            step["maxConcurrentClusters"] = 1.into();
        }
        step
    });
    Value::Array(steps.collect())
}

struct Generator<'a> {
    random: StdRng,
    names: Vec<String>,
    members: Vec<String>,
    steps: &'a mut Vec<Step>,
    end_ms: u64,
}

impl Generator<'_> {
    fn choose(&mut self, from: fn(&Self) -> &Vec<String>) -> String {
        let place = self.random.random_range(0..from(self).len());
        from(self)[place].clone()
    }

    fn push(&mut self, at_ms: u64, action: Action) {
        let at_ms = at_ms.min(self.end_ms);
        self.steps.push(Step { at_ms, action });
    }

    fn draw(&mut self) {
        let at_ms = self.random.random_range(STARTED_MS..self.end_ms);
        let set = self.choose(|all| &all.names);
        let action = match self.random.random_range(0..26) {
            0..8 => return self.image(at_ms, set),
            8 | 9 => return self.pause(at_ms, &set),
            10..18 => self.edit(set),
            18..20 => Action::Approve {
                set,
                step: (*STEPS.choose(&mut self.random).unwrap_or(&"first")).to_owned(),
            },
            20..22 => self.drift(set),
            22 | 23 => Action::Crash {
                process: self.random.random_range(1..=2),
                write: self.random.random_range(1..12),
                after: self.random.random_bool(0.5),
                down_ms: *[1, 1_000, 20_000].choose(&mut self.random).unwrap_or(&1),
            },
            _ => self.writes(),
        };
        self.push(at_ms, action);
    }

    /// Another image, of few: often an earlier one. The pods of some never become ready.
    fn image(&mut self, at_ms: u64, set: String) {
        let image = format!("registry.example/main:{}", self.random.random_range(0..5));
        let is_bad = self.random.random_bool(0.2);
        let gates = is_bad.then(|| json!([{ "conditionType": NEVER }]));
        let template = |image: &str, gates: Option<Value>| {
            let containers = json!([{ "name": "main", "image": image }]);
            json!({ "template": { "spec": { "containers": containers, "readinessGates": gates } } })
        };
        let spec = template(&image, gates);
        self.push(
            at_ms,
            Action::EditSet {
                set: set.clone(),
                spec,
            },
        );
        // Most bad images are replaced soon.
        if is_bad && self.random.random_bool(0.7) {
            let after = self.random.random_range(1_000..60_000);
            let spec = template("registry.example/main:1", None);
            self.push(at_ms + after, Action::EditSet { set, spec });
        }
    }

    /// Pauses rollouts, and resumes them.
    fn pause(&mut self, at_ms: u64, set: &str) {
        let after = self.random.random_range(500..40_000);
        for (at_ms, paused) in [(at_ms, true), (at_ms + after, false)] {
            let spec = json!({ "paused": paused });
            self.push(
                at_ms,
                Action::EditSet {
                    set: set.to_owned(),
                    spec,
                },
            );
        }
    }

    fn edit(&mut self, set: String) -> Action {
        let random = &mut self.random;
        let spec = match random.random_range(0..7) {
            0 | 1 => json!({ "strategy": strategy(random) }),
            2 => json!({ "minReadySeconds": random.random_range(0..20) }),
            3 => {
                let speed = random.random_bool(0.7).then(|| speed(random));
                json!({ "rollout": { "speed": speed } })
            }
            4 => {
                let steps = random.random_bool(0.7);
                let steps = steps.then(|| rollout_steps(&self.members, random));
                json!({ "rollout": { "steps": steps } })
            }
            5 => json!({ "progressDeadlineSeconds": deadline(random) }),
            _ => {
                let policy = if random.random_bool(0.5) {
                    "Stop"
                } else {
                    "Undo"
                };
                json!({ "rollout": { "onFailure": policy } })
            }
        };
        Action::EditSet { set, spec }
    }

    /// Somebody changes the Deployment of a member.
    fn drift(&mut self, set: String) -> Action {
        let member = self.choose(|all| &all.members);
        let random = &mut self.random;
        let spec = match random.random_range(0..5) {
            0 => json!({ "paused": random.random_bool(0.8) }),
            1 => {
                json!({ "strategy": { "rollingUpdate": { "maxUnavailable": random.random_range(1..4), "maxSurge": 1 } } })
            }
            2 => json!({ "replicas": random.random_range(0..12) }),
            3 => json!({ "minReadySeconds": 7 }),
            _ => {
                json!({ "template": { "spec": { "containers": [{ "name": "main", "image": "registry.example/other:1" }] } } })
            }
        };
        let patch = json!({ "spec": spec });
        Action::EditLocalSet { member, set, patch }
    }

    /// Writes to Deployments are rejected, or their responses are lost.
    fn writes(&mut self) -> Action {
        let cluster = self.choose(|all| &all.members);
        let times = self.random.random_range(1..5);
        let is_lost = self.random.random_bool(0.5);
        let codes = [409, 422, 500];
        let code = (!is_lost).then(|| *codes.choose(&mut self.random).unwrap_or(&500));
        Action::failing((cluster, "deployments", "patch"), times, code)
    }
}
