//! What leaders record of the outage of a member.

use std::time::Duration;

use fedrs_api::MemberInternalState;

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
    pub(super) fn supersede(&mut self) -> Option<MemberInternalState> {
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

impl EarlierOutage {
    pub(super) fn of(recorded: &MemberInternalState) -> Self {
        match recorded {
            recorded if recorded.lost => Self::Lost,
            recorded if !recorded.outage_reason.is_empty() => Self::Out,
            _ => Self::None,
        }
    }
}

/// The seconds of an outage of this `length`, in steps that keep records few. They are short until the member is lost.
pub(super) fn recorded_seconds(length: Duration, is_to_be_lost: bool) -> i64 {
    let step = if is_to_be_lost {
        RECORDED_STEP
    } else {
        RECORDED_STEP.max(power_of_two(length.as_secs() / RECORDS_PER_DOUBLING))
    };
    in_steps(length, step)
}

/// The seconds of `time`, in steps of so many.
pub(super) fn in_steps(time: Duration, step: u64) -> i64 {
    let step = step.max(1);
    i64::try_from(time.as_secs() / step * step).unwrap_or(i64::MAX)
}

/// The largest power of two that is not above `number`.
fn power_of_two(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |exponent| 1 << exponent)
}
