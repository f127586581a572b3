//! What one member cluster holds, as counts, and whether it can be believed.
//!
//! ```text
//! list + watch local sets --.
//! list + watch pods --------+--> one task owns the facts --> MemberStore (read by key) --> check
//! probe of /readyz ---------'                            \-> ChangeSink: which set to look at, and how soon
//! ```
//!
//! Knows sets by a key and the labels of a federation; nothing of FederatedReplicaSets or layouts.

pub mod view;

pub use view::{
    Change, ChangeSink, Health, MemberView, PodCounts, ReplicaFailure, SetFact, SetView, Sync,
};
