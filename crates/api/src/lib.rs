//! The objects of fedrs: data and validation, no IO.
//!
//! ```text
//! YAML of a user -> FederatedReplicaSet (shape checked by the CRD's schema and CEL)
//!                -> ValidFrs            (everything else checked here: a type that can't be wrong)
//! ```
//!
//! Knows nothing of clients, stores or decisions.

pub mod annotations;
pub mod crd;
mod dns;
pub mod federated_replica_set;
mod field;
pub mod finalizers;
pub mod labels;
pub mod member_cluster;
pub mod names;
pub mod placement;
mod plural;
pub mod preferences;
mod schema;
pub mod selector;
pub mod set_key;
pub mod valid;

pub use dns::is_label as is_dns_label;
pub use federated_replica_set::{
    ClusterStatus, DeletionPolicy, FederatedReplicaSet, FederatedReplicaSetSpec,
    FederatedReplicaSetStatus, PodTemplate, TemplateMetadata,
};
pub use field::FieldError;
pub use member_cluster::{
    MemberCluster, MemberClusterSpec, MemberClusterStatus, NodeCounts, SecretRef,
};
pub use placement::{ClusterPreference, Placement};
pub use plural::pluralize;
pub use set_key::SetKey;
pub use valid::{ValidFrs, preferences_hash};
