//! The migrations of pods of native ReplicaSets, with or without a Deployment: evictions within the budgets, as their controllers replace a
//! pod as soon as it is being deleted (M1, M5, M10, M14, M15).
//!
//! ```text
//! requests of no LocalReplicaSet --pod not read yet--> introduced: its ReplicaSet, its policy, its deadline
//!             '--whose turn it is (queue)--> decide (pure) --> dry run --> status: Evicting --> eviction, or deletion
//! ```
//!
//! Beside that, a mark on a node makes requests for its pods of ReplicaSets (`marks`, and `marked`, which is pure).
//!
//! ReplicaSets and Deployments are not watched: of each workload, they are read for the pod whose turn it is, some in each round. What a
//! decision follows from is in the objects, and above all in the statuses of the requests: what is kept in memory only says when a request
//! is looked at again.

mod asker;
mod decide;
mod facts;
mod look;
mod marked;
mod marks;
mod policy;
mod queue;

pub(crate) use look::NativeMigrations;
