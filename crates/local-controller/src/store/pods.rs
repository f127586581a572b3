//! The pods that sets control, and those that they could adopt.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use controller_base::listing::Listing;
use reflector::ResourceVersion;
use replica_set_controller::{ObservedPod, PodController};

/// The uid of a pod.
type Uid = Arc<str>;

#[derive(Debug, Default)]
pub(super) struct Pods {
    known: HashMap<Uid, Arc<ObservedPod>>,
    /// Those of each set, by its uid.
    by_controller: HashMap<String, BTreeSet<Uid>>,
    /// Those without a controller, by namespace.
    orphans: HashMap<String, BTreeSet<Uid>>,
    /// Pods that are gone, while the watch may still show earlier states of them.
    gone: HashSet<Uid>,
    /// Requests under way.
    requests: usize,
    /// Pods whose end the watch has shown while requests are under way, whose responses must not bring them back.
    ended: HashSet<Uid>,
    /// Requests for pods whose effect nothing has shown yet.
    sent: HashMap<Uid, Sent>,
    pub(super) listing: Listing,
}

/// A request for a pod whose effect nothing has shown yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A removal that was accepted: the watch will show that the pod is being removed.
    Removal,
    /// A removal by force that was accepted: the watch will show that the pod is gone, or why it is not.
    ForcedRemoval,
    /// A removal whose answer was lost: a read has to show what became of it.
    UnansweredRemoval,
    /// Another change whose answer was lost: a read has to show what the pod is.
    UnansweredChange,
}

impl Sent {
    /// Whether the pod counts as being removed.
    pub(crate) fn is_removal(self) -> bool {
        self != Self::UnansweredChange
    }

    /// Whether a read has to show what became of it.
    pub(crate) fn is_unanswered(self) -> bool {
        matches!(self, Self::UnansweredRemoval | Self::UnansweredChange)
    }
}

/// A pod before and after a change.
pub(super) type Change = [Option<Arc<ObservedPod>>; 2];

impl Pods {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn has(&self, uid: &str) -> bool {
        self.known.contains_key(uid)
    }

    pub(super) fn get(&self, uid: &str) -> Option<&ObservedPod> {
        self.known.get(uid).map(|pod| &**pod)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ObservedPod>> {
        self.known.values()
    }

    /// The pods that the set with this uid controls, and those of the namespace without a controller.
    pub(super) fn of(&self, set: &str, namespace: &str) -> BTreeMap<String, Arc<ObservedPod>> {
        let sets = [self.by_controller.get(set), self.orphans.get(namespace)];
        let uids = sets.into_iter().flatten().flatten();
        let pods = uids.filter_map(|uid| self.known.get_key_value(uid));
        pods.map(|(uid, pod)| (uid.to_string(), Arc::clone(pod)))
            .collect()
    }

    /// The requests for these pods whose effect nothing has shown yet.
    pub(super) fn sent<'a>(
        &self,
        pods: impl Iterator<Item = &'a String>,
    ) -> BTreeMap<String, Sent> {
        if self.sent.is_empty() {
            return BTreeMap::new();
        }
        pods.filter_map(|uid| Some((uid.clone(), *self.sent.get(&**uid)?)))
            .collect()
    }

    /// The sets, by uid, that have pods on the node.
    pub(super) fn controllers_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a str> {
        let pods = self.known.values();
        let pods = pods.filter(move |pod| pod.node() == Some(node));
        pods.filter_map(|pod| match pod.controller() {
            PodController::Set(uid) => Some(uid),
            PodController::Nobody | PodController::Other => None,
        })
    }

