//! The controller of LocalReplicaSets on simulated time, in one embedded cluster with faults.
//!
//! ```text
//! seed --> LocalPlan (steps: edits, evictions, faults) --run--> Outcome
//!            cluster, two candidates of the controller --writes, changes--> checks, by what the API server has and had
//! ```

mod checks;
mod plan;
mod run;
mod scenario;

pub use plan::{LocalAction, LocalFault, LocalPlan, LocalSetPlan, LocalStep, generate_local};

/// The namespace of the sets.
const NAMESPACE: &str = "default";
/// The collection of LocalReplicaSets.
const SETS_PATH: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/localreplicasets";
/// The collection of pods.
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";
/// The collection of MigrationPolicies.
const POLICIES_PATH: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/migrationpolicies";
/// The collection of MigrationRequests.
const MIGRATIONS_PATH: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/migrationrequests";
/// The collection of PodDisruptionBudgets.
const BUDGETS_PATH: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
/// The collection of ResourceQuotas.
const QUOTAS_PATH: &str = "/api/v1/namespaces/default/resourcequotas";
/// The collection of nodes.
const NODES_PATH: &str = "/api/v1/nodes";
