//! Reconstructs a member as a check sees it, from what the controller published: the status of its MemberCluster, and its
//! entry in the status of the set.

use std::time::Duration;

use cluster_informer::{Health, SyncState, WorkloadView};
use fedrs_api::{
    ClusterReason, ClusterState, ClusterStatus, FederatedReplicaSetStatus, MemberCluster,
    MemberClusterStatus, MemberConditionType, MemberInternalState, MemberReason, TemplateRecord,
    TimeLimit, conditions, names,
};
use jiff::Timestamp;

use super::{
    model::{Model, Pods, view},
    question::Question,
};
use crate::{
    check::{Member, NamespaceState, Outage},
    host_namespaces::HostNamespaces,
    members::namespace_state,
    messages,
};

/// A stand-in for the hash of the template that the members have: the real one depends on a name that users need not be
/// allowed to read.
pub(super) const PRESENT_TEMPLATE: u64 = 1;
/// A stand-in for the hash of a template that they don't have yet.
pub(super) const NEW_TEMPLATE: u64 = 2;
/// A stand-in for the hash of the template of members that reject the present one.
const EARLIER_TEMPLATE: u64 = 3;

/// The status, as that of a set whose template has the hash [`PRESENT_TEMPLATE`].
pub(super) fn previous_status(status: &FederatedReplicaSetStatus) -> FederatedReplicaSetStatus {
    let mut status = status.clone();
    for cluster in &mut status.clusters {
        let internal = &mut cluster.internal;
        let present = TemplateRecord::new(PRESENT_TEMPLATE, 0);
        let written = if let Some(rejection) = &mut internal.template_rejection {
            rejection.desired = PRESENT_TEMPLATE;
            TemplateRecord::new(EARLIER_TEMPLATE, 0)
        } else {
            present
        };
        internal.template = internal.template.take().map(|_| written);
    }
    status
}

/// The member of `object`, whose entry in the status is `previous`, and how it reacts.
pub(super) fn seen(
    question: &Question<'_>,
    object: &MemberCluster,
    previous: Option<&ClusterStatus>,
) -> (Member, Model) {
    let name = object.metadata.name.clone().unwrap_or_default();
    let status = object.status.clone().unwrap_or_default();
    let what_if = question.what_if;
    let mut reachability = Reachability::of(&status, question.now);
    let lost_since = if what_if.lost.contains(&name) {
        reachability.health = Health::Unreachable {
            since: question.now,
            message: String::new(),
        };
        is_ever_lost(question, object).then_some(question.now)
    } else {
        is_lost(question, &status.internal, previous)
            .then(|| lost_since(&status, previous, question.now))
    };
    let answers = reachability.answers() && lost_since.is_none();
    let model = model(question, &name, previous, answers);
    let member = Member {
        schedulable: !object.spec.unschedulable && !what_if.cordoned.contains(&name),
        draining: object.spec.drain || what_if.drained.contains(&name),
        namespace: namespace(question, object, previous),
        outage: lost_since.map_or(Outage::None, |since| Outage::Lost { since }),
        stabilizes_at: None,
        no_ready_nodes: reachability.no_ready_nodes,
        joined: Timestamp::MIN,
        awaited: false,
        removed: reachability.removed,
        invalid_kubeconfig: reachability.invalid_kubeconfig,
        health: reachability.health,
        sync: reachability.sync,
        unlisted: None,
        lacks_kind: previous
            .is_some_and(|previous| previous.reason == Some(ClusterReason::KindNotInstalled)),
        write_pending: false,
        view: previous
            .and_then(|previous| workload_view(&model, previous, question.now))
            .unwrap_or_default(),
        name,
    };
    (member, model)
}

