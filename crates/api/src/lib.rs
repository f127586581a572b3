//! The API objects of fedrs: types and validation, no IO.
//!
//! ```text
//! YAML of a user -> FederatedReplicaSet, FederatedDeployment, LocalReplicaSet, EndpointSet (checked by the schema and CEL rules of the CRD)
//!                -> ValidFrs, ValidFederatedDeployment, ValidLocalReplicaSet  (checked here: types that can't be invalid)
//! ```
//!
//! Budget and speed of a valid FederatedDeployment or LocalReplicaSet are values of `federated-rollout`, which decides by them. Does not know
//! clients, stores or decisions.

pub mod annotations;
pub mod availability_set;
mod closed_set;
mod closest_name;
mod cluster_status;
mod cluster_type;
mod compact;
pub mod conditions;
pub mod crd;
mod deployment_strategy;
mod dns;
mod drain;
pub mod endpoint_set;
mod events;
pub mod federated_deployment;
pub mod federated_replica_set;
mod field;
pub mod finalizers;
mod json_text;
pub mod labels;
mod local_record;
pub mod local_replica_set;
mod local_status;
mod local_strategy;
pub mod maintenance;
pub mod member_cluster;
pub mod migration_policy;
pub mod migration_request;
mod migration_wait;
pub mod names;
mod notify;
pub mod object_key;
mod percentage;
pub mod placement;
mod plural;
pub mod preferences;
pub mod quantity;
mod record_text;
mod rescheduling;
mod revision;
mod rollout;
mod rollout_status;
mod rules;
mod schema;
pub mod selector;
pub mod valid;
mod valid_availability;
mod valid_deployment;
mod valid_endpoint_set;
mod valid_local;
mod valid_maintenance;
mod valid_migration_policy;
mod valid_rollout;
mod wait;

pub use availability_set::{
    AvailabilityCluster, AvailabilitySet, AvailabilitySetSpec, AvailabilitySetStatus,
    DOMAINS_SHOWN_MAX, DisruptionLimit, DomainLabels, DomainPods, DomainStatus, DomainType, Loan,
    LoanKind, ObservedLimit,
};
pub use closest_name::{closest_name, unknown_clusters};
pub use cluster_status::{
    ClusterInternalState, ClusterReason, ClusterState, ClusterStatus, Rejection, RejectionKind,
    SettingsHash, TemplateRecord, TemplateRejection, WriteHistory,
};
pub use cluster_type::ClusterType;
pub use conditions::{
    AvailabilityConditionType, AvailabilityReason, ConditionReason, ConditionStatus, ConditionType,
    EndpointConditionType, EndpointReason, LocalConditionType, LocalReason,
    MaintenanceConditionType, MaintenanceReason, MemberConditionType, MemberReason, NewCondition,
};
pub use deployment_strategy::{DeploymentStrategy, RollingUpdate, StrategyType};
pub use dns::is_label as is_dns_label;
pub use endpoint_set::{
    EndpointAddresses, EndpointSet, EndpointSetCluster, EndpointSetSpec, EndpointSetStatus,
    EndpointSource, IncludedPods,
};
pub use events::{
    AvailabilityEventReason, EventReason, LocalEventReason, MaintenanceEventReason,
    MemberEventReason, MigrationEventReason,
};
pub use federated_deployment::{DeploymentKind, FederatedDeployment, FederatedDeploymentSpec};
pub use federated_replica_set::{
    DeletionPolicy, FederatedReplicaSet, FederatedReplicaSetSpec, FederatedReplicaSetStatus,
    MAX_ENTRIES, PodTemplate, TemplateMetadata,
};
pub use field::{Errors as FieldErrors, FieldError, SHOWN_ERRORS};
pub use json_text::JsonText;
pub use local_record::{
    BegunRecord, DrainRecord, EvictionRecord, LentRecord, LocalRecord, MigratedRecord,
    RecreateRecord, UpdateRecord,
};
pub use local_replica_set::{
    AntiaffinityConstraint, LocalConstraints, LocalReplicaSet, LocalReplicaSetSpec, UpdateMode,
    defaults as local_defaults,
};
pub use local_status::{LocalReplicaSetStatus, RevisionPods};
pub use local_strategy::{
    DeploySpeed, LocalDeploymentStrategy, ResourceUpdates, ValidLocalStrategy,
};
pub use maintenance::{
    BLOCKING_MAX, BlockingPod, Maintenance, MaintenanceCluster, MaintenanceMark, MaintenanceNodes,
    MaintenancePhase, MaintenanceSpec, MaintenanceStatus,
};
pub use member_cluster::{
    MemberCluster, MemberClusterSpec, MemberClusterStatus, MemberInternalState, MemberSource,
    NAMESPACES_MAX, NamespaceScope, NodeCounts, SecretRef,
};
pub use migration_policy::{
    CopyMethod, MaintenanceTolerance, MigrationMethod, MigrationPolicy, MigrationPolicySpec,
    MinSecondsBetween, ShardBudget, Shutdown, ShutdownTimeout, ToleratedWork,
};
pub use migration_request::{
    AwaitedAction, Confirmation, MigrationCause, MigrationPhase, MigrationRequest,
    MigrationRequestSpec, MigrationRequestStatus, MigrationStep, NativeMigration,
};
pub use migration_wait::{MigrationRefusal, MigrationWaitReason};
pub use notify::{NotificationStatus, Notify, ValidNotify, Webhook};
pub use object_key::{LocalKind, NamespacedKey, ObjectKey, SetKind, WorkloadKey};
pub use placement::{ClusterPreference, Placement};
pub use plural::{plural, pluralize};
pub use rescheduling::{Rescheduling, Surge, TimeLimit, ValidRescheduling};
pub use revision::{revision_name, template_hash};
pub use rollout::{
    FailurePolicy, MAX_STEP_CLUSTERS, MAX_STEPS, Rollout, RolloutApproval, RolloutSpeed,
    RolloutStep, StepApproval,
};
pub use rollout_status::RolloutStatus;
pub use valid::{ValidFrs, ValidTemplate, preferences_hash};
pub use valid_availability::ValidAvailabilitySet;
pub use valid_deployment::{RolloutSettings, ValidFederatedDeployment};
pub use valid_endpoint_set::{NamedPort, PodPort, ValidEndpointSet, ValidEndpointSource};
pub use valid_local::{AllowedChanges, ValidAntiaffinity, ValidLocalReplicaSet};
pub use valid_maintenance::ValidMaintenance;
pub use valid_migration_policy::{
    PodLimit, ValidCopy, ValidMethod, ValidMigrationPolicy, ValidShardBudget, ValidShutdown,
    ValidTolerance,
};
pub use valid_rollout::ValidRollout;
pub use wait::{ClusterWait, WaitReason};
