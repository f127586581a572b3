//! A model of one member: how it reacts to the writes of a check.

use cluster_informer::{PodCounts, WorkloadState, WorkloadView};
use fedrs_api::{Rejection, TemplateRejection, WorkloadKey};
use jiff::Timestamp;

use crate::check::{Member, Outcome, SetChange};

/// The hash of the template that all pods have.
pub(super) const TEMPLATE: u32 = 1;

/// Why pods have no node.
const BEYOND_LIMIT: &str = "more than the cluster has shown it can run";

/// What is known of how a member reacts.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) key: WorkloadKey,
    /// The uid of its local ReplicaSet: the name of the member under which it counts, so that members that are the same cluster
    /// have the same uid.
    pub(super) uid: String,
    /// Whether it reacts at all.
    pub(super) answers: bool,
    /// The most pods that get a node; `None` if it has shown no limit.
    pub(super) limit: Option<u32>,
    /// Rejects the local ReplicaSet for this reason, always.
    pub(super) rejection: Option<Box<Rejection>>,
    /// Rejects the template for this reason, always.
    pub(super) template_rejection: Option<Box<TemplateRejection>>,
    /// Rejects changes of the local ReplicaSet with this message, always.
    pub(super) write_error: Option<String>,
}

/// The result of an action.
pub(super) struct Done {
    pub(super) outcome: Outcome,
    /// Whether the local ReplicaSet has changed.
    pub(super) changed: bool,
    /// Whether replicas were added.
    pub(super) grows: bool,
}

/// Pods of a local ReplicaSet at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pods {
    pub(super) ready: u32,
    pub(super) available: u32,
    /// Pods without a node.
    pub(super) pending: u32,
    /// Since when they have none.
    pub(super) since: Timestamp,
}

impl Model {
    /// A local ReplicaSet with `replicas`, before the member has created any pod.
    pub(super) fn set(&self, member: &str, replicas: u32, generation: i64) -> WorkloadState {
        WorkloadState {
            key: self.key.clone(),
            uid: self.uid.clone(),
            resource_version: generation.to_string(),
            generation,
            observed_generation: generation,
            replicas,
            status_replicas: 0,
            ready_replicas: 0,
            available_replicas: 0,
            fully_labeled_replicas: 0,
            replica_failure: None,
            spec_hash: 0,
            lowest_replicas: replicas,
            open_scale_up: None,
            federation: "".into(),
            member_cluster: member.into(),
            deletion: None,
            behind_since: None,
            has_owners: false,
            has_controller: false,
            deployment: None,
            owned_by: None,
        }
    }

    /// Carries out `change` of the ReplicaSet. Its pods change with [`react`](Self::react).
    pub(super) fn carry_out(&self, member: &mut Member, change: &SetChange) -> Done {
        let rejected = |outcome| Done {
            outcome,
            changed: false,
            grows: false,
        };
        let creates = matches!(change, SetChange::Create { .. });
        if let Some(Rejection { kind, message, .. }) = self.rejection.as_deref()
            && creates
        {
            let (kind, message) = (*kind, message.clone());
            return rejected(Outcome::Rejected { kind, message });
        }
        if let Some(rejection) = &self.template_rejection
            && matches!(
                change,
                SetChange::Create { .. } | SetChange::Overwrite { .. }
            )
        {
            let message = rejection.message.clone();
            return rejected(Outcome::TemplateRejected { message, creates });
        }
        if let Some(error) = &self.write_error {
            return rejected(Outcome::Failed(error.clone()));
        }
        let before = member.view.workload.take();
        let generation = before
            .as_ref()
            .map_or(1, |set| set.generation.saturating_add(1));
        let present = before.as_ref().map_or(0, |set| set.replicas);
        let replicas = match *change {
            SetChange::Create { replicas, .. } | SetChange::Overwrite { replicas, .. } => replicas,
            SetChange::Scale { to, .. } => to,
            SetChange::LabelPods { .. }
            | SetChange::DrainPods { .. }
            | SetChange::Rollout { .. } => present,
        };
        let set = match before {
            Some(before) => WorkloadState {
                generation,
                observed_generation: generation,
                replicas,
                lowest_replicas: replicas.min(before.lowest_replicas),
                member_cluster: (*member.name).into(),
                ..before
            },
            None => self.set(&member.name, replicas, generation),
        };
        member.view.workload = Some(set.clone());
        member.view.pods.draining = match *change {
            SetChange::DrainPods { pods, .. } => pods,
            _ => 0,
        };
        Done {
            outcome: match change {
                SetChange::Scale { .. } => Outcome::Scaled { set, by: None },
                _ => Outcome::Written(set),
            },
            changed: true,
            grows: replicas > present,
        }
    }

    /// Creates and removes pods as requested. Those that get a node are ready at `now`.
    pub(super) fn react(&self, member: &mut Member, now: Timestamp) {
        if !self.answers {
            return;
        }
        let Some(set) = member.view.workload.take() else {
            return;
        };
        let running = set.replicas.min(self.limit.unwrap_or(u32::MAX));
        let draining = member.view.pods.draining;
        let earlier = member.view.pods.unscheduled_since.first();
        let pods = Pods {
            ready: running,
            available: running,
            pending: set.replicas - running,
            since: earlier.map_or(now, |(since, _)| *since),
        };
        member.view = view(set, pods);
        member.view.pods.draining = draining.min(running);
    }
}

/// The view of `set` with `pods`.
pub(super) fn view(set: WorkloadState, pods: Pods) -> WorkloadView {
    let active = set.replicas;
    let Pods {
        ready,
        available,
        pending,
        since,
    } = pods;
    WorkloadView {
        nodes_report: false,
        current_at: None,
        pods: PodCounts {
            active,
            ready,
            unscheduled: pending,
            unscheduled_message: (pending > 0).then(|| BEYOND_LIMIT.to_owned()),
            by_template: vec![(TEMPLATE, active)],
            unscheduled_since: (pending > 0)
                .then_some((since, pending))
                .into_iter()
                .collect(),
            ..PodCounts::default()
        },
        workload: Some(WorkloadState {
            status_replicas: active,
            ready_replicas: ready,
            available_replicas: available,
            fully_labeled_replicas: active,
            lowest_replicas: active,
            ..set
        }),
    }
}
