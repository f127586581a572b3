//! Clients of a member's kubeconfig, for a process that is not the controller of a federation.

use std::sync::Arc;

use controller_base::clock::Clock;
use kube::Client;
use tokio::sync::mpsc;

use super::{
    connection::{Connection, Report},
    kubeconfig::{Kubeconfig, KubeconfigError, OverNetwork},
    sources::{Origin, Source},
};

/// Sends a client of the `kubeconfig` at `place` of the member `name`, or why there is none: again when a file that it names
/// changes, before the credentials of a plugin expire, and after a failure. Ends when nobody receives any more.
pub async fn keep_connected(
    name: String,
    place: String,
    kubeconfig: Kubeconfig,
    clients: mpsc::Sender<Result<Client, KubeconfigError>>,
) {
    let source = Source {
        origin: Origin::File,
        place,
        kubeconfig: Ok(kubeconfig.clone()),
        secret: None,
    };
    let connection = Connection {
        name,
        source: Arc::new(source),
        kubeconfig,
        connect: Arc::new(OverNetwork),
        clock: Clock::system(),
    };
    let (reports, mut reported) = mpsc::channel::<Report>(1);
    tokio::select! {
        () = connection.run(reports) => {}
        () = async {
            while let Some(report) = reported.recv().await {
                let made = report.made.map(|connected| connected.client);
                if clients.send(made).await.is_err() {
                    return;
                }
            }
        } => {}
    }
}
