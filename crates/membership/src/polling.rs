//! Waits for a state that another process brings about.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Reads a state every `period` until it is `Ok`, and passes each change of what is pending to `report`. Returns what is
/// pending after `timeout`.
pub(crate) async fn poll<T, P: Clone + PartialEq, E>(
    timeout: Duration,
    period: Duration,
    mut read: impl AsyncFnMut() -> Result<Result<T, P>, E>,
    mut report: impl FnMut(P),
) -> Result<Result<T, P>, E> {
    let deadline = Instant::now() + timeout;
    let mut reported = None;
    loop {
        let pending = match read().await? {
            Ok(state) => return Ok(Ok(state)),
            Err(pending) => pending,
        };
        if reported.as_ref() != Some(&pending) {
            report(pending.clone());
            reported = Some(pending.clone());
        }
        if Instant::now() >= deadline {
            return Ok(Err(pending));
        }
        sleep(period).await;
    }
}
