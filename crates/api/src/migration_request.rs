//! The MigrationRequest: a pod that has to leave its node, who asks for it, and how far it is.

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]
#![expect(
    clippy::duplicated_attributes,
    reason = "each column has attributes of its own"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    closed_set::closed_set, compact::is_default, notify::NotificationStatus, rules::immutable,
};

closed_set! {
    /// Who asks a pod to leave its node.
    #[derive(Default)]
    pub enum MigrationCause {
        /// Its node: it is lost, not ready for long, out of service, or has no network.
        Node,
        /// Planned work on the node.
        Maintenance,
        /// A better place for it (M14): the least urgent cause.
        Compaction,
        /// A person.
        #[default]
        Person,
    }
}

closed_set! {
    /// How far a migration is. `Done`, `Forced` and `Cancelled` are its ends.
    pub enum MigrationPhase {
        /// It is known, and nothing has been decided about it.
        Requested,
        /// The budget, a rollout, or the time since the last migration holds it up.
        WaitingForBudget,
        /// A person has to shut the pod down, or to confirm that it may go on: `awaits` says what.
        WaitingForConfirmation,
        /// Clients leave the pod, or its containers stop.
        ShuttingDown,
        /// Its containers are not known to have stopped in time: a person has to say that they have (M11).
        HandsUp,
        /// The pod is being removed from its node.
        Evicting,
        /// The pod is gone, and the one in its place has no node.
        Placing,
        /// The pod in its place has a node, and is not available.
        Starting,
        /// The pod in its place is available.
        Done,
        /// As `Done`, of a pod that was moved because its deadline had passed (M15).
        Forced,
        /// Nobody asks for it any more, or the pod was removed for another reason.
        Cancelled,
    }
}

closed_set! {
    /// What a person has to do, so that a migration goes on.
    pub enum AwaitedAction {
        /// Shut the pod down: delete it (M7).
        ShutDown,
        /// Confirm that the pod has been shut down, which its kubelet has reported (M7).
        ConfirmStopped,
        /// See after the machine, and confirm if it is destroyed: nothing proves that the pod has stopped (M11).
        ConfirmDestroyed,
        /// Confirm that clients may reach the new pod (M4).
        ConfirmActivation,
        /// Confirm that the old pod may be shut down (M4).
        ConfirmShutdown,
        /// Start the new pod: it has the scheduling gate `fedrs.dev/start` (M7, M12).
        Start,
    }
}

impl MigrationPhase {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Forced | Self::Cancelled)
    }
}

/// A pod that has to leave its node.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "MigrationRequest",
    plural = "migrationrequests",
    shortname = "mreq",
    namespaced,
    status = "MigrationRequestStatus",
    doc = "A pod of a LocalReplicaSet or a ReplicaSet that has to leave its node: who asks for it, by when, and how far it is.",
    printcolumn(
        name = "Pod",
        type_ = "string",
        json_path = ".spec.podName",
        description = "The pod that has to leave its node."
    ),
    printcolumn(
        name = "Node",
        type_ = "string",
        json_path = ".status.node",
        description = "The node that it leaves."
    ),
    printcolumn(
        name = "Cause",
        type_ = "string",
        json_path = ".spec.cause",
        description = "Who asks for it."
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far it is."
    ),
    printcolumn(
        name = "Until",
        type_ = "string",
        json_path = ".status.until",
        description = "When what it waits for ends, if that is known."
    ),
    printcolumn(
        name = "Deadline",
        type_ = "string",
        json_path = ".status.deadline",
        description = "When it is moved whatever holds it up."
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "To",
        type_ = "string",
        json_path = ".status.newNode",
        description = "The node of the pod in its place.",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        description = "What it waits for.",
        priority = 1
    ),
    derive = "PartialEq"
)]
#[x_kube(
    validation = Rule::new("!has(oldSelf.confirmation) || (has(self.confirmation) && self.confirmation == oldSelf.confirmation)")
        .message("what was confirmed stays confirmed")
        .field_path(".confirmation"),
    validation = Rule::new("!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)")
        .message("a request that was cancelled stays cancelled: make another one")
        .field_path(".cancel"),
    validation = Rule::new("!has(oldSelf.activationConfirmedBy) || (has(self.activationConfirmedBy) && self.activationConfirmedBy == oldSelf.activationConfirmedBy)")
        .message("what was confirmed stays confirmed")
        .field_path(".activationConfirmedBy"),
    validation = Rule::new("!has(oldSelf.shutdownConfirmedBy) || (has(self.shutdownConfirmedBy) && self.shutdownConfirmedBy == oldSelf.shutdownConfirmedBy)")
        .message("what was confirmed stays confirmed")
        .field_path(".shutdownConfirmedBy")
)]
#[serde(rename_all = "camelCase")]
pub struct MigrationRequestSpec {
    /// The name of the pod, in the namespace of the request.
    #[schemars(length(min = 1, max = 253), extend("x-kubernetes-validations" = immutable("podName")))]
    pub pod_name: String,
    /// The uid of the pod, so that a later pod of its name is not moved. Without it, the pod that has the name when the request is first
    /// seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = immutable("podUid")))]
    pub pod_uid: Option<String>,
    /// Who asks for it. Defaults to `Person`.
    #[serde(default)]
    pub cause: MigrationCause,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// When the pod is moved whatever holds it up (M15). By default, after the time in the controller's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Cancels it. A migration that has begun is completed, and one that the controller asks for continues while its cause is there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cancel: bool,
    /// That a person has seen that the pod is down, which can't be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// The user name of who confirms that clients may reach the new pod (M4), as the API server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub activation_confirmed_by: Option<String>,
    /// The user name of who confirms that the old pod may be shut down (M4), as the API server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub shutdown_confirmed_by: Option<String>,
}

