//! MemberClusters and Secrets of the host, on their way to the members' task: the latest state of each object, so that the
//! inbox never holds more than there are objects.
//!
//! ```text
//! MemberClusters --MemberClusterHandler-.
//!                             +--> Inbox --next--> the members' task
//! Secrets --------SecretHandler--'
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::{mem, sync::Arc};

use fedrs_api::{MemberCluster, MemberClusterSpec};
use kube::ResourceExt;
use parking_lot::Mutex;
use reflector::{Error, EventHandler};
use tokio::sync::{Notify, watch};

use super::secret::{KubeconfigSecret, SecretObject};
use crate::readiness::{ListProgress, ListState};

/// A MemberCluster as far as it matters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MemberObject {
    pub(crate) uid: String,
    pub(crate) generation: Option<i64>,
    pub(crate) spec: MemberClusterSpec,
}

/// One thing that the host says.
pub(crate) enum HostInput {
    /// What the MemberCluster of this name asks for; none if it is gone.
    Object(String, Option<MemberObject>),
    /// The Secret of this name; none if it is gone.
    Secret(String, Option<KubeconfigSecret>),
    /// All MemberClusters are listed.
    ObjectsListed,
    /// All Secrets are listed.
    SecretsListed,
    /// Secrets may not be read.
    SecretsUnreadable(String),
}

/// What has arrived and was not yet taken.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    objects: BTreeMap<String, Option<MemberObject>>,
    secrets: BTreeMap<String, Option<KubeconfigSecret>>,
    objects_listed: bool,
    secrets_listed: Option<Result<(), String>>,
}

impl Waiting {
    /// The next input; that a list is complete comes after its objects.
    fn next(&mut self) -> Option<HostInput> {
        if let Some((name, secret)) = self.secrets.pop_first() {
            return Some(HostInput::Secret(name, secret));
        }
        if let Some(listed) = self.secrets_listed.take() {
            return Some(match listed {
                Ok(()) => HostInput::SecretsListed,
                Err(message) => HostInput::SecretsUnreadable(message),
            });
        }
        if let Some((name, object)) = self.objects.pop_first() {
            return Some(HostInput::Object(name, object));
        }
        mem::take(&mut self.objects_listed).then_some(HostInput::ObjectsListed)
    }
}

impl Inbox {
    /// The next. For one task; nothing is lost if it stops waiting.
    pub(crate) async fn next(&self) -> HostInput {
        loop {
            if let Some(input) = self.waiting.lock().next() {
                return input;
            }
            self.arrived.notified().await;
        }
    }

    fn put(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.waiting.lock());
        self.arrived.notify_one();
    }
}

/// Names that a list shows, so that those which it doesn't show any more are noticed.
#[derive(Default)]
struct Names {
    known: BTreeSet<String>,
    seen: BTreeSet<String>,
}

impl Names {
    fn saw(&mut self, name: &str) {
        self.known.insert(name.to_owned());
        self.seen.insert(name.to_owned());
    }

    /// The list is complete: those that it didn't show.
    fn swept(&mut self) -> BTreeSet<String> {
        let seen = mem::take(&mut self.seen);
        let gone = self.known.difference(&seen).cloned().collect();
        self.known = seen;
        gone
    }
}

/// MemberClusters of a federation, for the members' task: others are none of ours (F40).
pub(crate) struct MemberClusterHandler {
    inbox: Arc<Inbox>,
    federation: String,
    progress: ListProgress,
    names: Names,
}

impl MemberClusterHandler {
    pub(crate) fn new(
        inbox: Arc<Inbox>,
        federation: &str,
        listed: watch::Sender<ListState>,
    ) -> Self {
        Self {
            inbox,
            federation: federation.to_owned(),
            progress: ListProgress::new("MemberClusters", listed),
            names: Names::default(),
        }
    }

    fn put(&self, name: String, object: Option<MemberObject>) {
        self.inbox.put(|waiting| {
            waiting.objects.insert(name, object);
        });
    }
}

impl EventHandler<MemberCluster> for MemberClusterHandler {
    fn on_init(&mut self) {
        self.names.seen.clear();
    }

    fn on_apply(&mut self, object: MemberCluster) {
        let name = object.name_any();
        if object.spec.federation != self.federation {
            // It may have been ours.
            if self.names.known.remove(&name) {
                self.put(name, None);
            }
            return;
        }
        self.names.saw(&name);
        let object = MemberObject {
            uid: object.metadata.uid.unwrap_or_default(),
            generation: object.metadata.generation,
            spec: object.spec,
        };
        // One that is on its way out counts as long as it is there.
        self.put(name, Some(object));
    }

