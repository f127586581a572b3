//! What a member cluster shows: the input.

use crate::strategy::Strategy;

/// One member cluster, as its view shows it.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The cluster's name.
    pub name: &'a str,
    /// Whether its view is current.
    pub state: MemberState,
    /// It gets no template: it is skipped by the steps, and catches up when it is no longer cordoned.
    pub cordoned: bool,
    /// It has pods without a node, and they get one or go elsewhere first: until then it gets no first loan.
    pub waits_for_nodes: bool,
    /// The Deployment there.
    pub deployment: Option<Deployment<'a>>,
    /// Replicas that were requested of a member whose Deployment is not known, as after a restart while it can't be reached.
    pub requested: u64,
    /// Without a Deployment: it should get one. The caller creates it with [`Strategy::WITHOUT_LOAN`], and with the template of
    /// the revision in [`Decision::created`](crate::Decision::created).
    pub creates: bool,
}

/// What is known of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// Its view is current.
    Writable,
    /// It is unreachable, or its view is stale. It keeps its loan and receives nothing new.
    Unknown,
    /// It was declared lost, and its replicas are replaced elsewhere: they and its loan are not in the account.
    Lost,
}

/// A Deployment in a member, or a LocalReplicaSet in its place.
#[derive(Clone, Copy, Debug)]
pub struct Deployment<'a> {
    /// `spec.replicas`, r.
    pub replicas: u64,
    /// The lowest `spec.replicas` that its controller may still act on, or that was requested and may still be carried out: at
    /// most r.
    pub lowest_replicas: u64,
    /// The highest that was requested and may still be carried out: at least r.
    pub highest_replicas: u64,
    /// The revision of `spec.template`. Equal revisions have equal templates.
    pub revision: &'a str,
    /// `spec.strategy`; of a LocalReplicaSet `spec.deploymentStrategy.maxUnavailable`, without a surge.
    pub strategy: Strategy,
    /// `metadata.generation`: the precondition of every write, together with the uid.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    /// Of the replicas: have no node for want of capacity, and are removed once the rollout has ended, or stay pending as no
    /// cluster can run them.
    pub pending: u64,
    /// `status.replicas`: pods of any template.
    pub pods: u64,
    /// `status.updatedReplicas`: pods of the current template.
    pub updated: u64,
    /// `status.availableReplicas`: available pods of any template.
    pub available: u64,
    /// Available pods of the current template, at most `updated`.
    pub updated_available: u64,
    /// Pods that may run although they do not count as available: nothing shows that they are gone.
    pub uncertain: u64,
    /// Whether a pod has started within the last [`Speed::min_delay`](crate::Speed::min_delay). Read only if there is a speed.
    pub started_lately: bool,
    /// `spec.paused` of a Deployment: it starts no pods of its template, and scales all of its ReplicaSets in proportion.
    pub paused: bool,
    /// What only a LocalReplicaSet has; `None` of a Deployment.
    pub local: Option<LocalSet>,
}

/// A LocalReplicaSet in a member. Without a loan it is paused, and has a `maxUnavailable` of 0: then no available pod is updated or
/// evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalSet {
    /// `spec.paused`: no update begins. Evictions do.
    pub paused: bool,
    /// Evictions of available pods that wait for a part of the budget.
    pub waiting_evictions: u64,
    /// Pods that evictions through the API server may make unavailable: its PodDisruptionBudget lends them, perhaps from an earlier
    /// strategy.
    pub evictable: u64,
}

impl Deployment<'_> {
    /// Whether the status is about the current spec.
    pub(crate) fn is_observed(&self) -> bool {
        self.observed_generation >= self.generation
    }

    /// Whether it has pods of another template, or may not know the current one.
    pub(crate) fn has_old_pods(&self) -> bool {
        !self.is_observed() || self.pods > self.updated
    }

    /// Whether its controller can still make use of the strategy. A Deployment with pods of one template only ever scales them to
    /// `replicas`, whatever the strategy; a LocalReplicaSet evicts pods as well.
    pub(crate) fn is_rolling(&self) -> bool {
        self.has_old_pods() || self.local.is_some() && self.strategy.pods() > 0
    }

    /// What it has without a loan.
    pub(crate) fn without_loan(&self) -> Strategy {
        match self.local {
            Some(_) => Strategy::default(),
            None => Strategy::WITHOUT_LOAN,
        }
    }

    /// What evictions through the API server may make unavailable, whatever the strategy is now.
    pub(crate) fn evictable(&self) -> Strategy {
        Strategy::new(self.local.map_or(0, |local| local.evictable), 0)
    }

    /// Evictions that wait for a part of the budget.
    pub(crate) fn waiting_evictions(&self) -> u64 {
        self.local.map_or(0, |local| local.waiting_evictions)
    }

    /// Whether all of `replicas` that can run have the current template and are available, and no other pods are left.
    pub(crate) fn is_complete(&self) -> bool {
        !self.has_old_pods() && self.updated_available + self.pending >= self.replicas
    }

    /// How many pods that run can be replaced at once with `strategy`: pending ones use up theirs, and where there are any, pods
    /// beyond the replicas get no node, either.
    pub(crate) fn replaceable(&self, strategy: Strategy) -> u64 {
        if self.pending > 0 {
            strategy.unavailable.saturating_sub(self.pending)
        } else {
            strategy.pods()
        }
    }

    /// Pods beyond `replicas` now.
    pub(crate) fn surplus(&self) -> u64 {
        self.pods.saturating_sub(self.replicas)
    }
}

impl Member<'_> {
    /// Its Deployment, if this may be written.
    pub(crate) fn writable(&self) -> Option<&Deployment<'_>> {
        let is_writable = self.state == MemberState::Writable;
        self.deployment.as_ref().filter(|_| is_writable)
    }

    /// Whether the steps do not wait for it.
    pub(crate) fn is_skipped(&self) -> bool {
        self.cordoned || self.state == MemberState::Lost
    }

    /// Whether it has the template of `target`, and all of its pods have it and are available.
    pub(crate) fn has_completed(&self, target: &str) -> bool {
        match self.deployment {
            _ if self.state != MemberState::Writable => false,
            Some(found) => found.revision == target && found.is_complete(),
            None => !self.creates,
        }
    }
}
