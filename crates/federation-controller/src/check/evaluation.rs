//! What one member shows for a set: the first stage of a check.

use cluster_informer::{Deletion, DeploymentState, WorkloadState};
use fedrs_api::{ClusterStatus, Rejection, SettingsHash, TemplateRecord, TemplateRejection};
use jiff::Timestamp;

use super::{
    capacity::CapacityEstimate,
    count, duplicates,
    eligibility::{self, Eligibility},
    previous_status::PreviousStatus,
    scheduling::Scheduling,
    snapshot::{Member, Snapshot},
    target::Target,
    time::{after, after_limit},
    write_backoff::WriteBackoff,
};
use crate::{config::Config, manifest::DeploymentSettings};

/// One member with what follows from its observation and from those of the other members.
#[derive(Clone, Debug)]
pub(super) struct MemberEvaluation<'a> {
    pub(super) member: &'a Member,
    /// The previous status; `None` for a duplicate, which begins anew once it has a cluster of its own.
    pub(super) previous: Option<&'a ClusterStatus>,
    pub(super) eligibility: Eligibility<'a>,
    /// Whether a status has placed replicas of the set in any member.
    is_placed: bool,
    /// Whether statuses of earlier leaders may be missing: see [`keeps_running_until`](super::snapshot::Snapshot::keeps_running_until).
    lacks_statuses: bool,
    pub(super) scheduling: Scheduling<'a>,
    /// The most replicas that earlier writes may have requested; `None` before the first write.
    pub(super) previously_requested: Option<u64>,
    /// The most replicas that the member is believed to have: those, or N for a new set, because an existing ReplicaSet may be
    /// adopted with its replicas.
    pub(super) believed: u64,
    /// The capacity that earlier checks learned.
    pub(super) capacity: CapacityEstimate,
    /// The writes before this check.
    pub(super) writes: WriteBackoff,
    /// What the controller last wrote into the local workload, if that is known.
    pub(super) record: Option<TemplateRecord>,
    /// The member's rejection of the present template.
    pub(super) template_rejection: Option<&'a TemplateRejection>,
}

/// The part of the desired state on which the evaluation of the members depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct DesiredSpec {
    /// The hash of the desired spec of the local ReplicaSets.
    pub(super) hash: u64,
    /// N.
    pub(super) replicas: u32,
}

/// Evaluates `members` at `now`, in their order; an invalid set has no `desired` spec. Statuses of earlier leaders may be missing if
/// the set `lacks_statuses`.
pub(super) fn evaluate<'a>(
    members: &'a [Member],
    previous: &'a [ClusterStatus],
    lacks_statuses: bool,
    desired: Option<DesiredSpec>,
    now: Timestamp,
    settings: &Config,
) -> Vec<MemberEvaluation<'a>> {
    let is_new_set = previous.is_empty();
    let is_placed = previous
        .iter()
        .any(|cluster| cluster.internal.requested_replicas.is_some());
    let mut previous = PreviousStatus::of(previous);
    let seen: Vec<_> = members
        .iter()
        .map(|member| (member, previous.get(&member.name)))
        .collect();
    let alone = seen
        .iter()
        .map(|&(member, previous)| {
            eligibility::of_member(member, previous, is_new_set, now, settings)
        })
        .collect();
    seen.iter()
        .zip(duplicates::resolve(members, alone))
        .map(|(&(member, previous), eligibility)| {
            let adoptable = || match desired {
                _ if is_placed => requested_of_cluster(member, &seen),
                Some(desired) => desired.replicas.into(),
                None => u64::MAX,
            };
            let seen = (member, previous);
            MemberEvaluation {
                is_placed,
                lacks_statuses,
                ..MemberEvaluation::new(seen, eligibility, desired, adoptable, now, settings)
            }
        })
        .collect()
}

/// A member with its previous status.
type Seen<'a> = (&'a Member, Option<&'a ClusterStatus>);

