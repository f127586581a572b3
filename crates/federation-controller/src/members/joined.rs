//! Follows the members that have joined, and the Secrets with which `fedrs discovery` reads them, for a process that is not the
//! controller of a federation: it reads each Secret by its name, and needs permissions for no others.
//!
//! ```text
//! MemberClusters --Inbox--> which Secret each names --a watch each--> states of the Secrets --> MemberEvents
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use controller_base::{
    error_text::format_error,
    list_progress::{ListProgress, ListState},
};
use kube::Client;
use reflector::{Collection, Error, Reflector};
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    MemberEvent,
    inbox::{HostInput, Inbox, MemberClusterHandler, SecretHandler},
    kubeconfig::{Kubeconfig, KubeconfigError},
    secret, status_writer,
};
use crate::{config::SecretKubeconfigs, messages};

/// States of Secrets that may be buffered; who sends them waits while the buffer is full.
const STATES: usize = 64;

/// Which members are followed.
#[derive(Clone, Debug)]
pub struct JoinedMembers {
    /// The MemberClusters with this federation.
    pub federation: String,
    /// The namespace of their Secrets.
    pub namespace: String,
}

/// A Secret in one state.
struct State {
    member: String,
    secret: String,
    kubeconfig: Result<Kubeconfig, KubeconfigError>,
}

/// A member.
#[derive(Default)]
struct Member {
    /// The Secret that it names, and what watches it.
    secret: Option<(String, AbortOnDropHandle<()>)>,
    /// Whether a kubeconfig is in use.
    is_set: bool,
}

struct Following {
    host: Client,
    namespace: String,
    events: mpsc::Sender<MemberEvent>,
    states: mpsc::Sender<State>,
    members: BTreeMap<String, Member>,
    /// The members whose Secrets have not been read yet.
    unread: BTreeSet<String>,
    /// Whether all MemberClusters are listed.
    is_listed: bool,
    is_complete: bool,
}

/// Sends the kubeconfigs of the members of `host`, until `cancel`. One that is withdrawn is reported as gone, like the file of a
/// directory, and then why there is none. Complete is sent once each Secret has been read, or could not be.
pub async fn watch_members(
    host: Client,
    joined: JoinedMembers,
    events: mpsc::Sender<MemberEvent>,
    cancel: CancellationToken,
) {
    let inbox = Arc::new(Inbox::default());
    let (listed, _) = watch::channel(ListState::default());
    let progress = ListProgress::new("MemberClusters", failed_to_list, listed);
    let handler = MemberClusterHandler::new(Arc::clone(&inbox), &joined.federation, progress);
    let reflector = Reflector::new(host.clone(), Collection::all(status_writer::PATH));
    let (states, reported) = mpsc::channel(STATES);
    let following = Following {
        host,
        namespace: joined.namespace,
        events,
        states,
        members: BTreeMap::new(),
        unread: BTreeSet::new(),
        is_listed: false,
        is_complete: false,
    };
    let all = async { tokio::join!(reflector.run(handler), following.run(&inbox, reported)) };
    cancel.run_until_cancelled(Box::pin(all)).await;
}

fn failed_to_list(kind: &str, error: &Error) -> String {
    messages::failed_to_list(kind, &format_error(error))
}

impl Following {
    async fn run(mut self, inbox: &Inbox, mut states: mpsc::Receiver<State>) {
        loop {
            tokio::select! {
                input = inbox.next() => self.input(input).await,
                Some(state) = states.recv() => self.state(state).await,
            }
            if self.is_listed && self.unread.is_empty() && !self.is_complete {
                self.is_complete = true;
                self.send(MemberEvent::Complete).await;
            }
        }
    }

    async fn input(&mut self, input: HostInput) {
        match input {
            HostInput::Object(name, Some(object)) => {
                let secret = object.spec.discovery_secret_ref;
                self.follow(name, secret.map(|secret| secret.name)).await;
            }
            HostInput::Object(name, None) => {
                self.unread.remove(&name);
                self.members.remove(&name);
                self.send(MemberEvent::Gone { name }).await;
            }
            HostInput::ObjectsListed => self.is_listed = true,
            // Each Secret has an inbox of its own.
            HostInput::Secret(..) | HostInput::SecretsListed(_) => {}
        }
    }

