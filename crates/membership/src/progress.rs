//! What operations report while they run. The texts are in `messages`.

use jiff::Timestamp;

use crate::{
    cluster_client::{RequestError, Side},
    drain::pending::DrainPending,
    join::readiness::{Readiness, ReadyMember},
    object::{ObjectRef, WriteMode},
};

/// Receives the progress of an operation.
pub trait Reporter {
    /// The operation has made progress.
    fn progress(&mut self, progress: Progress);

    /// Something is wrong that does not stop the operation.
    fn warn(&mut self, warning: Warning);
}

/// Progress of an operation.
#[derive(Debug)]
pub enum Progress {
    /// A cluster has answered.
    Connected {
        /// Which cluster.
        side: Side,
        /// Its address.
        url: String,
        /// Its version.
        version: String,
    },
    /// The host becomes a member of itself.
    HostIsMember,
    /// Join has handled an object.
    Applied {
        /// The object's cluster.
        side: Side,
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
    DryRunComplete,
    /// The member is not ready yet. Reported when the readiness changes.
    WaitingForMember(Readiness),
    /// The controller uses the member.
    MemberReady(ReadyMember),
    /// A member was cordoned.
    Cordoned(String),
    /// A member was already cordoned.
    AlreadyCordoned(String),
    /// A member was uncordoned.
    Uncordoned {
        /// The member.
        name: String,
        /// Whether that canceled a drain.
        canceled_drain: bool,
    },
    /// A member was not cordoned.
    NotCordoned(String),
    /// The drain of a member has started.
    Draining(String),
    /// The drain of a member had started before.
    AlreadyDraining(String),
    /// Replicas are left in the member. Reported when that changes.
    WaitingForDrain(DrainPending),
    /// A member is drained.
    Drained(String),
    /// The objects of a member follow.
    Member(String),
    /// An object was deleted.
    Deleted {
        /// The object's cluster.
        side: Side,
        /// The object.
        object: ObjectRef,
    },
    /// An object was not deleted.
    Kept {
        /// The object's cluster.
        side: Side,
        /// The object.
        object: ObjectRef,
        /// Why.
        reason: KeepReason,
    },
    /// A local ReplicaSet without replicas was deleted.
    ReplicaSetDeleted {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A local ReplicaSet with replicas was not deleted.
    ReplicaSetKept {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its replicas.
        replicas: u64,
    },
    /// Nothing was changed in a member that was removed by force.
    MemberUnchanged(String),
    /// Objects are left in a member, and the user has to delete them.
    ManualCleanup(Leftovers),
    /// A cluster is no longer a member.
    Unjoined(String),
    /// FederatedReplicaSets lost the finalizer of fedrs.
    FinalizersRemoved(usize),
}

/// The result of applying an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyResult {
    /// It had all desired fields.
    Unchanged,
    /// It did not exist.
    Created,
    /// It was patched.
    Configured,
}

/// A token that join has requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// The ServiceAccount.
    pub account: String,
    /// When the token expires.
    pub expires: Timestamp,
    /// Why the token in the Secret was not kept; `None` if there was none.
    pub replaces: Option<TokenProblem>,
}

/// Why a stored token can't be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenProblem {
    /// The kubeconfig in the Secret is invalid.
    Unreadable,
    /// Its ServiceAccount does not exist.
    AccountDeleted,
    /// The member rejects it.
    Rejected,
    /// It belongs to another account.
    OtherAccount,
}

/// Why an object was not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// Join did not create it.
    NotCreatedByJoin,
    /// The namespace contains objects: `kind/name`.
    NotEmpty(Vec<String>),
    /// The contents of the namespace can't be listed: the error.
    UnknownContents(String),
    /// Deleting it requires the user's kubeconfig of the member.
    RequiresMemberKubeconfig,
}

/// The objects that are left in a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftovers {
    /// The ServiceAccount and its ClusterRole.
    pub account: String,
    /// The namespace of the ServiceAccount.
    pub namespace: String,
}

/// Something that does not stop an operation.
#[derive(Debug)]
pub enum Warning {
    /// A request failed.
    Request(RequestError),
    /// The controller would not verify the member's certificate.
    InsecureSkipTlsVerify,
    /// The member's address is a loopback address.
    LoopbackServer(String),
    /// The reported status is that of a controller that has stopped.
    ControllerStopped,
}
