//! Maintenances in a plan: which nodes they are about, from when and until when, and what happens to them and to nodes meanwhile.

use fedrs_api::annotations;
use jiff::Timestamp;
use rand::{RngExt, seq::IndexedRandom};
use serde_json::{Value, json};

use super::{Action, MemberPlan, NodeWork, Step, stream::Stream};
use crate::sim_federation::{EPOCH, HOST};

/// The seeds of Maintenances are a stream of their own.
const STREAM: u64 = 0x6d61_696e;
/// The share of plans with Maintenances.
const PLANS: f64 = 0.4;
/// The label of nodes by which Maintenances select them, and its values: Maintenances often overlap.
const RACK: &str = "example.com/rack";
const RACKS: [&str; 2] = ["r1", "r2"];
const NAMES: [&str; 3] = ["power", "kernel", "network"];

/// Adds Maintenances, and what happens to them and to nodes until `end_ms`.
pub(super) fn add(seed: u64, members: &[MemberPlan], steps: &mut Vec<Step>, end_ms: u64) {
    let Some(stream) = Stream::of((seed, STREAM, PLANS), members, steps, end_ms) else {
        return;
    };
    let mut generator = Generator { stream };
    generator.label_nodes();
    let count = generator.stream.random.random_range(1..=NAMES.len());
    for name in &NAMES[..count] {
        generator.maintenance(name);
    }
    for _ in 0..generator.stream.random.random_range(0..=10) {
        generator.disturb();
    }
}

/// A time as a Maintenance has it, in ms since the start.
fn time(at_ms: u64) -> Value {
    let seconds = i64::try_from(at_ms / 1000).unwrap_or(0);
    let time = Timestamp::from_second(EPOCH + seconds);
    json!(time.ok().map(|time| time.to_string()))
}

fn in_rack(rack: &str) -> Value {
    json!({ "matchLabels": { RACK: rack } })
}

struct Generator<'a> {
    stream: Stream<'a>,
}

