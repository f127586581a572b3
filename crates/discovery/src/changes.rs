//! What has changed of the state, by names: whoever follows it looks up what there is now.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::set::{SetKey, SourceKey};

/// What has changed. A replica that is slow has each name once, however often it has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) sets: BTreeSet<SetKey>,
    pub(crate) sources: BTreeSet<SourceKey>,
    /// Pods by their members.
    pub(crate) pods: BTreeMap<Arc<str>, BTreeSet<PodKey>>,
    /// Whether how current something is has changed, or a member is new.
    pub(crate) currency: bool,
}

/// The namespace and name of a pod.
pub(crate) type PodKey = (Arc<str>, Box<str>);

impl Changes {
    pub(crate) fn pod(&mut self, member: &Arc<str>, namespace: &Arc<str>, name: &str) {
        let pods = self.pods.entry(Arc::clone(member)).or_default();
        pods.insert((Arc::clone(namespace), name.into()));
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.sets.extend(other.sets);
        self.sources.extend(other.sources);
        for (member, pods) in other.pods {
            self.pods.entry(member).or_default().extend(pods);
        }
        self.currency |= other.currency;
    }
}