/// The most replicas that were requested of the cluster of `member`, under any of its names. Where nothing was requested, a
/// set that was placed before has no replicas to keep, whatever the member claims.
fn requested_of_cluster(member: &Member, seen: &[Seen<'_>]) -> u64 {
    let Some(own) = member.own_set() else {
        return 0;
    };
    let is_same = |other: &Member| other.own_set().is_some_and(|set| set.uid == own.uid);
    let same = seen.iter().filter(|(other, _)| is_same(other));
    let requested = same.filter_map(|(_, previous)| previous.as_ref()?.internal.requested_replicas);
    requested.max().map_or(0, count::from_status)
}

/// What the controller last wrote into `set`. A write of the `desired` template whose response was lost shows by its annotation.
fn record(
    previous: Option<&ClusterStatus>,
    set: Option<&WorkloadState>,
    desired: Option<DesiredSpec>,
) -> Option<TemplateRecord> {
    let record = previous.and_then(|previous| previous.internal.template.clone());
    let arrived = || {
        let (set, desired) = (set?, desired?);
        let written = set.deployment.as_ref()?.written_template;
        let is_desired = written != 0 && u64::from(written) == desired.hash;
        let is_new = (record.as_ref()).is_none_or(|record| !record.has_desired(desired.hash));
        (is_desired && is_new).then(|| TemplateRecord::new(desired.hash, set.spec_hash))
    };
    arrived().or(record)
}

impl<'a> MemberEvaluation<'a> {
    fn new(
        (member, previous): Seen<'a>,
        eligibility: Eligibility<'a>,
        desired: Option<DesiredSpec>,
        adoptable: impl FnOnce() -> u64,
        now: Timestamp,
        settings: &Config,
    ) -> Self {
        let previous = previous.filter(|_| !eligibility.is_duplicate());
        let previously_requested = previous
            .and_then(|previous| previous.internal.requested_replicas)
            .map(count::from_status);
        let set = member.own_set().filter(|_| !eligibility.is_duplicate());
        // The member has made no progress since the last check, perhaps by another leader.
        let has_no_progress = |previous: &&ClusterStatus| {
            let replicas = |set: &WorkloadState| u64::from(set.status_replicas);
            set.map_or(0, replicas) <= count::from_status(previous.replicas)
        };
        let behind_since = previous
            .filter(has_no_progress)
            .and_then(|previous| previous.internal.behind_since.as_ref());
        // No pods are created for a ReplicaSet that is being deleted: it shows nothing about the cluster.
        let shows_scheduling = set.is_some_and(|set| set.deletion.is_none());
        let mut evaluation = Self {
            member,
            previous,
            eligibility,
            is_placed: false,
            lacks_statuses: false,
            scheduling: if shows_scheduling {
                let behind_since = behind_since.map(|time| time.0);
                Scheduling::of(&member.view, behind_since, now, settings)
            } else {
                Scheduling::default()
            },
            previously_requested,
            believed: previously_requested.unwrap_or_else(adoptable),
            capacity: previous.map(CapacityEstimate::of).unwrap_or_default(),
            writes: previous
                .map(|previous| WriteBackoff(previous.internal.writes.clone()))
                .unwrap_or_default(),
            record: record(previous, set, desired),
            template_rejection: previous
                .and_then(|previous| previous.internal.template_rejection.as_deref())
                .filter(|rejection| desired.is_some_and(|desired| rejection.is_of(desired.hash))),
        };
        // Somebody may have undone what made another write of the template necessary.
        if desired.is_some_and(|desired| evaluation.has_spec(desired.hash)) {
            evaluation.template_rejection = None;
        }
        evaluation
    }

    /// The local ReplicaSet, if it is ours; that of a duplicate counts under the other name.
    pub(super) fn live_set(&self) -> Option<&'a WorkloadState> {
        self.member
            .own_set()
            .filter(|_| !self.eligibility.is_duplicate())
    }

    /// The local ReplicaSet, unless it is being deleted: it is not written, and its pods will go.
    pub(super) fn set(&self) -> Option<&'a WorkloadState> {
        self.live_set().filter(|set| set.deletion.is_none())
    }

    /// Whether the local ReplicaSet is as the controller has written the spec with this hash, besides its replicas.
    pub(super) fn has_spec(&self, hash: u64) -> bool {
        let is_written = |set: &WorkloadState| {
            let record = self.record.as_ref();
            record.is_some_and(|record| record.has_desired(hash) && record.has_live(set.spec_hash))
        };
        self.set().is_some_and(is_written) && self.member.has_label()
    }

    /// The deletion of the local ReplicaSet, while it waits for something.
    pub(super) fn deletion(&self) -> Option<&'a Deletion> {
        self.live_set()?.deletion.as_deref()
    }

    /// Replicas requested of the member, as far as is known: by its ReplicaSet, or by the previous status. Of a ReplicaSet that
    /// is being deleted, those that may still be ready.
    pub(super) fn requested(&self) -> u64 {
        match self.live_set() {
            Some(set) if set.deletion.is_some() => {
                self.possibly_ready().min(u64::from(set.replicas))
            }
            Some(set) => u64::from(set.replicas),
            None if self.eligibility.is_eligible() => 0,
            None => self.previously_desired(),
        }
    }

    /// Replicas requested of the member, as far as it is believed: no more than were ever requested of it.
    pub(super) fn believed_requested(&self) -> u64 {
        self.believed_of(self.requested())
    }

    /// Of `count` replicas that the member reports, those that it is believed to have.
    fn believed_of(&self, count: u64) -> u64 {
        count.min(self.most_believed())
    }

    /// The most replicas that the member is believed to have, whatever it reports.
    pub(super) fn most_believed(&self) -> u64 {
        self.believed.max(self.previously_desired())
    }

    /// The most replicas that the member is believed to have while it should have `target`.
    pub(super) fn limit(&self, target: Target) -> u64 {
        self.believed.max(target.total())
    }

    /// Of the replicas beyond `target`, those that have had no node for longer than the timeout: others replace them, whether they
    /// can be removed now or not.
    pub(super) fn without_node_beyond(&self, target: Target) -> u64 {
        let beyond = self.requested().saturating_sub(target.total());
        beyond.min(self.scheduling.failed_if_all())
    }

    /// Hash of the labels and settings that the controller last wrote into the local Deployment.
    pub(super) fn written_settings(&self) -> Option<SettingsHash> {
        self.previous?.internal.settings
    }

    /// Whether the controller has written these labels and settings into the local Deployment, and it has the settings.
    pub(super) fn has_settings(&self, snapshot: &Snapshot<'_>, desired: SettingsHash) -> bool {
        let is_written = self.written_settings() == Some(desired);
        let rollout = snapshot.rollout.as_ref().map(|rollout| rollout.settings);
        let settings = rollout.map(DeploymentSettings::from).unwrap_or_default();
        let is_paused = self.is_paused_by_rollout(snapshot);
        let deployment = self.set().and_then(|set| set.deployment.as_ref());
        is_written
            && self.member.has_label()
            && deployment.is_some_and(|state| settings.are_in(snapshot.frs, state, is_paused))
    }

    /// Whether the rollout has paused the local Deployment, and has not ended that.
    pub(super) fn is_paused_by_rollout(&self, snapshot: &Snapshot<'_>) -> bool {
        let recorded = snapshot.rollout.as_ref().map(|rollout| rollout.recorded);
        let loan = recorded.and_then(|record| record.state.loans.get(&*self.member.name));
        loan.is_some_and(|loan| loan.paused)
    }

    /// The version of the spec that shows external changes. That of a set without its label says nothing: whoever removed the label has
    /// changed the set.
    pub(super) fn generation(&self) -> Option<i64> {
        let labeled = self.live_set().filter(|_| self.member.has_label());
        labeled.map(WorkloadState::spec_version)
    }

    /// Of the requested replicas beyond `believed`, those that an earlier leader may have requested although no status shows it:
    /// all of a first external change, or while statuses may be missing, and then those that the writes since have left. The
    /// member may not tell the truth: nothing is added by further changes, nor while it carries out no writes.
    pub(super) fn unpublished(&self, believed: u64) -> u64 {
        let most = if self.writes.fails_repeatedly() {
            0
        } else if self.lacks_statuses || self.writes.has_unknown_writer(self.generation()) {
            u64::MAX
        } else {
            self.previously_unpublished()
        };
        self.requested().saturating_sub(believed).min(most)
    }

    pub(super) fn previously_unpublished(&self) -> u64 {
        self.previous.map_or(0, |previous| {
            count::from_status(previous.internal.unpublished_replicas)
        })
    }

    /// Replicas that the member may have: a pending write may or may not have been carried out, and one that shows nothing may
    /// have what was last requested of it, for example while it is drained.
    pub(super) fn possibly_requested(&self) -> u64 {
        let reported = self.requested().max(self.possibly_ready());
        let reported = reported.max(self.open_scale_up());
        let believed = self.believed_of(reported).max(self.previously_desired());
        if self.eligibility.is_eligible() {
            return believed + self.unpublished(self.most_believed());
        }
        let shows_nothing = self.live_set().is_none();
        let unseen = self.previously_requested.filter(|_| shows_nothing);
        believed.max(unseen.unwrap_or(0))
    }

    /// The most replicas that a request sets which may still be carried out, although its response was lost.
    pub(super) fn open_scale_up(&self) -> u64 {
        let open = self.live_set().and_then(|set| set.open_scale_up);
        open.map_or(0, u64::from)
    }

    /// Until when nothing is decided before the first answer of the member. One without replicas of the set is waited for by a new
    /// set, which is then laid out over all members at once. A set that no status has placed may have replicas anywhere: that of an
    /// earlier leader was perhaps never stored.
    pub(super) fn awaited_until(&self, settings: &Config) -> Option<Timestamp> {
        let member = self.member;
        match self.eligibility {
            Eligibility::Joining { until } => {
                let had_replicas = self.previous.is_some_and(|previous| previous.replicas > 0)
                    || self.previously_desired() > 0;
                let is_awaited = member.awaited || !self.is_placed || had_replicas;
                is_awaited.then_some(until)
            }
            Eligibility::Unknown { .. } if !self.is_placed => {
                let has_kubeconfig =
                    member.removed.is_none() && member.invalid_kubeconfig.is_none();
                let may_answer = member.awaited && has_kubeconfig;
                may_answer.then(|| after(member.joined, settings.joining_timeout))
            }
            _ => None,
        }
    }

    /// Capacity probes that the last check placed and that are requested of the member: the surge may not have allowed them yet.
    pub(super) fn requested_probes(&self) -> u64 {
        let beside_probes = self.previously_desired() - self.probes();
        let requested = self.believed_requested();
        requested.saturating_sub(beside_probes).min(self.probes())
    }

    /// Capacity probes that the last check placed.
    fn probes(&self) -> u64 {
        self.previous.map_or(0, |previous| {
            count::from_status(previous.internal.capacity_probes)
        })
    }

    fn previously_desired(&self) -> u64 {
        let desired = |previous: &ClusterStatus| count::from_status(previous.desired_replicas);
        self.previous.map_or(0, desired) + self.probes()
    }

    /// Pods that are available and stay so once all requests are carried out: the status of the set may lag behind a
    /// scale-down of ours, which `lowest_replicas` remembers, and the pods may be ahead of the status.
    pub(super) fn available(&self) -> u64 {
        self.lasting(|set| set.available_replicas)
    }

    /// Pods that are ready and stay so once all requests are carried out.
    pub(super) fn ready(&self) -> u64 {
        self.lasting(|set| set.ready_replicas)
    }

    fn lasting(&self, of: impl Fn(&WorkloadState) -> u32) -> u64 {
        let Some(set) = self.live_set() else { return 0 };
        let mut lasting = of(set).min(set.replicas).min(set.lowest_replicas);
        // The nodes of pods without our labels are not known.
        let view = &self.member.view;
        if !view.has_unlabeled_pods() || view.nodes_report {
            lasting = lasting.min(view.pods.ready);
        }
        u64::from(lasting)
    }

    /// Pods that may be ready, whichever source shows it. Those that no source shows as ready can be removed at once. More
    /// than are requested while the member has yet to remove some.
    pub(super) fn possibly_ready(&self) -> u64 {
        let Some(set) = self.live_set() else { return 0 };
        let pods = &self.member.view.pods;
        // Neither source shows the pods of a set that was just adopted, if its status was not updated since.
        let unseen = if set.observed_generation < set.generation {
            set.status_replicas.saturating_sub(pods.active)
        } else {
            0
        };
        u64::from(set.ready_replicas.max(pods.ready + pods.doubtful + unseen))
    }

    /// Active pods beyond those that its controllers keep: they have yet to remove them, or that has not been seen. A rollout may have
    /// its surge beside what is requested.
    pub(super) fn excess(&self) -> u64 {
        let Some(set) = self.live_set() else { return 0 };
        let rolling = (set.deployment.as_ref())
            .filter(|deployment| deployment.updated_replicas < set.status_replicas);
        let surge = rolling.map_or(0, |deployment| deployment.strategy.max_surge);
        u64::from((self.member.view.pods.active).saturating_sub(set.replicas.saturating_add(surge)))
    }

    /// Whether its pods may have been adopted while the member's controllers do not act: they would count those without our
    /// labels. Looked for until the pods that the status counts are believed to be gone.
    pub(super) fn may_have_unlabeled_pods(&self) -> bool {
        let counted = self.live_set().map_or(0, |set| set.status_replicas);
        self.member.view.pods.active < counted
            && self.scheduling.behind_since.is_some()
            && self.scheduling.not_acting_since.is_none()
    }

    /// Whether it has or should have pods.
    pub(super) fn has_pods(&self) -> bool {
        self.requested() > 0 || self.live_set().is_some_and(|set| set.status_replicas > 0)
    }

    /// Whether pods that it was adopted with lack our labels. While a Deployment whose template has them rolls, its counts come from
    /// several ReplicaSets, and may not fit together.
    pub(super) fn needs_labels(&self) -> bool {
        let rolls_labeled = self.live_set().is_some_and(|set| {
            let is_behind = set.observed_generation < set.generation;
            let rolls =
                |state: &DeploymentState| is_behind || state.updated_replicas < set.status_replicas;
            let deployment = set.deployment.as_ref();
            deployment.is_some_and(|state| state.template_is_labeled && rolls(state))
        });
        !rolls_labeled && (self.member.view.has_unlabeled_pods() || self.may_have_unlabeled_pods())
    }

    /// Whether evictions wait there: a LocalReplicaSet removes these pods first, although they run (L21).
    pub(super) fn has_waiting_evictions(&self) -> bool {
        let local = self
            .live_set()
            .and_then(|set| set.deployment.as_ref()?.local);
        local.is_some_and(|local| local.waiting_evictions > 0)
    }

    /// Pods that are scheduled and not ready.
    pub(super) fn unready(&self) -> u64 {
        self.scheduling
            .scheduled
            .saturating_sub(self.possibly_ready())
    }

    /// Pods of the template with this hash, and pods of other templates.
    pub(super) fn pods_by_template(&self, template_hash: u32) -> (u64, u64) {
        let templates = self.member.view.pods.by_template.iter();
        templates.fold((0, 0), |(updated, outdated), (hash, pods)| {
            let pods = u64::from(*pods);
            if *hash == template_hash {
                (updated + pods, outdated)
            } else {
                (updated, outdated + pods)
            }
        })
    }

    /// Pods of the template with this hash. A Deployment counts them by itself, as those that it was adopted with have no hash;
    /// until it has observed a template that was written, its counts are about the one before.
    pub(super) fn updated(&self, template_hash: u32) -> u64 {
        let is_written = |record: &TemplateRecord| record.has_desired(template_hash.into());
        let deployment = self.live_set().and_then(|set| {
            let has_template = (self.record.as_ref())
                .is_some_and(|record| is_written(record) && record.has_live(set.spec_hash));
            let is_observed = set.observed_generation >= set.generation;
            let counts = |state: &&DeploymentState| {
                has_template && (is_observed || !state.template_is_labeled)
            };
            set.deployment.as_deref().filter(counts)
        });
        deployment.map_or_else(
            || self.pods_by_template(template_hash).0.min(self.outdated()),
            |deployment| deployment.updated_replicas.into(),
        )
    }

    /// The most pods that another template than the live one may have, where that is not ours: its pods may have the hash of ours.
    fn outdated(&self) -> u64 {
        let changed = |set: &&WorkloadState| {
            let record = self.record.as_ref();
            record.is_some_and(|record| !record.has_live(set.spec_hash))
        };
        let changed = self.live_set().filter(changed);
        changed.map_or(u64::MAX, |set| {
            let updated = set.deployment.as_ref().map(|state| state.updated_replicas);
            let others = updated.map(|updated| set.status_replicas.saturating_sub(updated));
            others.map_or(u64::MAX, u64::from)
        })
    }

    /// Since when scheduled pods wait to become ready, and none has.
    pub(super) fn unready_since(&self, now: Timestamp) -> Option<Timestamp> {
        if self.unready() == 0 {
            return None;
        }
        let available = self.available();
        let without_progress = self
            .previous
            .filter(|previous| available <= count::from_status(previous.available_replicas));
        let since = without_progress.and_then(|previous| previous.internal.unready_since.as_ref());
        Some(since.map_or(now, |time| time.0))
    }

    /// Why and since when the member rejects the local ReplicaSet, if it does.
    pub(super) fn rejection(&self) -> Option<&'a Rejection> {
        let rejection = self.previous?.internal.rejection.as_ref()?;
        self.set().is_none().then_some(rejection)
    }

    /// Whether the member has rejected the local ReplicaSet, or changes of its replicas, for longer than `unscheduledTimeout`:
    /// it has no capacity beyond what is requested of it (F28).
    pub(super) fn rejects_for_long(&self, now: Timestamp, settings: &Config) -> bool {
        let rejection = self.rejection().map(|rejection| rejection.since.0);
        let since = rejection.or(self.writes.rejected_since());
        let until = since.and_then(|since| after_limit(since, settings.unscheduled_timeout));
        until.is_some_and(|until| until <= now)
    }

    /// When the deletion of the local ReplicaSet, if it has not ended by then, leaves the member without capacity: no other
    /// ReplicaSet of its name can be created, and the pods that still run may end at any time.
    pub(super) fn deletion_counts_from(&self, settings: &Config) -> Option<Timestamp> {
        let deletion = self.deletion()?;
        after_limit(deletion.since, settings.unscheduled_timeout)
    }

    /// Whether the deletion of the local ReplicaSet lasts for longer than `unscheduledTimeout`.
    pub(super) fn hangs_in_deletion(&self, now: Timestamp, settings: &Config) -> bool {
        let counts_from = self.deletion_counts_from(settings);
        counts_from.is_some_and(|time| time <= now)
    }

    /// Whether the local ReplicaSet has kept another template for longer than `unscheduledTimeout`, because the member rejects
    /// the present one.
    pub(super) fn keeps_template_for_long(&self, now: Timestamp, settings: &Config) -> bool {
        let rejection = self.template_rejection.filter(|_| self.set().is_some());
        let since = rejection.map(|rejection| rejection.since.0);
        let until = since.and_then(|since| after_limit(since, settings.unscheduled_timeout));
        until.is_some_and(|until| until <= now)
    }

    /// When the next write of the local ReplicaSet is tried, if it waits because others failed or were undone.
    pub(super) fn next_write(&self, now: Timestamp, settings: &Config) -> Option<Timestamp> {
        let writes = self.writes.clone();
        let writes = writes.observe(self.generation(), true, now, settings);
        let creation = self.next_creation().filter(|time| now < *time);
        writes.held_until(now, settings).max(creation)
    }

    /// The next attempt of a rejected creation.
    pub(super) fn next_creation(&self) -> Option<Timestamp> {
        self.rejection()?;
        let time = self.previous?.internal.next_attempt_time.as_ref()?;
        Some(time.0)
    }
}
