//! Passes what the watches show to the catalog.

use std::{collections::BTreeSet, sync::Arc};

use fedrs_api::{EndpointSet, ObjectKey, SetKind};
use jiff::Timestamp;
use reflector::{Error, EventHandler, InvalidObject, format_error};

use crate::{
    catalog::Catalog, node::NodeObject, pod::PodObject, set::SetKey, source::SourceObject,
};

/// The name of the kind in messages.
pub(crate) const ENDPOINT_SETS: &str = "EndpointSets";

/// The EndpointSets of the host.
pub(crate) struct Sets {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) listed: Listed<SetKey>,
}

/// The federated sets of a kind of the host.
pub(crate) struct Sources {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) kind: SetKind,
    pub(crate) listed: Listed<ObjectKey>,
}

/// The pods of a member.
pub(crate) struct Pods {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) member: Arc<str>,
}

/// The nodes of a member.
pub(crate) struct Nodes {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) member: Arc<str>,
}

/// What a list has had so far.
pub(crate) struct Listed<K> {
    keys: BTreeSet<K>,
    /// Whether an object of it can't be read: then nothing is known to be gone.
    is_unreadable: bool,
}

impl<K> Default for Listed<K> {
    fn default() -> Self {
        Self {
            keys: BTreeSet::new(),
            is_unreadable: false,
        }
    }
}

impl<K: Ord> Listed<K> {
    /// All keys, if all could be read.
    fn end(&mut self) -> Option<BTreeSet<K>> {
        let Self {
            keys,
            is_unreadable,
        } = std::mem::take(self);
        (!is_unreadable).then_some(keys)
    }
}

/// The name of a kind in messages.
pub(crate) const fn sources(kind: SetKind) -> &'static str {
    match kind {
        SetKind::FederatedReplicaSet => "FederatedReplicaSets",
        SetKind::FederatedDeployment => "FederatedDeployments",
    }
}

fn warn(of: &str, what: &str, error: &Error) {
    tracing::warn!(of, what, error = %format_error(error), "a watch failed: what is known stays in use");
}

fn skipped(of: &str, what: &str, object: &InvalidObject) {
    tracing::warn!(of, what, error = %object, "skipped an object that can't be read");
}

impl EventHandler<EndpointSet> for Sets {
    fn on_init(&mut self) {
        self.listed = Listed::default();
    }

    fn on_apply(&mut self, object: EndpointSet) {
        self.listed.keys.insert(SetKey::of(&object));
        self.catalog.update(|state| state.apply_set(&object));
    }

    fn on_delete(&mut self, object: EndpointSet) {
        self.catalog
            .update(|state| state.remove_set(&SetKey::of(&object)));
    }

    fn on_init_done(&mut self, _: &str) {
        if let Some(listed) = self.listed.end() {
            self.catalog.update(|state| state.end_sets(&listed));
        }
        self.catalog.listed(ENDPOINT_SETS);
    }

    fn on_error(&mut self, error: &Error) {
        warn("host", ENDPOINT_SETS, error);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        skipped("host", ENDPOINT_SETS, object);
        match (&object.namespace, &object.name) {
            (Some(namespace), Some(name)) if object.deleted => {
                let key = SetKey::new(&**namespace, &**name);
                self.catalog.update(|state| state.remove_set(&key));
            }
            _ => self.listed.is_unreadable = true,
        }
    }
}

impl EventHandler<SourceObject> for Sources {
    fn on_init(&mut self) {
        self.listed = Listed::default();
    }

    fn on_apply(&mut self, object: SourceObject) {
        let key = object.key(self.kind);
        self.catalog
            .update(|state| state.apply_source(&key, object.selector()));
        self.listed.keys.insert(key);
    }

    fn on_delete(&mut self, object: SourceObject) {
        let key = object.key(self.kind);
        self.catalog.update(|state| state.remove_source(&key));
    }

    fn on_init_done(&mut self, _: &str) {
        if let Some(listed) = self.listed.end() {
            let kind = self.kind;
            self.catalog
                .update(|state| state.end_sources(kind, &listed));
        }
        self.catalog.listed(sources(self.kind));
    }

    fn on_error(&mut self, error: &Error) {
        warn("host", sources(self.kind), error);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        skipped("host", sources(self.kind), object);
        self.listed.is_unreadable = true;
    }
}

impl EventHandler<PodObject> for Pods {
    fn on_init(&mut self) {
        self.catalog.update(|state| state.begin_pods(&self.member));
    }

    fn on_apply(&mut self, pod: PodObject) {
        self.catalog
            .update(|state| state.apply_pod(&self.member, pod));
    }

    fn on_delete(&mut self, pod: PodObject) {
        let metadata = &pod.metadata;
        self.catalog.update(|state| {
            state.remove_pod(&self.member, &metadata.namespace, &metadata.name);
        });
    }

    fn on_init_done(&mut self, _: &str) {
        self.catalog.update(|state| state.end_pods(&self.member));
    }

    fn on_error(&mut self, error: &Error) {
        warn(&self.member, "Pods", error);
        let (now, must_list) = (Timestamp::now(), error.needs_relist());
        self.catalog
            .update(|state| state.stale(&self.member, now, must_list));
    }

    fn on_silence(&mut self) {
        let now = Timestamp::now();
        self.catalog
            .update(|state| state.stale(&self.member, now, false));
    }

    fn on_caught_up(&mut self) {
        self.catalog.update(|state| state.caught_up(&self.member));
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        skipped(&self.member, "Pods", object);
        match (&object.namespace, &object.name) {
            (Some(namespace), Some(name)) if object.deleted => {
                self.catalog
                    .update(|state| state.remove_pod(&self.member, namespace, name));
            }
            _ => self
                .catalog
                .update(|state| state.unreadable_pod(&self.member)),
        }
    }
}

impl EventHandler<NodeObject> for Nodes {
    fn on_init(&mut self) {}

    fn on_apply(&mut self, node: NodeObject) {
        self.catalog
            .update(|state| state.apply_node(&self.member, node));
    }

    // A node that is gone has no pods soon; its name and zone are kept as long as they are in use.
    fn on_delete(&mut self, _: NodeObject) {}

    fn on_init_done(&mut self, _: &str) {}

    // Without nodes, endpoints have no zone.
    fn on_error(&mut self, error: &Error) {
        warn(&self.member, "Nodes", error);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        skipped(&self.member, "Nodes", object);
    }
}