    /// Follows the `secret` that the member names from now on.
    async fn follow(&mut self, name: String, secret: Option<String>) {
        let is_new = !self.members.contains_key(&name);
        let member = self.members.entry(name.clone()).or_default();
        let known = member.secret.as_ref().map(|(secret, _)| secret);
        if known == secret.as_ref() && !is_new {
            return;
        }
        let Some(secret) = secret else {
            member.secret = None;
            self.unread.remove(&name);
            let place = format!("MemberCluster {name}");
            return self
                .withdraw(name, place, KubeconfigError::NoReference)
                .await;
        };
        let watching = watch_secret(
            self.host.clone(),
            self.namespace.clone(),
            (name.clone(), secret.clone()),
            self.states.clone(),
        );
        let task = AbortOnDropHandle::new(tokio::spawn(watching));
        member.secret = Some((secret, task));
        self.unread.insert(name);
    }

    async fn state(&mut self, state: State) {
        let State {
            member: name,
            secret,
            kubeconfig,
        } = state;
        let Some(member) = self.members.get_mut(&name) else {
            return;
        };
        // It may name another one by now.
        if member.secret.as_ref().map(|(secret, _)| secret) != Some(&secret) {
            return;
        }
        self.unread.remove(&name);
        let place = format!("Secret {}/{secret}", self.namespace);
        match kubeconfig {
            Err(error @ KubeconfigError::NoSecret) => self.withdraw(name, place, error).await,
            kubeconfig => {
                member.is_set |= kubeconfig.is_ok();
                let event = MemberEvent::Kubeconfig {
                    name,
                    place,
                    kubeconfig,
                };
                self.send(event).await;
            }
        }
    }

    /// The member has no kubeconfig any more.
    async fn withdraw(&mut self, name: String, place: String, why: KubeconfigError) {
        let member = self.members.get_mut(&name);
        if member.is_some_and(|member| std::mem::take(&mut member.is_set)) {
            self.send(MemberEvent::Gone { name: name.clone() }).await;
        }
        let event = MemberEvent::Kubeconfig {
            name,
            place,
            kubeconfig: Err(why),
        };
        self.send(event).await;
    }

    async fn send(&self, event: MemberEvent) {
        // If the receiver is gone, the process ends.
        let _ = self.events.send(event).await;
    }
}

/// Sends the states of the Secret `secret` of `member`. Never ends.
async fn watch_secret(
    host: Client,
    namespace: String,
    (member, secret): (String, String),
    states: mpsc::Sender<State>,
) {
    let inbox = Arc::new(Inbox::default());
    let handler = SecretHandler {
        inbox: Arc::clone(&inbox),
        namespace: namespace.clone(),
        has_listed: false,
    };
    let collection = secret::collection(&namespace, Some(&secret));
    let read = async {
        let (mut exists, mut failure) = (false, None);
        loop {
            let kubeconfig = match inbox.next().await {
                HostInput::Secret(_, Some(secret)) => {
                    exists = true;
                    secret.kubeconfig(SecretKubeconfigs::default())
                }
                HostInput::Secret(_, None) => {
                    exists = false;
                    Err(KubeconfigError::NoSecret)
                }
                HostInput::SecretsListed(Ok(())) if !exists => Err(KubeconfigError::NoSecret),
                HostInput::SecretsListed(Err(forbidden)) => {
                    Err(KubeconfigError::SecretForbidden(forbidden.response))
                }
                HostInput::SecretsListed(Ok(()))
                | HostInput::Object(..)
                | HostInput::ObjectsListed => continue,
            };
            // A failure that lasts is reported once.
            let error = kubeconfig.as_ref().err().cloned();
            let is_known = error.is_some() && error == failure;
            failure = error;
            if is_known {
                continue;
            }
            let state = State {
                member: member.clone(),
                secret: secret.clone(),
                kubeconfig,
            };
            if states.send(state).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(Reflector::new(host, collection).run(handler), read);
}
