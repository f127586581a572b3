//! Signals that end a process in order.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Ctrl-C and SIGTERM end everything in order.
pub(crate) async fn cancel_on_signal(cancel: CancellationToken) {
    let mut terminate = signal(SignalKind::terminate()).expect("a handler can be installed");
    let mut interrupt = signal(SignalKind::interrupt()).expect("a handler can be installed");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    cancel.cancel();
}
