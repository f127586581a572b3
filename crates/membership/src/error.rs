//! Why an operation fails.

use std::{io, time::Duration};

use fedrs_api::{ObjectKey, SetKind};

use crate::{
    cluster_client::RequestError,
    drain::pending::DrainPending,
    join::{
        problem::{self, Problem},
        readiness::NotReady,
    },
    kubeconfig::KubeconfigError,
    set_ref::SetRef,
    uninstall::SetCounts,
};

/// An operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// There is no such member.
    #[error("member {0} not found: run `kubectl get mc` to list the members")]
    MemberNotFound(String),
    /// There is no such Maintenance.
    #[error("maintenance {0} not found: run `fedrs maintenance status` to list all")]
    MaintenanceNotFound(String),
    /// There is no such AvailabilitySet.
    #[error("availabilityset {0} not found: run `kubectl get avset` to list all")]
    AvailabilitySetNotFound(String),
    /// There is no such set.
    #[error("{0} not found")]
    SetNotFound(SetRef),
    /// Sets of both kinds have the name.
    #[error(
        "{namespace}/{name} is the name of a FederatedReplicaSet and of a FederatedDeployment: choose one with frs/{name} or \
         fdeploy/{name}"
    )]
    AmbiguousSet {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// This version of fedrs can't read the set.
    #[error("this version of fedrs can't read {set}: {reason}")]
    SetUnreadable {
        /// Which one.
        set: ObjectKey,
        /// What can't be read.
        reason: String,
    },
    /// The controller leaves the set as it is.
    #[error("{set} can't be planned: {reason}")]
    SetNotPlanned {
        /// Which one.
        set: ObjectKey,
        /// Why.
        reason: String,
    },
    /// A manifest changes a field that can't be changed.
    #[error("{field}: the field is immutable: delete the {} to change it", kind.as_str())]
    Immutable {
        /// The field.
        field: &'static str,
        /// The kind of the set.
        kind: SetKind,
    },
    /// A name is no member's.
    #[error("no member cluster is named {name:?}{}", match .closest {
        Some(closest) => format!("; did you mean {closest:?}?"),
        None => ": run `kubectl get mc` to list the members".to_owned(),
    })]
    UnknownMember {
        /// The name.
        name: String,
        /// The member that was probably meant.
        closest: Option<String>,
    },
    /// The user may not read what a plan needs.
    #[error("{error}\nA plan needs the permission to {need} on the host")]
    MayNotRead {
        /// The API server's answer.
        error: RequestError,
        /// What is missing.
        need: String,
    },
    /// The user's kubeconfig of the member can't be used.
    #[error("member: {0}")]
    MemberKubeconfig(#[from] KubeconfigError),
    /// The file with the member's certificate authority can't be read.
    #[error("member: failed to read {path}: {source}")]
    Authority {
        /// Its path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The controller would send its token unencrypted.
    #[error(
        "member: the controller would send its token to {0} unencrypted: set an https:// address with --member-server"
    )]
    NotEncrypted(String),
    /// The controller would send its token to any server at the address.
    #[error(
        "member: the kubeconfig sets insecure-skip-tls-verify, which the controller rejects in a Secret: put the certificate \
         authority of the member into the kubeconfig"
    )]
    NotVerified,
    /// The kubeconfig for the Secret, or the one in it, is invalid.
    #[error("member: invalid kubeconfig {place} the member's Secret: {reason}")]
    StoredKubeconfig {
        /// `for` or `in`.
        place: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The CRDs are not installed.
    #[error(
        "host: the CRDs of fedrs are not installed: run `fedrs crds | kubectl apply --server-side -f -`"
    )]
    CrdsMissing,
    /// The preflight checks of a join found problems. Nothing was changed.
    #[error("{}", problem::list(.0))]
    Preflight(Vec<Problem>),
    /// The controller does not use a new member in time. All objects are in place.
    #[error(
        "{name} is not ready after {timeout:?}: {reason}\n{hint}\n\
         All objects are in place: the member becomes ready when the problem is solved. Run the command again to wait."
    )]
    NotReady {
        /// The member.
        name: String,
        /// How long the operation waited.
        timeout: Duration,
        /// Why the member is not ready.
        reason: Box<NotReady>,
        /// What the user can do.
        hint: String,
    },
    /// Replicas are left after the timeout. The controller continues the drain.
    #[error("{name} is not drained after {timeout:?}: {pending}")]
    NotDrained {
        /// The member.
        name: String,
        /// How long the operation waited.
        timeout: Duration,
        /// What is left.
        pending: Box<DrainPending>,
    },
    /// Replicas are left after the timeout in namespaces that a member does not take any more. The controller moves them.
    #[error(
        "{name} still has replicas after {timeout:?} in namespaces that are not listed any more: {namespaces}\n\
         The controller keeps its permissions in them. Run the command again when they are empty."
    )]
    ReplicasLeft {
        /// The member.
        name: String,
        /// How long the operation waited.
        timeout: Duration,
        /// The namespaces.
        namespaces: String,
    },
    /// There is no such member, and its cluster has no objects of this host.
    #[error("member {name} not found, and {url} has no objects of this host")]
    NothingToDelete {
        /// The member.
        name: String,
        /// The address of the cluster.
        url: String,
    },
    /// The user's kubeconfig belongs to another cluster.
    #[error("the member kubeconfig belongs to another cluster than {0}")]
    OtherCluster(String),
    /// The user's kubeconfig belongs to another member.
    #[error("the member kubeconfig belongs to the member {actual}, not to {name}")]
    OtherMember {
        /// The member.
        name: String,
        /// The member of the kubeconfig.
        actual: String,
    },
    /// The controller would add the member again after an unjoin.
    #[error(
        "member {0} has a kubeconfig in the --members directory of the controller: run `fedrs drain {0}`, then remove that file"
    )]
    FileMember(String),
    /// The MemberCluster has finalizers.
    #[error(
        "host: membercluster/{name} still exists {timeout:?} after its deletion: its finalizers block the deletion"
    )]
    DeletionBlocked {
        /// The member.
        name: String,
        /// How long the operation waited.
        timeout: Duration,
    },
    /// A controller runs during an uninstall.
    #[error(
        "the controller {holder} is running and would restore what uninstall removes. Stop it first, for example:\n  \
         kubectl -n {namespace} scale deployment/{deployment} --replicas=0"
    )]
    ControllerRunning {
        /// The process that holds the Lease.
        holder: String,
        /// The namespace of the controller.
        namespace: String,
        /// Its Deployment.
        deployment: String,
    },
    /// A controller without leader election runs during an uninstall.
    #[error(
        "a controller is running: it restored the finalizers of {}. Stop it, and run the command again",
        .0
    )]
    FinalizersRestored(SetCounts),
}
