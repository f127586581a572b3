//! Passes MemberClusters and Secrets of the host to the members' task. Holds the latest state of each object, and so never more
//! entries than there are objects.
//!
//! ```text
//! MemberClusters --MemberClusterHandler-.
//!                                       +--> Inbox --next--> the members' task
//! Secrets --------SecretHandler---------'
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::{mem, sync::Arc};

use controller_base::{error_text::format_error, list_progress::ListProgress};
use fedrs_api::MemberCluster;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use parking_lot::Mutex;
use reflector::{Error, EventHandler};
use tokio::sync::Notify;

use super::{secret::KubeconfigSecret, source_error::SecretsForbidden};

/// A change on the host.
pub(crate) enum HostInput {
    /// The MemberCluster of this name; `None` if it was deleted.
    Object(String, Option<Box<MemberCluster>>),
    /// The Secret of this name; `None` if it was deleted.
    Secret(String, Option<KubeconfigSecret>),
    /// All MemberClusters are listed.
    ObjectsListed,
    /// All Secrets are listed, or the controller may not read them.
    SecretsListed(Result<(), SecretsForbidden>),
}

/// The changes that the members' task has not taken yet.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    objects: Objects<MemberCluster>,
    objects_listed: bool,
    secrets: Objects<KubeconfigSecret>,
    secrets_listed: Option<Result<(), SecretsForbidden>>,
}

impl State {
    /// The next change; that a list is complete comes after its objects.
    fn next(&mut self) -> Option<HostInput> {
        if let Some((name, secret)) = self.secrets.changed.pop_first() {
            return Some(HostInput::Secret(name, secret));
        }
        if let Some(listed) = self.secrets_listed.take() {
            return Some(HostInput::SecretsListed(listed));
        }
        if let Some((name, object)) = self.objects.changed.pop_first() {
            return Some(HostInput::Object(name, object.map(Box::new)));
        }
        mem::take(&mut self.objects_listed).then_some(HostInput::ObjectsListed)
    }
}

/// The objects of one kind.
struct Objects<T> {
    /// Latest states that were not taken yet; `None` for deleted objects.
    changed: BTreeMap<String, Option<T>>,
    /// The names of the objects that exist.
    known: BTreeSet<String>,
    /// The names that the newest list, and the watch since, have shown.
    seen: BTreeSet<String>,
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self {
            changed: BTreeMap::new(),
            known: BTreeSet::new(),
            seen: BTreeSet::new(),
        }
    }
}

impl<T> Objects<T> {
    fn begin_list(&mut self) {
        self.seen.clear();
    }

    fn apply(&mut self, name: String, object: T) {
        self.known.insert(name.clone());
        self.seen.insert(name.clone());
        self.changed.insert(name, Some(object));
    }

    fn delete(&mut self, name: &str) {
        if self.known.remove(name) {
            self.changed.insert(name.to_owned(), None);
        }
    }

    /// The list is complete: objects that it did not contain no longer exist.
    fn end_list(&mut self) {
        let seen = mem::take(&mut self.seen);
        let gone = self.known.difference(&seen);
        self.changed.extend(gone.map(|name| (name.clone(), None)));
        self.known = seen;
    }
}

impl Inbox {
    /// The next change. For one task; nothing is lost if it stops waiting.
    pub(crate) async fn next(&self) -> HostInput {
        loop {
            if let Some(input) = self.state.lock().next() {
                return input;
            }
            self.arrived.notified().await;
        }
    }

    fn put(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.arrived.notify_one();
    }
}

/// Puts the MemberClusters of a federation into the inbox; those of others are not its members (F40).
pub(crate) struct MemberClusterHandler {
    inbox: Arc<Inbox>,
    federation: String,
    progress: ListProgress,
}

impl MemberClusterHandler {
    pub(crate) fn new(inbox: Arc<Inbox>, federation: &str, progress: ListProgress) -> Self {
        Self {
            inbox,
            federation: federation.to_owned(),
            progress,
        }
    }
}

impl EventHandler<MemberCluster> for MemberClusterHandler {
    fn on_init(&mut self) {
        self.inbox.put(|state| state.objects.begin_list());
    }

    fn on_apply(&mut self, object: MemberCluster) {
        let name = object.name_any();
        let is_ours = object.spec.federation == self.federation;
        self.inbox.put(|state| {
            if is_ours {
                // One that is being deleted counts as long as it exists.
                state.objects.apply(name, object);
            } else {
                // It may have been ours.
                state.objects.delete(&name);
            }
        });
    }

