//! The members of a process: a directory of kubeconfigs, or the members that have joined.
//!
//! ```text
//! kubeconfig added, changed --> client --> the member is set
//! kubeconfig removed ---------> the member ends
//! ```

use std::{collections::BTreeMap, path::PathBuf};

use federation_controller::members::{
    MemberEvent, clients, directory,
    joined::{JoinedMembers, watch_members},
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

/// Where members are from.
pub(crate) enum MemberSource {
    /// A directory with a kubeconfig for each.
    Directory(PathBuf),
    /// Those that have joined this host.
    Joined(Client, JoinedMembers),
}

/// What has members.
pub(crate) trait Members {
    /// There is such a member.
    fn add(&mut self, name: &str);
    /// It is reached by this client from now on.
    fn set(&mut self, name: &str, client: &Client);
    /// Its kubeconfig was removed.
    fn end(&mut self, name: &str);
    /// All members have been added that had a kubeconfig at the start.
    fn complete(&mut self);
}

impl MemberSource {
    /// The directory, or without one the members that have joined `host`.
    pub(crate) fn of(directory: Option<PathBuf>, host: &Client, joined: JoinedMembers) -> Self {
        match directory {
            Some(directory) => Self::Directory(directory),
            None => Self::Joined(host.clone(), joined),
        }
    }

    async fn watch(self, events: mpsc::Sender<MemberEvent>, cancel: CancellationToken) {
        match self {
            Self::Directory(directory) => directory::watch(directory, events, cancel).await,
            Self::Joined(host, members) => watch_members(host, members, events, cancel).await,
        }
    }
}

/// Keeps `members` those of `source`, until `cancel`.
pub(crate) async fn follow(
    source: MemberSource,
    members: &mut impl Members,
    cancel: CancellationToken,
) {
    let (events, mut changes) = mpsc::channel(BUFFERED);
    let (clients, mut connected) = mpsc::channel::<Connected>(BUFFERED);
    let watching = tokio::spawn(source.watch(events, cancel));
    let mut connecting = Connecting::new();
    loop {
        tokio::select! {
            // Ends with the process.
            event = changes.recv() => match event {
                Some(event) => apply(event, members, &mut connecting, &clients),
                None => break,
            },
            Some((name, client)) = connected.recv() => match client {
                Ok(client) if connecting.contains_key(&name) => {
                    members.set(&name, &client);
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(cluster = name, %error, "failed to make a client"),
            },
        }
    }
    drop(connecting);
    let _ = watching.await;
}

fn apply(
    event: MemberEvent,
    members: &mut impl Members,
    connecting: &mut Connecting,
    clients: &mpsc::Sender<Connected>,
) {
    match event {
        MemberEvent::Kubeconfig {
            name,
            place,
            kubeconfig,
        } => {
            members.add(&name);
            match kubeconfig {
                Ok(kubeconfig) => {
                    let task = connect(name.clone(), place, kubeconfig, clients.clone());
                    connecting.insert(name, task);
                }
                Err(error) => {
                    tracing::warn!(cluster = name, place, %error, "no kubeconfig, or an invalid one: one that is in use stays so");
                }
            }
        }
        MemberEvent::Gone { name } => {
            tracing::info!(cluster = name, "kubeconfig removed");
            connecting.remove(&name);
            members.end(&name);
        }
        MemberEvent::Complete => members.complete(),
        // The kubeconfigs stay in use: this is more often a mistake than the loss of everything.
        MemberEvent::Emptied => {}
    }
}

/// Makes the clients of a member from its kubeconfig, until it is dropped.
fn connect(
    name: String,
    place: String,
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
            () = clients::keep_connected(name.clone(), place, kubeconfig, sender) => {}
            () = forward => {}
        }
    }))
}
