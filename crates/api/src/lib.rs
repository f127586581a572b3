//! The objects of fedrs: data and validation, no IO.
//!
//! ```text
//! YAML of a user -> FederatedReplicaSet (shape checked by the CRD's schema and CEL)
//!                -> ValidFrs            (everything else checked here: a type that can't be wrong)
//! ```
//!
//! Knows nothing of clients, stores or decisions.

pub mod crd;
mod dns;
pub mod federated_replica_set;
mod field;
pub mod marks;
pub mod member_cluster;
pub mod placement;
pub mod preferences;
mod schema;
pub mod selector;
pub mod set_key;
pub mod valid;
mod words;

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
pub use set_key::SetKey;
pub use valid::{ValidFrs, preferences_hash};
pub use words::counted;
