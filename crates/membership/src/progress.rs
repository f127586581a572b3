//! What operations report while they run, with the texts for people.

use derive_more::Display;
use fedrs_api::{ClusterType, pluralize};
use jiff::Timestamp;

use crate::{
    cluster_client::RequestError,
    drain::pending::DrainPending,
    join::readiness::{NotReady, ReadyMember},
    local_kind::LocalKind,
    object::{ObjectRef, WriteMode},
    uninstall::SetCounts,
};

/// The number of objects that are listed when a namespace is not empty.
const LISTED_OBJECTS: usize = 5;

/// Receives the progress of an operation.
pub trait Reporter {
    /// The operation has made progress.
    fn progress(&mut self, progress: Progress);

    /// Something is wrong that does not stop the operation.
    fn warn(&mut self, warning: Warning);
}

/// Progress of an operation.
#[derive(Debug, Display)]
pub enum Progress {
    /// A cluster has answered.
    #[display("{cluster:<8}{url} runs Kubernetes {version}")]
    Connected {
        /// Which cluster.
        cluster: ClusterType,
        /// Its address.
        url: String,
        /// Its version.
        version: String,
    },
    /// The host becomes a member of itself.
    #[display("The host becomes a member of itself.")]
    HostIsMember,
    /// Join has handled an object.
    #[display("{cluster:<8}{object} {result}{mode}{}", token_suffix(token.as_ref()))]
    Applied {
        /// The object's cluster.
        cluster: ClusterType,
        /// The object.
        object: ObjectRef,
        /// The result.
        result: ApplyResult,
        /// Whether it was persisted.
        mode: WriteMode,
        /// The new token in the object, if it is a Secret that got one.
        token: Option<NewToken>,
    },
    /// The dry run is complete.
    #[display("Dry run: no changes were made.")]
    DryRunComplete,
    /// The member is not ready yet. Reported when the readiness changes.
    #[display("waiting: {_0}")]
    WaitingForMember(NotReady),
    /// The controller uses the member.
    MemberReady(ReadyMember),
    /// It is not known yet whether the holder of a Lease still runs.
    #[display("waiting: to see whether the controller {_0} still renews its Lease")]
    WatchingLease(String),
    /// A member was cordoned.
    #[display("membercluster/{_0} cordoned")]
    Cordoned(String),
    /// A member was already cordoned.
    #[display("membercluster/{_0} already cordoned")]
    AlreadyCordoned(String),
    /// A cordoned member was uncordoned.
    #[display("membercluster/{_0} uncordoned")]
    Uncordoned(String),
    /// A drained member was uncordoned.
    #[display("membercluster/{_0} uncordoned, drain canceled")]
    DrainCanceled(String),
    /// A member was neither cordoned nor drained.
    #[display("membercluster/{_0} already uncordoned")]
    AlreadyUncordoned(String),
    /// The drain of a member has started.
    #[display("membercluster/{_0} draining")]
    Draining(String),
    /// The drain of a member had started before.
    #[display("membercluster/{_0} already draining")]
    AlreadyDraining(String),
    /// Replicas are left in the member. Reported when that changes.
    #[display("waiting: {_0}")]
    WaitingForDrain(DrainPending),
    /// Replicas are left in namespaces that a member does not take any more. Reported when that changes.
    #[display("waiting: replicas are left in namespaces that are not listed any more: {_0}")]
    WaitingForNamespaces(String),
    /// A member is drained.
    #[display("membercluster/{_0} drained")]
    Drained(String),
    /// The objects of a member follow.
    #[display("{_0}:")]
    Member(String),
    /// An object was deleted.
    #[display("{cluster:<8}{object} deleted")]
    Deleted {
        /// The object's cluster.
        cluster: ClusterType,
        /// The object.
        object: ObjectRef,
    },
    /// An object was not deleted.
    #[display("{cluster:<8}{object} kept: {reason}")]
    Kept {
        /// The object's cluster.
        cluster: ClusterType,
        /// The object.
        object: ObjectRef,
        /// Why.
        reason: KeepReason,
    },
    /// A local workload without replicas was deleted.
    #[display(
        "{:<8}{kind}/{namespace}/{name} deleted: it had no replicas",
        ClusterType::Member
    )]
    WorkloadDeleted {
        /// Its kind.
        kind: LocalKind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A local workload with replicas was not deleted.
    #[display("{:<8}{kind}/{namespace}/{name} kept: it has {}", ClusterType::Member, pluralize(*replicas, "replica"))]
    WorkloadKept {
        /// Its kind.
        kind: LocalKind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its replicas.
        replicas: i64,
    },
    /// Nothing was changed in a member that was removed by force.
    #[display(
        "No changes were made in the cluster {_0}. Its ReplicaSets and Deployments keep running if it still exists."
    )]
    MemberUnchanged(String),
    /// A ServiceAccount with a token and its ClusterRole are left in a member, and the user has to delete them.
    #[display(
        "The member may still have clusterrole/{account} and a ServiceAccount with a valid token. To delete them, run \
         with a kubeconfig of the member:\n  \
         kubectl delete clusterrole {account}\n  \
         kubectl delete namespace {namespace}      # only if it contains nothing else"
    )]
    ManualCleanup {
        /// The name of the ServiceAccount and of its ClusterRole.
        account: String,
        /// The namespace of the ServiceAccount.
        namespace: String,
    },
    /// A cluster is no longer a member.
    #[display("{_0} is no longer a member")]
    Unjoined(String),
    /// Sets lost the finalizer of fedrs.
    #[display("{:<8}removed the finalizers of {_0}", ClusterType::Host)]
    FinalizersRemoved(SetCounts),
    /// So many Maintenances lost the finalizer of fedrs.
    #[display("{:<8}removed the finalizers of {}", ClusterType::Host, pluralize(*_0, "Maintenance"))]
    MaintenancesReleased(usize),
    /// So many AvailabilitySets lost the finalizer of fedrs.
    #[display("{:<8}removed the finalizers of {}", ClusterType::Host, pluralize(*_0, "AvailabilitySet"))]
    AvailabilitySetsReleased(usize),
}

