//! Waits until a rollout has ended.

use std::time::Duration;

use super::{error::Error, kind::RolloutKind, progress::RolloutProgress, target::Target};
use crate::polling::poll;

/// How often the status is polled.
const POLL_PERIOD: Duration = Duration::from_secs(1);
/// The most polls in a row that may fail: the host's API server may be restarted meanwhile.
const MAX_FAILURES: u32 = 30;
/// Longer than anybody waits.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// How far the rollout is now.
pub async fn progress<K: RolloutKind>(
    target: Target<'_, K>,
) -> Result<RolloutProgress<K::Part>, Error> {
    Ok(RolloutProgress::of(&target.read().await?))
}

/// Waits until the rollout has ended, well or not, and passes each change to `report`. Fails after `timeout`, if there is one.
pub async fn wait<K: RolloutKind>(
    target: Target<'_, K>,
    timeout: Option<Duration>,
    report: impl FnMut(RolloutProgress<K::Part>),
) -> Result<RolloutProgress<K::Part>, Error> {
    let limit = timeout.unwrap_or(FOREVER);
    let mut last = None;
    let mut failures = 0;
    let read = async || {
        let read = match (progress(target).await, &last) {
            (Err(Error::Request(error)), Some(known))
                if error.is_temporary() && failures < MAX_FAILURES =>
            {
                failures += 1;
                return Ok(Err(RolloutProgress::clone(known)));
            }
            (read, _) => read?,
        };
        failures = 0;
        last = Some(read.clone());
        Ok(if read.has_ended() {
            Ok(read)
        } else {
            Err(read)
        })
    };
    let ended: Result<_, Error> = poll(limit, POLL_PERIOD, read, report).await;
    ended?.map_err(|pending| Error::TimedOut {
        object: target.to_string(),
        timeout: limit,
        pending: pending.state.to_string(),
    })
}