/// How the member `name` reacts, if it reacts at all: as `previous` says that it did before.
fn model(
    question: &Question<'_>,
    name: &str,
    previous: Option<&ClusterStatus>,
    answers: bool,
) -> Model {
    let internal = previous
        .map(|previous| previous.internal.clone())
        .unwrap_or_default();
    let same_cluster_as = previous.and_then(|previous| previous.same_cluster_as.clone());
    Model {
        key: question.frs.workload_key(),
        answers,
        limit: previous.and_then(limit),
        rejection: internal.rejection.filter(|_| !question.new_template),
        template_rejection: internal
            .template_rejection
            .filter(|_| !question.new_template),
        write_error: internal
            .writes
            .write_rejected_since
            .and(internal.writes.write_error),
        uid: same_cluster_as.unwrap_or_else(|| name.to_owned()),
    }
}

/// The local ReplicaSet of the member, with its pods; `None` if it has none.
fn workload_view(model: &Model, previous: &ClusterStatus, now: Timestamp) -> Option<WorkloadView> {
    let generation = previous.internal.writes.written_generation.unwrap_or(1);
    let set = model.set(&model.uid, requested(previous)?, generation);
    Some(view(set, pods(previous, now)))
}

/// Whether the member is lost for the set, which may give it another time than others do.
fn is_lost(
    question: &Question<'_>,
    internal: &MemberInternalState,
    previous: Option<&ClusterStatus>,
) -> bool {
    let rejects_credentials = internal.outage_reason == MemberReason::Unauthorized.as_str();
    let limit = question.frs.rescheduling.lost_grace_period;
    let Some(limit) = limit.filter(|_| !rejects_credentials) else {
        return internal.lost;
    };
    let Some(limit) = limit.0 else { return false };
    // The controller records outages in steps, and decides by exact durations.
    let is_decided = previous.is_some_and(|previous| previous.state == Some(ClusterState::Lost));
    let lasted = u64::try_from(internal.outage_seconds).unwrap_or(0);
    is_decided || !internal.outage_reason.is_empty() && limit <= Duration::from_secs(lasted)
}

/// Whether the replicas of the set are rescheduled when the member is out of reach for long enough.
fn is_ever_lost(question: &Question<'_>, object: &MemberCluster) -> bool {
    let of_set = question.frs.rescheduling.lost_grace_period;
    let of_member = || TimeLimit::try_from(object.spec.lost_grace_period_seconds.as_ref()?).ok();
    let grace = of_set.or_else(of_member).map(|limit| limit.0);
    grace
        .unwrap_or(question.settings.lost_grace_period)
        .is_some()
}

/// Whether the member takes the namespace of the set.
fn namespace(
    question: &Question<'_>,
    object: &MemberCluster,
    previous: Option<&ClusterStatus>,
) -> NamespaceState {
    let reason = previous.and_then(|previous| previous.reason);
    if reason == Some(ClusterReason::SystemNamespace) {
        return NamespaceState::System;
    }
    let namespaces = HostNamespaces::default();
    if let Some(labels) = question.namespace_labels {
        namespaces.put(&question.frs.key.namespace, Some(labels.clone()));
    }
    let scope = object.spec.namespaces.as_ref();
    let of_controller = [Some(names::SYSTEM_NAMESPACE), None];
    match namespace_state(
        &question.frs.key.namespace,
        scope,
        of_controller,
        &namespaces,
    ) {
        // Users need not be allowed to read the labels of namespaces: the result of the last check holds.
        NamespaceState::Unknown(_) if reason == Some(ClusterReason::NamespaceNotTaken) => {
            NamespaceState::NotTaken
        }
        NamespaceState::Unknown(_)
            if previous.is_some_and(|previous| previous.state == Some(ClusterState::Eligible)) =>
        {
            NamespaceState::Taken
        }
        NamespaceState::Unknown(_) => {
            NamespaceState::Unknown(messages::NAMESPACE_LABELS_UNREAD.to_owned())
        }
        known => known,
    }
}

/// `spec.replicas` of the local ReplicaSet; `None` if there is none.
fn requested(cluster: &ClusterStatus) -> Option<u32> {
    let internal = &cluster.internal;
    let target = count(cluster.desired_replicas) + count(internal.capacity_probes);
    let existing = count(cluster.replicas);
    let exists = internal.template.is_some() || existing > 0 || target > 0;
    if !exists || internal.rejection.is_some() {
        return None;
    }
    let written = internal.requested_replicas.map(count);
    Some(written.unwrap_or(existing.max(target)))
}