    fn on_delete(&mut self, object: MemberCluster) {
        if self.names.known.remove(&object.name_any()) {
            self.put(object.name_any(), None);
        }
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        for name in self.names.swept() {
            self.put(name, None);
        }
        self.inbox.put(|waiting| waiting.objects_listed = true);
        self.progress.complete();
    }

    fn on_error(&mut self, error: &Error) {
        self.progress.failed(error);
    }
}

/// Secrets with kubeconfigs, for the members' task.
pub(crate) struct SecretHandler {
    inbox: Arc<Inbox>,
    namespace: String,
    names: Names,
    has_listed: bool,
}

impl SecretHandler {
    pub(crate) fn new(inbox: Arc<Inbox>, namespace: &str) -> Self {
        Self {
            inbox,
            namespace: namespace.to_owned(),
            names: Names::default(),
            has_listed: false,
        }
    }

    fn put(&self, name: String, secret: Option<KubeconfigSecret>) {
        self.inbox.put(|waiting| {
            waiting.secrets.insert(name, secret);
        });
    }
}

impl EventHandler<SecretObject> for SecretHandler {
    fn on_init(&mut self) {
        self.names.seen.clear();
    }

    fn on_apply(&mut self, secret: SecretObject) {
        let name = secret.name().to_owned();
        self.names.saw(&name);
        self.put(name, Some(secret.into_kubeconfig()));
    }

    fn on_delete(&mut self, secret: SecretObject) {
        self.names.known.remove(secret.name());
        self.put(secret.name().to_owned(), None);
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        for name in self.names.swept() {
            self.put(name, None);
        }
        self.has_listed = true;
        self.inbox
            .put(|waiting| waiting.secrets_listed = Some(Ok(())));
    }

    /// A controller that may not read Secrets works with the folder alone; what was read before is still known.
    fn on_error(&mut self, error: &Error) {
        if error.code() != Some(403) || self.has_listed {
            return;
        }
        let message = format!(
            "the controller may not read Secrets of namespace {}: {}",
            self.namespace,
            crate::error_text::format_error(error)
        );
        self.inbox
            .put(|waiting| waiting.secrets_listed = Some(Err(message)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_does_not_show_any_more_is_gone() {
        let mut names = Names::default();
        names.saw("a");
        names.saw("b");
        assert_eq!(names.swept(), BTreeSet::new());
        names.saw("b");
        assert_eq!(names.swept(), BTreeSet::from(["a".to_owned()]));
        names.known.remove("b");
        assert_eq!(names.swept(), BTreeSet::new());
    }

    #[test]
    fn members_of_another_federation_are_none() {
        let inbox = Arc::new(Inbox::default());
        let (listed, _) = watch::channel(ListState::default());
        let mut sink = MemberClusterHandler::new(Arc::clone(&inbox), "blue", listed);
        let received = || {
            let mut waiting = inbox.waiting.lock();
            let inputs = std::iter::from_fn(|| waiting.next()).map(|input| match input {
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
            sink.on_apply(member(name, federation));
        }
        assert_eq!(received(), [("b".to_owned(), true)]);
        sink.on_delete(member("a", ""));
        assert_eq!(received(), []);
        sink.on_apply(member("b", "green"));
        assert_eq!(received(), [("b".to_owned(), false)], "it was ours");
        sink.on_apply(member("b", "blue"));
        assert_eq!(received(), [("b".to_owned(), true)]);
    }

    #[test]
    fn the_end_of_a_list_comes_after_its_objects() {
        let mut waiting = Waiting {
            objects_listed: true,
            secrets_listed: Some(Ok(())),
            ..Waiting::default()
        };
        waiting.objects.insert("a".to_owned(), None);
        waiting.secrets.insert("s".to_owned(), None);
        let words = std::iter::from_fn(|| waiting.next()).map(|input| match input {
            HostInput::Object(name, _) | HostInput::Secret(name, _) => name,
            HostInput::ObjectsListed => "objects".to_owned(),
            HostInput::SecretsListed => "secrets".to_owned(),
            HostInput::SecretsUnreadable(message) => message,
        });
        assert_eq!(words.collect::<Vec<_>>(), ["s", "secrets", "a", "objects"]);
    }
}