impl Generator<'_> {
    fn push(&mut self, at_ms: u64, work: NodeWork) {
        self.stream.push(at_ms, Action::Work(work));
    }

    fn rack(&mut self) -> &'static str {
        RACKS.choose(&mut self.stream.random).unwrap_or(&"r1")
    }

    fn node(&mut self) -> (String, u32) {
        let MemberPlan { name, nodes, .. } = self.stream.member().clone();
        (name, self.stream.random.random_range(1..=nodes))
    }

    /// Most nodes are in a rack.
    fn label_nodes(&mut self) {
        for MemberPlan { name, nodes, .. } in self.stream.members {
            for node in 1..=*nodes {
                if self.stream.random.random_bool(0.8) {
                    let labels = json!({ RACK: self.rack() });
                    let patch = json!({ "metadata": { "labels": labels } });
                    let member = name.clone();
                    let work = NodeWork::EditNode {
                        member,
                        node,
                        patch,
                    };
                    self.push(0, work);
                }
            }
        }
    }

    /// A Maintenance, what happens to it, and perhaps its end.
    fn maintenance(&mut self, name: &str) {
        let created = self.stream.at();
        let spec = self.spec(created);
        let maintenance = name.to_owned();
        self.push(created, NodeWork::Create { maintenance, spec });
        for _ in 0..self.stream.random.random_range(0..3) {
            let at_ms = self
                .stream
                .random
                .random_range(created..=self.stream.end_ms);
            let spec = self.edit();
            let maintenance = name.to_owned();
            self.push(at_ms, NodeWork::Edit { maintenance, spec });
        }
        if self.stream.random.random_bool(0.3) {
            return;
        }
        let ended = created + self.stream.random.random_range(1..200_000);
        let maintenance = name.to_owned();
        let is_deleted = self.stream.random.random_bool(0.5);
        let end = if is_deleted {
            NodeWork::Delete { maintenance }
        } else {
            let spec = json!({ "ended": true });
            NodeWork::Edit { maintenance, spec }
        };
        self.push(ended, end);
        if is_deleted && self.stream.random.random_bool(0.3) {
            // Of the same name, with another uid.
            let again = ended + self.stream.random.random_range(1..60_000);
            let spec = self.spec(again);
            let maintenance = name.to_owned();
            self.push(again, NodeWork::Create { maintenance, spec });
        }
    }

    /// A spec for a Maintenance that is created then.
    fn spec(&mut self, created: u64) -> Value {
        let mut spec = match self.stream.random.random_range(0..3) {
            0 => json!({ "clusters": [self.stream.member().name], "nodeSelector": {} }),
            1 => json!({ "nodeSelector": in_rack(self.rack()) }),
            _ => {
                json!({ "clusters": [self.stream.member().name], "nodeSelector": in_rack(self.rack()) })
            }
        };
        if self.stream.random.random_bool(0.4) {
            spec["startTime"] = time(created + self.stream.random.random_range(0..120_000));
        }
        if self.stream.random.random_bool(0.5) {
            spec["durationSeconds"] = self.stream.random.random_range(1..7200).into();
        }
        spec
    }

    /// Another selector, other clusters, another start or duration.
    fn edit(&mut self) -> Value {
        match self.stream.random.random_range(0..6) {
            0 | 1 => json!({ "nodeSelector": in_rack(self.rack()) }),
            2 => json!({ "clusters": [self.stream.member().name] }),
            // The API server rejects it for all nodes.
            3 => json!({ "clusters": null }),
            4 => {
                let at_ms = self.stream.at();
                json!({ "startTime": time(at_ms) })
            }
            _ => {
                json!({ "durationSeconds": self.stream.random.random_range(1..7200), "reason": "longer" })
            }
        }
    }

    /// Somebody changes a node, or it disappears and comes back; or writes of marks fail.
    fn disturb(&mut self) {
        let at_ms = self.stream.at();
        let (member, node) = self.node();
        let patch = match self.stream.random.random_range(0..12) {
            0..3 => json!({ "spec": { "unschedulable": self.stream.random.random_bool(0.6) } }),
            3..5 => json!({ "metadata": { "labels": { RACK: self.rack() } } }),
            5 => json!({ "metadata": { "labels": { annotations::EVICT: "true" } } }),
            6 => json!({ "metadata": { "labels": { annotations::EVICT: null } } }),
            7 => json!({ "metadata": { "annotations": { annotations::MAINTENANCE: null } } }),
            8 | 9 => return self.removal(at_ms, &member, node),
            _ => return self.writes(at_ms, member),
        };
        let work = NodeWork::EditNode {
            member,
            node,
            patch,
        };
        self.push(at_ms, work);
    }

    /// A node disappears, and comes back as another object.
    fn removal(&mut self, at_ms: u64, member: &str, node: u32) {
        let back = at_ms + self.stream.random.random_range(1..60_000);
        let labels = json!({ RACK: self.rack() });
        let object = |exists| NodeWork::NodeObject {
            member: member.to_owned(),
            node,
            exists,
        };
        self.push(at_ms, object(false));
        self.push(back, object(true));
        let work = NodeWork::EditNode {
            member: member.to_owned(),
            node,
            patch: json!({ "metadata": { "labels": labels } }),
        };
        self.push(back + 1, work);
    }

    /// Writes to nodes, or to Maintenances, are rejected, or their responses are lost.
    fn writes(&mut self, at_ms: u64, member: String) {
        let (cluster, resource, verb) = match self.stream.random.random_range(0..4) {
            0 => (HOST.to_owned(), "maintenances", "update"),
            1 => (HOST.to_owned(), "maintenances", "patch"),
            _ => (member, "nodes", "patch"),
        };
        // No conflict with another writer goes on for ever.
        let (code, times) = *[(409, 1), (409, 3), (403, 3), (403, 100), (500, 100)]
            .choose(&mut self.stream.random)
            .unwrap_or(&(500, 1));
        let is_lost = self.stream.random.random_bool(0.5);
        let code = (!is_lost).then_some(code);
        let action = Action::failing((cluster, resource, verb), times, code);
        self.stream.push(at_ms, action);
    }
}