/// The result of applying an object.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
#[display(rename_all = "lowercase")]
pub enum ApplyResult {
    /// It had all desired fields.
    Unchanged,
    /// It did not exist.
    Created,
    /// It was patched.
    Configured,
}

/// A token that join has requested.
#[derive(Clone, Debug, Display, PartialEq, Eq)]
#[display("new token for serviceaccount/{account}, expires {expires:.0}{}", problem_suffix(*replaces))]
pub struct NewToken {
    /// The ServiceAccount.
    pub account: String,
    /// When the token expires.
    pub expires: Timestamp,
    /// Why the token in the Secret was not kept; `None` if there was none.
    pub replaces: Option<TokenProblem>,
}

/// Why a stored token can't be kept.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum TokenProblem {
    /// The kubeconfig in the Secret is invalid.
    #[display("is unreadable")]
    Unreadable,
    /// Its ServiceAccount does not exist.
    #[display("belongs to a deleted ServiceAccount")]
    AccountDeleted,
    /// The member rejects it.
    #[display("has expired or was revoked")]
    Rejected,
    /// It belongs to another account.
    #[display("belongs to another account")]
    OtherAccount,
}

fn token_suffix(token: Option<&NewToken>) -> String {
    token.map_or_else(String::new, |token| format!(": {token}"))
}

fn problem_suffix(problem: Option<TokenProblem>) -> String {
    problem.map_or_else(String::new, |problem| {
        format!(" (the previous token {problem})")
    })
}

/// Why an object was not deleted.
#[derive(Clone, Debug, Display, PartialEq, Eq)]
pub enum KeepReason {
    /// Join did not create it.
    #[display("not created by fedrs join")]
    NotCreatedByJoin,
    /// The namespace contains objects: `kind/name`.
    #[display("it contains {}", first_objects(_0))]
    NotEmpty(Vec<String>),
    /// It has objects, which would be deleted with it: `kind/namespace/name`.
    #[display("deleting it would delete {}", first_objects(_0))]
    HasObjects(Vec<String>),
    /// The contents of the namespace can't be listed: the error.
    #[display("cannot list its contents ({_0})")]
    UnknownContents(String),
    /// Deleting it requires the user's kubeconfig of the member.
    #[display("set --member-kubeconfig to delete it if it is empty")]
    RequiresMemberKubeconfig,
}

fn first_objects(objects: &[String]) -> String {
    match objects.split_at_checked(LISTED_OBJECTS) {
        Some((first, [_, ..])) => format!("{}, and others", first.join(", ")),
        _ => objects.join(", "),
    }
}

/// Something that does not stop an operation.
#[derive(Debug, Display)]
pub enum Warning {
    /// A request failed.
    Request(RequestError),
    /// The controller would not verify the member's certificate.
    #[display(
        "the member's kubeconfig sets insecure-skip-tls-verify: the controller rejects it unless its configuration sets \
         secretKubeconfigs.allowInsecure, and then sends its token to an unverified server"
    )]
    InsecureSkipTlsVerify,
    /// The member's address is a loopback address.
    #[display(
        "{_0} is reachable from this machine only: if the controller runs elsewhere, set the member's address with \
         --member-server"
    )]
    LoopbackServer(String),
    /// The reported status is that of a controller that has stopped.
    #[display("no controller is running: the status of the member may be outdated")]
    ControllerStopped,
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
