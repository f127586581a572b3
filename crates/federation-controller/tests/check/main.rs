//! The rules of a check as tables, by number: pure, without a cluster.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests: short calls, and a test that can't go on ends"
)]

mod bounds;
mod capacity;
mod convergence;
mod drain;
mod duplicates;
mod external_changes;
mod extremes;
mod failing;
mod holds;
mod lag;
mod local_sets;
mod lying;
mod many_members;
mod members;
mod moves;
mod namespaces;
mod not_acting;
mod pod_drain;
mod rejections;
mod rollout_moves;
mod rollout_world;
mod rollouts;
mod selection;
mod sets;
mod settings;
mod status;
mod terminating;
mod texts;
mod unready;
mod waits;
mod world;
