//! What probes of a member show.

use fedrs_api::MemberReason;

/// What the last probe of a member showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Contact {
    /// Nothing: it is not probed, or has not been yet.
    #[default]
    Unknown,
    Answers,
    /// It answers again, and none of its nodes has reported since: no outage ends, and none begins.
    Unconfirmed,
    /// It answers, and none of its nodes is ready.
    NoReadyNodes,
    /// It answers, and rejects the credentials.
    Unauthorized,
    /// No answer, but fewer times in a row than the failure threshold.
    Failing,
    /// No answer as many times in a row.
    Unreachable,
    /// Its kubeconfig was removed.
    Removed,
}

impl Contact {
    /// Why the member may be lost.
    pub(super) fn reason(self) -> Option<MemberReason> {
        match self {
            Self::Unknown | Self::Answers | Self::Unconfirmed => None,
            Self::NoReadyNodes => Some(MemberReason::NoReadyNodes),
            Self::Unauthorized => Some(MemberReason::Unauthorized),
            Self::Failing | Self::Unreachable => Some(MemberReason::Unreachable),
            Self::Removed => Some(MemberReason::Removed),
        }
    }

    /// Whether it can show that the member is lost: a few failures in a row do not.
    pub(super) fn shows_outage(self) -> bool {
        self.reason().is_some() && self != Self::Failing
    }

    pub(super) fn is_answer(self) -> bool {
        matches!(
            self,
            Self::Answers | Self::Unconfirmed | Self::NoReadyNodes | Self::Unauthorized
        )
    }

    /// Whether it shows anything about the connection to the member.
    pub(super) fn is_probed(self) -> bool {
        !matches!(self, Self::Unknown | Self::Removed)
    }
}
