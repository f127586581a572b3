//! Whether a member cluster is reachable (F33).

use jiff::Timestamp;

/// The result of the liveness probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Not probed yet.
    Unknown,
    /// `/readyz` succeeds.
    Healthy,
    /// The probe fails, but not often enough in a row to call the member unreachable.
    Failing {
        /// The first failure of the streak.
        since: Timestamp,
        /// What failed, without secrets.
        message: String,
    },
    /// The probe failed as often in a row as it takes.
    Unreachable {
        /// The first failure of the streak: the grace period starts here.
        since: Timestamp,
        /// What failed, without secrets.
        message: String,
    },
    /// The member is reachable and rejects our credentials, or the controller has none.
    Unauthorized {
        /// The member's answer, or why there are no credentials.
        message: String,
    },
}