/// What is known of the pods of the local ReplicaSet.
fn pods(cluster: &ClusterStatus, now: Timestamp) -> Pods {
    Pods {
        ready: count(cluster.ready_replicas),
        available: count(cluster.available_replicas),
        pending: count(cluster.unscheduled_replicas),
        since: now,
    }
}

/// The most pods that the cluster runs, if it has shown a limit.
fn limit(cluster: &ClusterStatus) -> Option<u32> {
    let (unscheduled, capacity) = (count(cluster.unscheduled_replicas), cluster.capacity);
    // Pods that were created a moment ago have no node yet, either.
    let shows_limit = unscheduled > 0 && cluster.reason != Some(ClusterReason::PodsPending);
    let scheduled = count(cluster.replicas).saturating_sub(unscheduled);
    match capacity {
        Some(capacity) => Some(count(capacity).max(scheduled)),
        None => shows_limit.then_some(scheduled),
    }
}

/// When the outage of a lost member began, as far as is known.
fn lost_since(
    status: &MemberClusterStatus,
    previous: Option<&ClusterStatus>,
    now: Timestamp,
) -> Timestamp {
    let of_set = previous.and_then(|previous| previous.internal.lost_since.as_ref());
    let known = of_set.or(status.unreachable_since.as_ref());
    known.map_or(now, |time| time.0)
}

/// What the conditions of a MemberCluster say about how the cluster can be reached.
struct Reachability {
    health: Health,
    sync: SyncState,
    no_ready_nodes: bool,
    removed: Option<Timestamp>,
    invalid_kubeconfig: Option<String>,
}

impl Reachability {
    fn of(status: &MemberClusterStatus, now: Timestamp) -> Self {
        let sync = sync(status);
        let mut reachability = Self {
            health: Health::Unknown,
            sync,
            no_ready_nodes: false,
            removed: None,
            invalid_kubeconfig: None,
        };
        let Some(ready) = conditions::find(&status.conditions, MemberConditionType::Ready) else {
            return reachability;
        };
        let message = ready.message.clone();
        let since = ready.last_transition_time.0;
        match MemberReason::parse(&ready.reason) {
            _ if ready.status == "True" => reachability.health = Health::Healthy,
            Some(MemberReason::NoReadyNodes) => {
                (reachability.health, reachability.no_ready_nodes) = (Health::Healthy, true);
            }
            Some(MemberReason::ProbeFailing) => {
                reachability.health = Health::Failing { since, message }
            }
            Some(MemberReason::Unreachable | MemberReason::ControllerDisconnected) => {
                reachability.health = Health::Unreachable { since, message };
            }
            Some(MemberReason::Unauthorized) => {
                reachability.health = Health::Unauthorized { message }
            }
            Some(MemberReason::Removed) => {
                reachability.removed =
                    Some(status.unreachable_since.as_ref().map_or(now, |time| time.0));
            }
            // A client of an earlier kubeconfig stays in use.
            Some(MemberReason::InvalidKubeconfig | MemberReason::DuplicateSource)
                if sync == SyncState::Synced =>
            {
                reachability.health = Health::Healthy;
            }
            Some(
                MemberReason::InvalidKubeconfig
                | MemberReason::DuplicateSource
                | MemberReason::SecretMissing,
            ) => reachability.invalid_kubeconfig = Some(message),
            _ => {}
        }
        reachability
    }

    fn answers(&self) -> bool {
        self.health == Health::Healthy && self.sync == SyncState::Synced && !self.no_ready_nodes
    }
}

fn sync(status: &MemberClusterStatus) -> SyncState {
    let Some(synced) = conditions::find(&status.conditions, MemberConditionType::Synced) else {
        return SyncState::NotSynced;
    };
    match MemberReason::parse(&synced.reason) {
        Some(MemberReason::Synced) => SyncState::Synced,
        Some(MemberReason::Stale) => SyncState::Stale {
            since: synced.last_transition_time.0,
        },
        _ => SyncState::NotSynced,
    }
}

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
