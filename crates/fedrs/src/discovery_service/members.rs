//! The members of the service: a directory of kubeconfigs.
//!
//! ```text
//! kubeconfig added, changed --> client --> its pods and nodes are watched
//! kubeconfig removed ---------> its endpoints stay, as those of a member that can't be reached
//! ```

use std::{collections::BTreeMap, path::PathBuf};

use discovery::Discovery;
use federation_controller::members::{
    MemberEvent, directory, file_client,
    kubeconfig::{Kubeconfig, KubeconfigError},
};
use kube::Client;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// Events and clients that may be buffered; who sends them waits while the buffer is full.
const BUFFERED: usize = 64;
/// Clients of one member that may be buffered: the next one is made when this one is in use.
const CLIENTS: usize = 1;

/// A client of a member, or why there is none.
type Connected = (String, Result<Client, KubeconfigError>);

/// The tasks that make the clients of members, by name.
type Connecting = BTreeMap<String, AbortOnDropHandle<()>>;

/// Keeps the members of `discovery` those in `directory`, until `cancel`.
pub(super) async fn follow(
    directory: PathBuf,
    mut discovery: Discovery,
    cancel: CancellationToken,
) {
    let (events, mut changes) = mpsc::channel(BUFFERED);
    let (clients, mut connected) = mpsc::channel::<Connected>(BUFFERED);
    let watching = tokio::spawn(directory::watch(directory, events, cancel));
    let mut connecting = Connecting::new();
    loop {
        tokio::select! {
            // Ends with the process.
            event = changes.recv() => match event {
                Some(event) => apply(event, &mut discovery, &mut connecting, &clients),
                None => break,
            },
            Some((name, client)) = connected.recv() => match client {
                Ok(client) if connecting.contains_key(&name) => {
                    discovery.set_member(&name, &client);
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(cluster = name, %error, "failed to make a client"),
            },
        }
    }
    drop(connecting);
    discovery.stop().await;
    let _ = watching.await;
}

fn apply(
    event: MemberEvent,
    discovery: &mut Discovery,
    connecting: &mut Connecting,
    clients: &mpsc::Sender<Connected>,
) {
    match event {
        MemberEvent::File {
            name,
            file,
            kubeconfig,
        } => {
            discovery.add_member(&name);
            match kubeconfig {
                Ok(kubeconfig) => {
                    let task = connect(name.clone(), file, kubeconfig, clients.clone());
                    connecting.insert(name, task);
                }
                Err(error) => {
                    tracing::warn!(cluster = name, %error, "invalid kubeconfig: an earlier one stays in use");
                }
            }
        }
        MemberEvent::Gone { name } => {
            tracing::info!(
                cluster = name,
                "kubeconfig removed: its endpoints stay, and are stale"
            );
            connecting.remove(&name);
            discovery.end_member(&name);
        }
        MemberEvent::Complete => discovery.members_known(),
        // The kubeconfigs stay in use: this is more often a mistake than the loss of everything.
        MemberEvent::Emptied => {}
    }
}

/// Makes the clients of a member from its kubeconfig, until it is dropped.
fn connect(
    name: String,
    file: PathBuf,
    kubeconfig: Kubeconfig,
    clients: mpsc::Sender<Connected>,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let (sender, mut made) = mpsc::channel(CLIENTS);
        let forward = async {
            while let Some(client) = made.recv().await {
                if clients.send((name.clone(), client)).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = file_client::keep_connected(name.clone(), &file, kubeconfig, sender) => {}
            () = forward => {}
        }
    }))
}