    fn on_delete(&mut self, object: MemberCluster) {
        let name = object.name_any();
        self.inbox.put(|state| state.objects.delete(&name));
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        self.inbox.put(|state| {
            state.objects.end_list();
            state.objects_listed = true;
        });
        self.progress.complete();
    }

    fn on_error(&mut self, error: &Error) {
        self.progress.failed(error);
    }

    fn on_activity(&mut self) {
        self.progress.answered();
    }
}

/// Puts the Secrets with kubeconfigs into the inbox.
pub(crate) struct SecretHandler {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) namespace: String,
    pub(crate) has_listed: bool,
}

impl EventHandler<Secret> for SecretHandler {
    fn on_init(&mut self) {
        self.inbox.put(|state| state.secrets.begin_list());
    }

    fn on_apply(&mut self, secret: Secret) {
        let (name, secret) = (secret.name_any(), secret.into());
        self.inbox.put(|state| state.secrets.apply(name, secret));
    }

    fn on_delete(&mut self, secret: Secret) {
        let name = secret.name_any();
        self.inbox.put(|state| state.secrets.delete(&name));
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        self.has_listed = true;
        self.inbox.put(|state| {
            state.secrets.end_list();
            state.secrets_listed = Some(Ok(()));
        });
    }

    /// A controller that may not read Secrets works with the directory alone. What was read before stays known.
    fn on_error(&mut self, error: &Error) {
        if error.code() == Some(403) && !self.has_listed {
            let forbidden = SecretsForbidden {
                namespace: self.namespace.clone(),
                response: format_error(error),
            };
            self.inbox
                .put(|state| state.secrets_listed = Some(Err(forbidden)));
        }
    }
}

#[cfg(test)]
mod tests {
    use controller_base::list_progress::ListState;
    use fedrs_api::MemberClusterSpec;
    use tokio::sync::watch;

    use super::*;
    use crate::host_lists::list_progress;

    #[test]
    fn what_a_list_does_not_show_any_more_is_gone() {
        let mut objects = Objects::default();
        let listed = |objects: &mut Objects<()>, names: &[&str]| {
            objects.begin_list();
            for name in names {
                objects.apply((*name).to_owned(), ());
            }
            objects.changed.clear();
            objects.end_list();
            mem::take(&mut objects.changed)
                .into_keys()
                .collect::<Vec<_>>()
        };
        assert_eq!(listed(&mut objects, &["a", "b"]), [""; 0]);
        assert_eq!(listed(&mut objects, &["b"]), ["a"]);
        objects.delete("b");
        assert_eq!(listed(&mut objects, &[]), [""; 0]);
    }

    #[test]
    fn members_of_another_federation_are_ignored() {
        let inbox = Arc::new(Inbox::default());
        let (listed, _) = watch::channel(ListState::default());
        let progress = list_progress("MemberClusters", listed);
        let mut handler = MemberClusterHandler::new(Arc::clone(&inbox), "blue", progress);
        let received = || {
            let mut state = inbox.state.lock();
            let inputs = std::iter::from_fn(|| state.next()).map(|input| match input {
                HostInput::Object(name, object) => (name, object.is_some()),
                _ => panic!("an object"),
            });
            inputs.collect::<Vec<_>>()
        };
        let member = |name: &str, federation: &str| {
            let spec = MemberClusterSpec {
                federation: federation.to_owned(),
                ..MemberClusterSpec::default()
            };
            MemberCluster::new(name, spec)
        };
        for (name, federation) in [("a", ""), ("b", "blue"), ("c", "green")] {
            handler.on_apply(member(name, federation));
        }
        assert_eq!(received(), [("b".to_owned(), true)]);
        handler.on_delete(member("a", ""));
        assert_eq!(received(), []);
        handler.on_apply(member("b", "green"));
        assert_eq!(received(), [("b".to_owned(), false)], "it was ours");
        handler.on_apply(member("b", "blue"));
        assert_eq!(received(), [("b".to_owned(), true)]);
    }

    #[test]
    fn the_end_of_a_list_comes_after_its_objects() {
        let mut state = State {
            objects_listed: true,
            secrets_listed: Some(Ok(())),
            ..State::default()
        };
        state.objects.changed.insert("a".to_owned(), None);
        state.secrets.changed.insert("s".to_owned(), None);
        let words = std::iter::from_fn(|| state.next()).map(|input| match input {
            HostInput::Object(name, _) | HostInput::Secret(name, _) => name,
            HostInput::ObjectsListed => "objects".to_owned(),
            HostInput::SecretsListed(_) => "secrets".to_owned(),
        });
        assert_eq!(words.collect::<Vec<_>>(), ["s", "secrets", "a", "objects"]);
    }
}
