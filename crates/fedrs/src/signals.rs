//! Signals that stop the process gracefully.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels `cancel` on Ctrl-C or SIGTERM.
pub(crate) async fn cancel_on_signal(cancel: CancellationToken) {
    let mut terminate =
        signal(SignalKind::terminate()).expect("the process can install a signal handler");
    let mut interrupt =
        signal(SignalKind::interrupt()).expect("the process can install a signal handler");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    cancel.cancel();
}
