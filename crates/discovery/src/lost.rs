//! The end of what is kept of clusters that are lost.

use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;

/// How often it is looked whether something ends.
const PERIOD: Duration = Duration::from_secs(5);
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// Keeps endpoints in clusters that are lost, as the last resort, for this time after the last change that was seen there, until
/// `cancel`. Without this, they are kept for ever (D2).
pub async fn end_lost(catalog: &Catalog, keep: Duration, cancel: &CancellationToken) {
    let end = async {
        loop {
            // A time before all times ends nothing.
            let before = Timestamp::now().checked_sub(keep).unwrap_or(Timestamp::MIN);
            catalog.update(|state| state.end_lost(before));
            tokio::time::sleep(keep.clamp(SHORTEST_PERIOD, PERIOD)).await;
        }
    };
    cancel.run_until_cancelled(end).await;
}
