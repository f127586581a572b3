//! What one member cluster holds, as counts, and whether it can be believed.
//!
//! ```text
//! list + watch local sets --.
//! list + watch pods --------+--> one task owns the facts --> MemberStore (read by key) --> check
//! probe of /readyz ---------+                            \-> ChangeSink: which set to look at, and how soon
//! version, nodes -----------'
//! ```
//!
//! Knows sets by a key and the labels of a federation; nothing of `FederatedReplicaSet`s or layouts.

pub mod about;
pub mod counts;
mod feed;
mod informer;
mod metrics;
pub mod pod_fact;
pub mod probe;
mod quantity;
pub mod set_fact;
mod sets;
mod store;
mod tombstones;
pub mod view;
mod wire;

pub use about::AboutSettings;
pub use informer::{InformerSettings, MemberInformer};
pub use metrics::InformerMetrics;
pub use probe::ProbeSettings;
pub use store::{Clock, MemberStore};
pub use view::{
    Change, ChangeSink, Health, Held, MemberView, PodCounts, ReplicaFailure, SetFact, SetView, Sync,
};
