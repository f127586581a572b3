//! Which members are lost, or returned, by what their probes show over time. Pure.
//!
//! ```text
//! answers --no answer for the grace period, while another member answers--> lost --answers--> stabilizing --> stable
//!
//! no member that is not lost answers --> the controller is disconnected: no member is lost because of it, until the first
//! one answers; the grace periods of the others then start anew
//! ```
//!
//! Durations are measured by the clock of the process. What earlier leaders observed is added; the time between two leaders
//! does not count.

use std::time::Duration;

use fedrs_api::{MemberInternalState, MemberReason};
use planted_bugs::{PlantedBug, is_planted};
use tokio::time::Instant;

use super::{
    contact::Contact,
    recorded_outage::{EarlierOutage, Recorded, in_steps, recorded_seconds},
};

/// A member that is healthy for so long counts as stable: its losses are forgotten.
const STABLE_AFTER: Duration = Duration::from_secs(3600);
/// The longest time for which a returned member has to be healthy.
const MAX_STABILIZATION: Duration = Duration::from_secs(1800);
/// Outages whose lengths are kept, the longest: as many losses make the longest stabilization of the defaults.
const KEPT_OUTAGES: usize = 6;

/// The durations of the configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods {
    /// How long a member may reject the credentials; `None` for ever.
    pub(super) unauthorized: Option<Duration>,
    /// How long a member has to be healthy after its first loss; doubled by each further one.
    pub(super) stabilization: Duration,
    /// Within this time each member is probed.
    pub(super) probe_round: Duration,
}

/// How long something has lasted, in this process and as observed by earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) since: Instant,
    pub(super) earlier: Duration,
}

impl Span {
    fn length(self, now: Instant) -> Duration {
        now.duration_since(self.since) + self.earlier
    }

    /// When it has lasted for `length`.
    fn reaches(self, length: Duration) -> Instant {
        self.since + length.saturating_sub(self.earlier)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CurrentOutage {
    reason: MemberReason,
    span: Span,
    /// The member is not lost before, because it has to be probed again.
    not_before: Instant,
    /// Whether at any time it was an outage of the member, and not of the controller's own connection.
    was_decidable: bool,
}

impl CurrentOutage {
    /// When it has lasted for `grace`, if it may be a loss.
    fn lost_at(&self, grace: Option<Duration>) -> Option<Instant> {
        Some(self.span.reaches(grace?).max(self.not_before))
    }
}

/// The outages of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    contact: Contact,
    outage: Option<CurrentOutage>,
    /// Whether its outage, if there is one, is that of the member, and not of the controller's own connection.
    is_decidable: bool,
    /// How long the longest outages lasted that have ended since the member was healthy for an hour, longest first. Each set
    /// may have a grace period of its own: whether the member was lost for it follows from these.
    ended_outages: Vec<Duration>,
    /// How long it has been healthy.
    healthy: Option<Span>,
    /// Since when it answers, if none of its nodes has reported since: its outage is not over, and grows no longer.
    answers_since: Option<Instant>,
    /// How long the outage had lasted when the member was lost.
    lost_after: Duration,
    /// Losses without an hour of health between them.
    losses: u32,
    recorded: Recorded,
    /// What an earlier leader recorded, if nothing has shown the opposite.
    earlier: EarlierOutage,
    /// Whether its last outage ended while there was no leader: the state of its pods may be from before, and this process
    /// has not seen its nodes return.
    returned_unseen: bool,
    pub(super) state: OutageState,
}

/// The consequences for one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutageState {
    /// The outage for which its replicas are rescheduled.
    pub(super) lost: Option<Span>,
    /// When it will be lost, if its outage lasts.
    pub(super) lost_at: Option<Instant>,
    /// Until when it has to be healthy before replicas elsewhere are removed in favor of its own.
    pub(super) stabilizes_at: Option<Instant>,
    pub(super) losses: u32,
}

/// One member at one moment.
pub(super) struct Observed<'a> {
    pub(super) history: &'a mut History,
    pub(super) contact: Contact,
    /// How long it may be out of reach; `None` for ever.
    pub(super) grace: Option<Duration>,
}

