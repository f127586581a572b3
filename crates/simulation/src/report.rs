//! What a person reads about a failure.

use std::fmt::Write as _;

use crate::{
    checks::Invariant,
    plan::Plan,
    run::Outcome,
    trace::{Topic, TraceLine},
};

/// The kinds of failure, each with an exit code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// The controller panicked.
    Crash,
    /// An invariant did not hold at a write.
    Safety,
    /// The desired state was not reached, or did not stay.
    Liveness,
    /// The same plan gave two traces.
    Determinism,
}

impl FailureKind {
    /// The exit code of a simulation that found it.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Crash => 10,
            Self::Safety => 11,
            Self::Liveness => 12,
            Self::Determinism => 13,
        }
    }
}

impl From<Invariant> for FailureKind {
    fn from(invariant: Invariant) -> Self {
        match invariant {
            Invariant::NoPanic => Self::Crash,
            Invariant::Reached | Invariant::Settled | Invariant::InTime => Self::Liveness,
            _ => Self::Safety,
        }
    }
}

/// Lines of writes and pods that are shown before a violation.
const SHOWN: usize = 40;

/// What is in a plan, in a few lines.
#[must_use]
pub fn describe_plan(plan: &Plan) -> String {
    let mut text = String::new();
    for member in &plan.members {
        let nodes = if member.nodes == 1 { "node" } else { "nodes" };
        let _ = writeln!(
            text,
            "  member {}: {} {nodes} for {} pods each",
            member.name, member.nodes, member.pods_per_node
        );
    }
    for set in &plan.sets {
        let (replicas, placement) = (&set.spec["replicas"], &set.spec["placement"]);
        let _ = writeln!(
            text,
            "  set {}: {replicas} replicas, placement {placement}",
            set.name
        );
    }
    text
}

/// The lines of a trace that matter: all steps, and what was written shortly before the end.
#[must_use]
pub fn timeline(outcome: &Outcome) -> String {
    let lines = outcome.trace.lines();
    let is_detail = |line: &&TraceLine| matches!(line.topic, Topic::Write | Topic::Pods);
    let details = lines.iter().filter(is_detail).count();
    let mut hidden = details.saturating_sub(SHOWN);
    let mut text = String::new();
    let mut skipped = 0;
    for line in lines {
        if is_detail(&line) && hidden > 0 {
            hidden -= 1;
            skipped += 1;
            continue;
        }
        if skipped > 0 {
            let _ = writeln!(text, "              ({skipped} writes and changes of pods)");
            skipped = 0;
        }
        let _ = writeln!(text, "  {line}");
    }
    text
}