    pub(super) fn apply(&mut self, mut pod: ObservedPod) -> Change {
        self.listing.show(pod.uid());
        if self.gone.contains(pod.uid()) {
            return [None, None];
        }
        let known = self.known.get(pod.uid());
        let is_news = known.is_none_or(|known| {
            ResourceVersion::parse(known.resource_version())
                .is_older_than(ResourceVersion::parse(pod.resource_version()))
        });
        if !is_news {
            return [None, None];
        }
        let sent = self.sent.get(pod.uid());
        if pod.is_terminating() && sent.is_some_and(|sent| sent.is_removal()) {
            self.sent.remove(pod.uid());
        }
        let before = self.forget(pod.uid());
        if pod.controller() == PodController::Other {
            return [before, None];
        }
        let uid: Uid = pod.uid().into();
        let siblings = self.index(&pod);
        let sibling = siblings.first().cloned();
        siblings.insert(Arc::clone(&uid));
        if let Some(sibling) = sibling.and_then(|uid| self.known.get(&uid)) {
            pod.share_labels(sibling);
        }
        let pod = Arc::new(pod);
        self.known.insert(uid, Arc::clone(&pod));
        [before, Some(pod)]
    }

    /// The pod is gone: a response or a read says so, before the watch does.
    pub(super) fn remove(&mut self, uid: &str) -> Change {
        self.sent.remove(uid);
        let before = self.forget(uid);
        if before.is_some() {
            self.gone.insert(uid.into());
        }
        [before, None]
    }

    /// The watch says that the pod is gone, and shows no more of it.
    pub(super) fn end(&mut self, uid: &str) -> Change {
        self.gone.remove(uid);
        self.sent.remove(uid);
        if self.requests > 0 {
            self.ended.insert(uid.into());
        }
        [self.forget(uid), None]
    }

    /// A read that began after the request shows the pod: its effect is what it says.
    pub(super) fn read(&mut self, pod: ObservedPod) -> Change {
        self.sent.remove(pod.uid());
        self.apply_response(pod)
    }

    /// A response shows the pod. It may be older than what the watch shows.
    pub(super) fn apply_response(&mut self, pod: ObservedPod) -> Change {
        if self.ended.contains(pod.uid()) {
            return [None, None];
        }
        self.apply(pod)
    }

    /// Requests are sent, whose responses come later.
    pub(super) fn begin_requests(&mut self) {
        self.requests += 1;
    }

    /// They are answered.
    pub(super) fn end_requests(&mut self) {
        self.requests -= 1;
        if self.requests == 0 {
            self.ended.clear();
        }
    }

    pub(super) fn requested(&mut self, uid: &str, sent: Sent) {
        let Some(pod) = self.known.get(uid) else {
            return;
        };
        if sent != Sent::Removal || !pod.is_terminating() {
            self.sent.insert(uid.into(), sent);
        }
    }

    pub(super) fn doubt(&mut self, uid: &str) {
        if self.known.contains_key(uid) {
            self.sent
                .entry(uid.into())
                .or_insert(Sent::UnansweredChange);
        }
    }

    /// Those that a complete list, as of this version, did not show.
    pub(super) fn unlisted(&mut self, as_of: &str) -> Vec<String> {
        let Some(shown) = self.listing.end() else {
            return Vec::new();
        };
        // The watch that follows shows the end of those that the list has shown.
        self.gone.retain(|uid| shown.contains(&**uid));
        let unlisted = self.known.iter().filter(|(uid, pod)| {
            let is_newer = ResourceVersion::parse(as_of)
                .is_older_than(ResourceVersion::parse(pod.resource_version()));
            !is_newer && !shown.contains(&***uid)
        });
        unlisted.map(|(uid, _)| uid.to_string()).collect()
    }

    fn forget(&mut self, uid: &str) -> Option<Arc<ObservedPod>> {
        let pod = self.known.remove(uid)?;
        let index = self.index(&pod);
        index.remove(uid);
        let is_empty = index.is_empty();
        match pod.controller() {
            PodController::Set(set) if is_empty => _ = self.by_controller.remove(set),
            PodController::Nobody if is_empty => _ = self.orphans.remove(pod.namespace()),
            _ => {}
        }
        Some(pod)
    }

    /// The index that has the pod. Pods of other controllers are not kept.
    fn index(&mut self, pod: &ObservedPod) -> &mut BTreeSet<Uid> {
        match pod.controller() {
            PodController::Set(uid) => self.by_controller.entry(uid.to_owned()).or_default(),
            PodController::Nobody | PodController::Other => {
                self.orphans.entry(pod.namespace().to_owned()).or_default()
            }
        }
    }
}
