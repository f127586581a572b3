//! What a leader records of the outages of a member, and what the next one makes of it.

use std::time::Duration;

use fedrs_api::{MemberInternalState, MemberReason};
use tokio::time::Instant;

use super::{Contact, CurrentOutage, History, Periods, counts_for_sets, saturate, stabilization};

/// Seconds of an outage between two records, until the member is lost.
const RECORDED_STEP: u64 = 10;
/// After that an outage is recorded about so many times while it doubles: sets may give the member more time, and a member
/// that is lost for days causes few writes.
const RECORDS_PER_DOUBLING: u64 = 16;

/// What earlier leaders recorded of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Recorded {
    /// The host has not shown it yet.
    #[default]
    Unread,
    /// It holds until this process knows better.
    Kept(MemberInternalState),
    /// This process knows better.
    Superseded,
}

impl Recorded {
    fn supersede(&mut self) -> Option<MemberInternalState> {
        match std::mem::replace(self, Self::Superseded) {
            Self::Kept(recorded) => Some(recorded),
            unread_or_superseded => {
                *self = unread_or_superseded;
                None
            }
        }
    }
}

/// The outage of a member in the record of an earlier leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EarlierOutage {
    /// There was none.
    #[default]
    None,
    /// It was out of reach.
    Out,
    /// It was considered lost.
    Lost,
}

impl History {
    /// Continues from what an earlier leader recorded. Returns whether that was not known yet.
    pub(in super::super) fn resume(&mut self, recorded: &MemberInternalState) -> bool {
        if self.recorded != Recorded::Unread {
            return false;
        }
        self.losses = self.losses.max(u32::try_from(recorded.losses).unwrap_or(0));
        self.earlier = match recorded {
            recorded if recorded.lost => EarlierOutage::Lost,
            recorded if !recorded.outage_reason.is_empty() => EarlierOutage::Out,
            _ => EarlierOutage::None,
        };
        self.recorded = Recorded::Kept(recorded.clone());
        if self.contact.is_probed() && self.contact != Contact::Unconfirmed {
            self.take_record(self.contact.reason());
        }
        true
    }

    /// Adds the recorded durations to those of the same outage, or the same health, that this process has measured.
    pub(super) fn take_record(&mut self, reason: Option<MemberReason>) {
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

    /// What a later leader has to know.
    pub(in super::super) fn record(&self, periods: &Periods, now: Instant) -> MemberInternalState {
        if let Recorded::Kept(recorded) = &self.recorded {
            return recorded.clone();
        }
        let whole = |time: Duration, step: u64| {
            let step = step.max(1);
            i64::try_from(time.as_secs() / step * step).unwrap_or(i64::MAX)
        };
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
            let step = match self.state.lost_at {
                Some(_) => RECORDED_STEP,
                None => RECORDED_STEP.max(power_of_two(length.as_secs() / RECORDS_PER_DOUBLING)),
            };
            // A later leader considers it lost, too.
            let lost_after = self.state.lost.map_or(Duration::ZERO, |_| self.lost_after);
            whole(length, step).max(whole(lost_after, 1))
        };
        MemberInternalState {
            outage_reason: (outage.map(|outage| outage.reason).or(unconfirmed))
                .map(|reason| reason.to_string())
                .unwrap_or_default(),
            outage_seconds: outage.map_or(0, outage_seconds),
            lost,
            losses: self.losses.into(),
            healthy_seconds: whole(healthy, stabilization.as_secs() / 4),
            ended_outages: self
                .ended_outages
                .iter()
                .map(|outage| whole(*outage, 1))
                .collect(),
        }
    }
}

/// The largest power of two that is not above `number`.
fn power_of_two(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |exponent| 1 << exponent)
}
