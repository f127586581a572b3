//! What the controller may believe of a member, and what it must know by now.

use tokio::time::{Duration, Instant};

use super::{local_set::LocalSet, observed::Observed, observed_member::ObservedMember};
use crate::plan::Fault;

/// Nobody notices that a node has stopped before it was silent for this time.
const NODE_GRACE: Duration = Duration::from_secs(40);
/// Kubelets report the status of a node that does not change as often.
const NODE_STATUS: Duration = Duration::from_secs(300);

impl Observed {
    /// Whether a member was open to the sets and could be observed since before `time`.
    pub(super) fn is_known_since(&self, member: &str, time: Instant) -> bool {
        let before = time - self.max_age();
        let member = &self.members[member];
        let mut closed = member.is_closed.since(before);
        member.visibility.is_visible_since(before) && !closed.any(|closed| *closed)
    }

    /// Whether a member could be observed all the time since then, with its nodes: after an outage it stays lost until these
    /// report (F33).
    pub(super) fn is_visible_since(&self, member: &str, since: Instant) -> bool {
        let since = since - NODE_GRACE - self.max_age();
        self.members[member].visibility.is_visible_since(since)
    }

    /// When the last outage of a member began, if it is not over, or was not before `time`.
    pub(crate) fn outage_since(&self, member: &str, time: Instant) -> Option<Instant> {
        self.members[member].visibility.outage_since(time)
    }

    /// The time since which any state of a member may still count as current.
    pub(crate) fn oldest_belief(&self, member: &str) -> Instant {
        let oldest = self.members[member].visibility.oldest_belief(self.config());
        let lost = self.unnoticed_power_loss(member);
        lost.map_or(oldest, |lost| oldest.min(lost - self.max_age()))
    }

