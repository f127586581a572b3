//! How fast pods of a new template start (L15), while nothing but the rollout starts any.

use tokio::time::{Duration, Instant};

use super::observed::{FrsState, Observed};
use crate::set_kind::Speed;

/// What users changed before has no effect any more.
const SETTLED: Duration = Duration::from_secs(60);
/// Kubernetes dates conditions by the second, so that a pod may count as available by so much too early.
const ROUNDED: Duration = Duration::from_secs(1);

/// Whether more pods have started within the speed's time than may.
pub(crate) fn of_starts(observed: &Observed, set: &str) -> Option<String> {
    let since = Instant::now() - SETTLED;
    if observed.is_disturbed() {
        return None;
    }
    let speeds = observed
        .set_states(set)
        .since(since)
        .map(|state| match state {
            FrsState::Spec(Some(set)) => set.rollout.as_ref().and_then(|rollout| rollout.speed),
            _ => None,
        });
    let all = speeds.collect::<Option<Vec<_>>>()?;
    let speed = all.into_iter().reduce(|one, other| Speed {
        portion: one.portion.max(other.portion),
        min_delay: one.min_delay.min(other.min_delay),
    })?;
    let is_scaled = observed
        .parts(set)
        .any(|(_, part)| part.desired.since(since).count() > 1);
    let window = speed.min_delay.saturating_sub(ROUNDED);
    let started = observed
        .starts(set)
        .filter(|at| at.elapsed() < window)
        .count() as u64;
    (!is_scaled && started > speed.portion)
        .then(|| format!("{set}: {started} pods have started within {window:?}, {speed:?}"))
}