impl Observed<'_> {
    fn grace(&self, reason: MemberReason, periods: &Periods) -> Option<Duration> {
        if reason == MemberReason::Unauthorized {
            periods.unauthorized
        } else {
            self.grace
        }
    }

    /// Whether it is lost, by this leader or an earlier one.
    fn is_lost(&self) -> bool {
        self.history.state.lost.is_some() || self.history.was_lost()
    }
}

/// Brings the histories of all members up to `now`. Returns whether the controller is disconnected.
pub(super) fn observe(
    members: &mut [Observed<'_>],
    was_disconnected: bool,
    periods: &Periods,
    now: Instant,
) -> bool {
    for member in &mut *members {
        member.history.observe_contact(member.contact, now);
    }
    let answers = members.iter().any(|member| member.contact.is_answer());
    let probed = |member: &&Observed<'_>| member.contact.is_probed() && !member.is_lost();
    let all_show = |contact| {
        let mut probed = members.iter().filter(probed).peekable();
        probed.peek().is_some() && probed.all(|member| member.contact == contact)
    };
    let is_disconnected = !answers
        && (all_show(Contact::Unreachable)
            || was_disconnected && members.iter().any(|member| probed(&member)));
    let all_unauthorized = all_show(Contact::Unauthorized);
    for member in &mut *members {
        if was_disconnected
            && !is_disconnected
            && let Some(outage) = &mut member.history.outage
        {
            (outage.span.since, outage.span.earlier) = (now, Duration::ZERO);
            outage.not_before = now + periods.probe_round;
        }
        let is_decidable = match member.contact {
            Contact::Unreachable | Contact::Failing => answers,
            Contact::Unauthorized => !all_unauthorized,
            Contact::Unconfirmed => false,
            _ => !is_disconnected,
        };
        member.history.is_decidable = is_decidable;
        if let Some(outage) = &mut member.history.outage {
            outage.was_decidable |= is_decidable;
        }
        let reason = member.history.outage.map(|outage| outage.reason);
        let grace = reason.and_then(|reason| member.grace(reason, periods));
        let may_be_lost_at = member.history.may_be_lost_at(grace);
        member.history.decide(may_be_lost_at, periods, now);
    }
    is_disconnected
}

impl History {
    /// Continues from what an earlier leader recorded. Returns whether that was not known yet.
    pub(super) fn resume(&mut self, recorded: &MemberInternalState) -> bool {
        if self.recorded != Recorded::Unread {
            return false;
        }
        self.losses = self.losses.max(u32::try_from(recorded.losses).unwrap_or(0));
        self.earlier = EarlierOutage::of(recorded);
        self.recorded = Recorded::Kept(recorded.clone());
        if self.contact.is_probed() && self.contact != Contact::Unconfirmed {
            self.take_record(self.contact.reason());
        }
        true
    }

    /// Adds the recorded durations to those of the same outage, or the same health, that this process has measured.
    fn take_record(&mut self, reason: Option<MemberReason>) {
        let Some(recorded) = self.recorded.supersede() else {
            return;
        };
        let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let lasted = seconds(recorded.outage_seconds);
        for outage in recorded.ended_outages {
            self.keep_outage(seconds(outage));
        }
        match (reason, &mut self.outage) {
            (Some(reason), Some(outage)) if recorded.outage_reason == reason.as_str() => {
                outage.span.earlier += lasted;
            }
            // It ended while there was no leader.
            _ if counts_for_sets(&recorded.outage_reason) => self.keep_outage(lasted),
            _ => {}
        }
        if let (None, Some(healthy)) = (reason, &mut self.healthy) {
            healthy.earlier += seconds(recorded.healthy_seconds);
            self.returned_unseen = !self.ended_outages.is_empty();
        }
    }

    fn keep_outage(&mut self, length: Duration) {
        self.ended_outages.push(length);
        self.ended_outages.sort_unstable_by(|a, b| b.cmp(a));
        self.ended_outages.truncate(KEPT_OUTAGES);
    }

    /// Its outage, if there is one, has `ended`; `before` is the previous contact.
    fn end_outage(&mut self, before: Contact, ended: Instant) {
        let has_lasted = before.shows_outage() || before == Contact::Unconfirmed;
        if let Some(outage) = self.outage.take().filter(|_| has_lasted)
            && counts_for_sets(outage.reason.as_str())
            && outage.was_decidable
        {
            self.keep_outage(outage.span.length(ended));
        }
    }

    /// Whether a probe has shown anything.
    pub(super) fn has_contact(&self) -> bool {
        self.contact != Contact::Unknown
    }

    /// Whether it was out of reach, according to an earlier leader or an earlier informer of this one, and nothing has shown the end of
    /// that: its pods may be from before.
    pub(super) fn was_out(&self) -> bool {
        self.earlier != EarlierOutage::None || self.outage.is_some()
    }

    /// Whether an earlier leader considered it lost, and nothing has shown the opposite.
    fn was_lost(&self) -> bool {
        self.earlier == EarlierOutage::Lost
    }

    fn observe_contact(&mut self, contact: Contact, now: Instant) {
        let before = std::mem::replace(&mut self.contact, contact);
        let answers_since = self.answers_since.take();
        let ended = answers_since.unwrap_or(now);
        if contact.is_answer() && contact != Contact::Unconfirmed {
            self.earlier = EarlierOutage::None;
        }
        let span = Span {
            since: now,
            earlier: Duration::ZERO,
        };
        let reason = contact.reason();
        match (contact, reason) {
            (Contact::Unknown, _) => {
                // Another informer begins: what it finds is a new outage.
                self.outage = self.outage.filter(|_| self.state.lost.is_some());
                return;
            }
            (Contact::Unconfirmed, _) => {
                self.healthy = None;
                self.answers_since = Some(ended);
                return;
            }
            (_, None) => {
                self.end_outage(before, ended);
                self.healthy.get_or_insert(span);
            }
            (_, Some(reason)) => {
                if contact != Contact::Failing {
                    self.healthy = None;
                    self.returned_unseen = false;
                }
                // A member without an answer whose kubeconfig is removed, too, is lost no later.
                let lasts = |outage: &CurrentOutage| {
                    outage.reason == reason
                        || reason == MemberReason::Removed
                            && outage.reason == MemberReason::Unreachable
                };
                if !self.outage.as_ref().is_some_and(lasts) {
                    self.end_outage(before, ended);
                    self.outage = Some(CurrentOutage {
                        reason,
                        span,
                        not_before: now,
                        was_decidable: false,
                    });
                }
            }
        }
        self.take_record(reason);
    }

    fn decide(&mut self, may_be_lost_at: Option<Instant>, periods: &Periods, now: Instant) {
        let lost = match (self.contact, self.outage) {
            (Contact::Answers, _) => None,
            (contact, Some(outage)) if contact.shows_outage() => {
                let is_due = may_be_lost_at.is_some_and(|time| time <= now);
                self.state.lost.or(is_due.then_some(outage.span))
            }
            // Fewer failures than the threshold change nothing.
            _ => self.state.lost,
        };
        if lost.is_some() && self.state.lost.is_none() {
            self.losses = self.losses.saturating_add(1);
            self.lost_after = lost.map_or(Duration::ZERO, |span| span.length(now));
        }
        if self
            .healthy
            .is_some_and(|healthy| healthy.length(now) >= STABLE_AFTER)
        {
            self.losses = 0;
            self.ended_outages.clear();
        }
        let stabilizes_at = self.stabilizes_at(self.losses, periods, now);
        self.state = OutageState {
            lost,
            lost_at: may_be_lost_at.filter(|_| lost.is_none()),
            stabilizes_at: stabilizes_at.filter(|_| lost.is_none() && !self.was_lost()),
            losses: self.losses,
        };
    }

    /// When its outage has lasted for `grace`, if it may be lost because of it.
    fn may_be_lost_at(&self, grace: Option<Duration>) -> Option<Instant> {
        let outage = self.outage.filter(|_| self.is_decidable)?;
        outage.lost_at(grace)
    }

    /// The consequences for a set with a grace period of its own, `grace`.
    pub(super) fn state_within(
        &self,
        grace: Option<Duration>,
        periods: &Periods,
        now: Instant,
    ) -> OutageState {
        let is_loss = |outage: &&Duration| grace.is_some_and(|grace| grace <= **outage);
        let lost_for_set = self.ended_outages.iter().filter(is_loss).count();
        let losses = self.losses.max(saturate(lost_for_set));
        let state = OutageState {
            stabilizes_at: self.stabilizes_at(losses, periods, now),
            ..self.state
        };
        let Some(outage) = self
            .outage
            .filter(|outage| counts_for_sets(outage.reason.as_str()))
        else {
            return state;
        };
        let lost_at = self.may_be_lost_at(grace);
        let is_lost = match self.answers_since {
            None => self.contact.shows_outage() && lost_at.is_some_and(|time| time <= now),
            // It was lost until now, and so it is until its nodes have reported.
            Some(answered) => {
                let lost_at = outage.lost_at(grace).filter(|_| outage.was_decidable);
                lost_at.is_some_and(|time| time <= answered)
            }
        };
        let until = self.answers_since.unwrap_or(now);
        let stays_lost = |span: &Span| grace.is_some_and(|grace| span.reaches(grace) <= until);
        let lost = self.state.lost.filter(stays_lost);
        let lost = lost.or(is_lost.then_some(outage.span));
        OutageState {
            lost,
            lost_at: lost_at.filter(|_| lost.is_none()),
            stabilizes_at: state.stabilizes_at.filter(|_| lost.is_none()),
            ..state
        }
    }

    /// Until when it has to be healthy after so many losses, if that is after `now`.
    fn stabilizes_at(&self, losses: u32, periods: &Periods, now: Instant) -> Option<Instant> {
        let losses = losses.max(self.returned_unseen.into());
        let needed = stabilization(losses, periods);
        if needed.is_zero() || is_planted(PlantedBug::ReturnedPodsBelieved) {
            return None;
        }
        if let Some(since) = self.answers_since {
            // Its health begins once its nodes have reported. The time shown for it changes seldom.
            let mut until = since + needed;
            while until <= now {
                until += needed;
            }
            return Some(until);
        }
        let until = self.healthy?.reaches(needed);
        (until > now).then_some(until)
    }

    /// What a later leader has to know.
    pub(super) fn record(&self, periods: &Periods, now: Instant) -> MemberInternalState {
        if let Recorded::Kept(recorded) = &self.recorded {
            return recorded.clone();
        }
        let lost = self.state.lost.is_some() || self.was_lost();
        // Failed probes, fewer than the threshold, are no outage by themselves.
        let shows = |outage: &CurrentOutage| {
            let is_outage = self.contact.shows_outage() || !outage.span.earlier.is_zero();
            let has_answered = self.answers_since.is_some() && outage.was_decidable;
            lost || has_answered || self.is_decidable && is_outage
        };
        let outage = self.outage.filter(shows);
        // A later leader has to wait for the nodes, too.
        let unconfirmed = self.answers_since.map(|_| MemberReason::NodesUnconfirmed);
        let losses = self.losses.max(saturate(self.ended_outages.len()));
        let stabilization = stabilization(losses, periods);
        let healthy = self.healthy.map_or(Duration::ZERO, |healthy| {
            healthy.length(now).min(stabilization)
        });
        let outage_seconds = |outage: CurrentOutage| {
            let length = outage.span.length(self.answers_since.unwrap_or(now));
            // A later leader considers it lost, too.
            let lost_after = self.state.lost.map_or(Duration::ZERO, |_| self.lost_after);
            recorded_seconds(length, self.state.lost_at.is_some()).max(in_steps(lost_after, 1))
        };
        MemberInternalState {
            outage_reason: (outage.map(|outage| outage.reason).or(unconfirmed))
                .map(|reason| reason.to_string())
                .unwrap_or_default(),
            outage_seconds: outage.map_or(0, outage_seconds),
            lost,
            losses: self.losses.into(),
            healthy_seconds: in_steps(healthy, stabilization.as_secs() / 4),
            ended_outages: self
                .ended_outages
                .iter()
                .map(|outage| in_steps(*outage, 1))
                .collect(),
        }
    }
}

/// Whether an outage for this reason is a loss for sets with a grace period of their own: rejected credentials have another, and a
/// member answers while its nodes are waited for.
fn counts_for_sets(reason: &str) -> bool {
    let others = [MemberReason::Unauthorized, MemberReason::NodesUnconfirmed];
    !reason.is_empty() && others.iter().all(|other| reason != other.as_str())
}

fn saturate(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// How long a member has to be healthy after so many losses.
fn stabilization(losses: u32, periods: &Periods) -> Duration {
    match losses.checked_sub(1) {
        None => Duration::ZERO,
        Some(more) => periods
            .stabilization
            .saturating_mul(1 << more.min(16))
            .min(MAX_STABILIZATION),
    }
}

#[cfg(test)]
#[path = "outage_tests.rs"]
mod tests;