    /// The numbers of pods of `part` in a member that may still count as running.
    pub(super) fn believed_ready<'a>(
        &self,
        member: &str,
        part: &'a LocalSet,
    ) -> impl Iterator<Item = u64> + 'a {
        let oldest = self.oldest_belief(member);
        let reported = self
            .unnoticed_power_loss(member)
            .map(|lost| part.reported_ready.since(lost));
        part.ready
            .since(oldest)
            .chain(reported.into_iter().flatten())
            .copied()
    }

    /// When a member lost its power, if nothing has shown that yet.
    fn unnoticed_power_loss(&self, member: &str) -> Option<Instant> {
        let member = &self.members[member];
        member.power_lost_at.filter(|lost| {
            lost.elapsed() < NODE_GRACE + self.max_age()
                && !member.visibility.was_noticed_after(*lost)
        })
    }

    /// Whether the controller must know by now that the state of a member is unknown.
    pub(crate) fn is_known_to_be_unknown(&self, member: &str) -> bool {
        let visibility = &self.members[member].visibility;
        visibility.is_known_to_be_unknown(self.config())
    }

    /// Whether the controller may rely on wrong responses of the member.
    pub(crate) fn may_lie(&self, member: &str) -> bool {
        self.has_lied_within(member, self.max_age())
    }

    /// Whether responses of the member are wrong, or were within this time.
    pub(super) fn has_lied_within(&self, member: &str, time: Duration) -> bool {
        self.members[member].visibility.has_lied_within(time)
    }

    /// Whether the controller may know nothing of what it wrote to a member: it, or the host, was restored, it was no member for a while,
    /// or its responses were wrong.
    pub(crate) fn was_unreliable(&self, member: &str) -> bool {
        self.host.was_unreliable() || self.members[member].visibility.was_unreliable()
    }

    /// Whether it may know nothing of what it wrote to any member.
    pub(super) fn was_any_unreliable(&self) -> bool {
        self.members
            .keys()
            .any(|member| self.was_unreliable(member))
    }

    /// Whether the controller has not listed the pods and Deployments of a member since its responses were wrong: those that have
    /// not changed may be believed to be what they were said to be.
    pub(super) fn may_remember_lies(&self, member: &str) -> bool {
        let member = &self.members[member];
        let lied_until = member.visibility.lied_until();
        let [_, pods] = member.listed;
        lied_until.is_some() && pods.min(member.deployments_listed) < lied_until
    }

    /// Whether the controller may rely on wrong responses about the nodes of the member.
    pub(crate) fn may_lie_about_nodes(&self, member: &str) -> bool {
        self.has_lied_within(member, NODE_STATUS + self.max_age())
    }

    /// Whether the controller has listed what it misses of a member since then, if only events are missing, or all of any member
    /// since its outage ended.
    pub(crate) fn is_listed_since(&self, member: &str, time: Option<Instant>) -> bool {
        let ObservedMember {
            visibility, listed, ..
        } = &self.members[member];
        let [sets, pods] = listed;
        let missed = if visibility.is_only(&Fault::PodsSilent.to_string()) {
            *pods
        } else if visibility.is_only(&Fault::ReplicaSetsSilent.to_string()) {
            *sets
        } else {
            *sets.min(pods)
        };
        let ended = visibility.ended();
        visibility.is_listed() && missed >= time || ended.is_some() && sets.min(pods) >= &ended
    }

    /// Whether the member was restored: for half an hour its watches may not show what was, if it has given as many versions since.
    pub(super) fn was_restored(&self, member: &str) -> bool {
        self.members[member].restored.is_some()
    }

    /// Whether the member was restored then or later.
    pub(crate) fn was_restored_since(&self, member: &str, time: Instant) -> bool {
        let restored = self.members.get(member).and_then(|member| member.restored);
        restored.is_some_and(|restored| restored >= time)
    }

    /// Whether the controller has listed anything since then of a member that was restored: before, its view may have been
    /// wrong, and writes that conflict with it make the controller list it again.
    pub(crate) fn was_seen_wrongly_since(&self, member: &str, time: Instant) -> bool {
        let member = &self.members[member];
        let mut listed = member.listed.iter().flatten();
        member.restored.is_some() && listed.any(|listed| *listed >= time)
    }

    /// Whether no status shows what was requested of a member, as the host could not be reached, and the present controller has not
    /// listed the member: nothing says that there is anything.
    pub(crate) fn was_never_published(&self, member: &str, local: &LocalSet) -> bool {
        let member = &self.members[member];
        let started = member.visibility.controller_started();
        let is_published = local.planned.all().any(|planned| *planned > 0);
        !is_published && member.listed.iter().any(|listed| *listed < started)
    }

    /// Whether the controller must have seen by now that the member has returned, with its nodes. The host has its kubeconfig.
    pub(crate) fn is_known_to_be_back(&self, member: &str) -> bool {
        let (now, max_age) = (Instant::now(), self.max_age());
        self.is_observable(member)
            && self
                .outage_since(member, now - NODE_GRACE - max_age)
                .is_none()
            && self.host.is_visible_since(now - max_age)
    }

    /// Whether a node of the member has failed.
    pub(crate) fn has_failed_nodes(&self, member: &str) -> bool {
        !self.members[member].failed_nodes.is_empty()
    }

    /// Whether replicas can run in the member.
    pub(crate) fn has_ready_nodes(&self, member: &str) -> bool {
        self.members[member].has_ready_nodes()
    }

    /// Whether a node of the member was ready then or later after none was.
    pub(crate) fn have_nodes_returned_since(&self, member: &str, time: Instant) -> bool {
        let returned = self.members[member].nodes_returned;
        returned.is_some_and(|returned| returned >= time)
    }

    /// Whether the controller cannot see the present state of the member. Once an outage has ended, it can at any moment.
    pub(super) fn is_hidden(&self, member: &str) -> bool {
        !self.is_observable(member) && self.members[member].visibility.ended().is_none()
    }

    /// Whether nothing need have shown the controller yet that it can't see the member.
    pub(super) fn is_outage_unnoticed(&self, member: &str) -> bool {
        let visibility = &self.members[member].visibility;
        visibility.is_outage_unnoticed(self.config())
    }

    /// Whether nothing but the nodes of the member is hidden: its replicas can be seen.
    pub(super) fn hides_only_nodes(&self, member: &str) -> bool {
        let nodes = Fault::NodesSilent.to_string();
        self.members[member].visibility.is_only(&nodes)
    }

    /// Whether the controller can have seen a recent state of the member.
    pub(crate) fn is_observable(&self, member: &str) -> bool {
        self.oldest_belief(member) + self.max_age() >= Instant::now()
    }
}