/// What a person confirms of a pod that is being removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    /// The user name of that person, as the API server knows it.
    #[schemars(length(min = 1, max = 253))]
    pub confirmed_by: String,
    /// Whether the machine of the pod does not run any more, and never will with what it ran: nothing can prove it but a look at it.
    /// Without that, the confirmation counts once the kubelet of the pod has reported that its containers have stopped.
    #[serde(default)]
    pub machine_is_destroyed: bool,
}

/// How far a migration is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MigrationRequestStatus {
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MigrationPhase>,
    /// What it waits for, or why it ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What a person has to do, so that it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<AwaitedAction>,
    /// What holds it up before it has begun, or why it was refused: a CamelCase word. Another version may write others.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When what it waits for ends, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// When it is moved whatever holds it up (M15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The LocalReplicaSet of the pod; with `native`, its ReplicaSet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub replica_set: String,
    /// What is known of the migration of a pod of a ReplicaSet; absent for pods of LocalReplicaSets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeMigration>,
    /// The uid of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_uid: String,
    /// The node that it leaves.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The pod in its place.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new_pod: String,
    /// The node of the pod in its place.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new_node: String,
    /// Whether it began because its deadline had passed (M15).
    #[serde(skip_serializing_if = "is_default")]
    pub forced: bool,
    /// When each phase was reached, in the order of their times.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<MigrationStep>,
    /// Which notifications were acknowledged (M8); absent before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notified: Option<NotificationStatus>,
}

/// What is known of the migration of a pod of a ReplicaSet: it is evicted, and its controller makes another one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NativeMigration {
    /// The Deployment of the ReplicaSet, if it has one: its pods move one after the other.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deployment: String,
    /// The MigrationPolicy that selects the ReplicaSet, if one does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// When the eviction began, if the pod was available then: `minSecondsBetween` counts from it (M14).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disrupted_at: Option<Time>,
    /// The resourceVersion of the ReplicaSet at that time. Its controller has seen that the pod is gone once it is another one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub replica_set_version: String,
}

/// A phase that was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationStep {
    /// The phase.
    pub phase: MigrationPhase,
    /// When.
    pub at: Time,
}

/// The steps that are kept: a migration may wait again and again before it begins.
const MAX_STEPS: usize = 32;

impl MigrationRequestStatus {
    /// Goes on to `phase` at `now`.
    pub fn reach(&mut self, phase: MigrationPhase, now: jiff::Timestamp) {
        if self.phase == Some(phase) {
            return;
        }
        self.phase = Some(phase);
        let at = Time(now);
        self.history.push(MigrationStep { phase, at });
        if self.history.len() > MAX_STEPS {
            // The first ones say when it was requested.
            self.history.remove(MAX_STEPS / 2);
        }
    }

    /// Whether it has begun, or ended.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        use MigrationPhase::{Requested, WaitingForBudget};
        !matches!(self.phase, None | Some(Requested | WaitingForBudget))
    }

    /// Since when a person has to do something, or it does not go on; `None` if nobody has to.
    #[must_use]
    pub fn awaits_since(&self) -> Option<jiff::Timestamp> {
        let last = self.history.last()?;
        let is_asked = self.awaits.is_some() || last.phase == MigrationPhase::HandsUp;
        is_asked.then_some(last.at.0)
    }

    /// When it ended; `None` if it has not.
    #[must_use]
    pub fn ended(&self) -> Option<jiff::Timestamp> {
        let last = self.history.last()?;
        last.phase.is_end().then_some(last.at.0)
    }
}
