//! An index of related objects, updated with each change: `change -> pods by node, orphans, ReplicaSets and Deployments by
//! namespace, dependents by owner`. No controller scans all pods.
//!
//! It holds pods, ReplicaSets, Deployments and all objects with owners, by uid. Other objects are read from the API by name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::object::Object;
use crate::resources::{Kind, kinds};
use crate::store::Change;

use super::pod::Pod;
use crate::object::{controller_of, list, namespace, text, uid};

/// An object with its kind.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) object: Object,
}

type Uids = BTreeSet<String>;

/// The index. Uids are ordered, so that iteration has the same order in every run with the same seed.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: BTreeMap<String, Entry>,
    dependents: BTreeMap<String, Uids>,
    pods_by_node: BTreeMap<String, Uids>,
    orphans: BTreeMap<String, Uids>,
    sets: BTreeMap<String, Uids>,
    deployments: BTreeMap<String, Uids>,
}

impl Index {
    /// Applies a change.
    pub(crate) fn apply(&mut self, change: &Change) {
        if let Some(old) = &change.old {
            self.remove(uid(old));
        }
        if let Some(new) = &change.new {
            self.insert(&change.kind, new);
        }
    }

    fn insert(&mut self, kind: &Kind, object: &Object) {
        let owners = list(object, "/metadata/ownerReferences");
        let (is_pod, is_set) = (*kind == *kinds::PODS, *kind == *kinds::REPLICA_SETS);
        let is_deployment = *kind == *kinds::DEPLOYMENTS;
        if owners.is_empty() && !is_pod && !is_set && !is_deployment {
            return;
        }
        let uid = uid(object);
        for owner in owners {
            add(&mut self.dependents, text(owner, "/uid"), uid);
        }
        if is_pod {
            add(&mut self.pods_by_node, Pod(object).node(), uid);
            if controller_of(object).is_none() {
                add(&mut self.orphans, namespace(object), uid);
            }
        }
        if is_set {
            add(&mut self.sets, namespace(object), uid);
        }
        if is_deployment {
            add(&mut self.deployments, namespace(object), uid);
        }
        self.entries.insert(
            uid.to_owned(),
            Entry {
                kind: kind.clone(),
                object: Object::clone(object),
            },
        );
    }

    fn remove(&mut self, uid: &str) {
        let Some(Entry { kind, object }) = self.entries.remove(uid) else {
            return;
        };
        for owner in list(&object, "/metadata/ownerReferences") {
            drop_from(&mut self.dependents, text(owner, "/uid"), uid);
        }
        if kind == *kinds::PODS {
            drop_from(&mut self.pods_by_node, Pod(&object).node(), uid);
            drop_from(&mut self.orphans, namespace(&object), uid);
        } else if kind == *kinds::REPLICA_SETS {
            drop_from(&mut self.sets, namespace(&object), uid);
        } else if kind == *kinds::DEPLOYMENTS {
            drop_from(&mut self.deployments, namespace(&object), uid);
        }
    }

    /// The object with this uid, if the index holds it.
    pub(crate) fn get(&self, uid: &str) -> Option<&Entry> {
        self.entries.get(uid)
    }

    /// The objects with an owner of this uid.
    pub(crate) fn dependents(&self, owner: &str) -> impl Iterator<Item = &Entry> {
        self.among(self.dependents.get(owner))
    }

    /// The pods whose controller has this uid.
    pub(crate) fn pods_of(&self, controller: &str) -> impl Iterator<Item = &Object> {
        let pods = self
            .dependents(controller)
            .filter(|entry| entry.kind == *kinds::PODS)
            .map(|entry| &entry.object);
        pods.filter(move |pod| Pod(pod).controller_uid() == controller)
    }

    /// The ReplicaSets whose controller has this uid.
    pub(crate) fn sets_of(&self, controller: &str) -> impl Iterator<Item = &Object> {
        let sets = self
            .dependents(controller)
            .filter(|entry| entry.kind == *kinds::REPLICA_SETS)
            .map(|entry| &entry.object);
        sets.filter(move |set| {
            controller_of(set).is_some_and(|owner| text(owner, "/uid") == controller)
        })
    }

    /// The pods of a namespace without a controller.
    pub(crate) fn orphans(&self, namespace: &str) -> impl Iterator<Item = &Object> {
        self.among(self.orphans.get(namespace))
            .map(|entry| &entry.object)
    }

    /// The ReplicaSets of a namespace.
    pub(crate) fn sets(&self, namespace: &str) -> impl Iterator<Item = &Object> {
        self.among(self.sets.get(namespace))
            .map(|entry| &entry.object)
    }

    /// The Deployments of a namespace.
    pub(crate) fn deployments(&self, namespace: &str) -> impl Iterator<Item = &Object> {
        self.among(self.deployments.get(namespace))
            .map(|entry| &entry.object)
    }

    /// The pods bound to a node; unbound ones under the empty name.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = &Object> {
        self.among(self.pods_by_node.get(node))
            .map(|entry| &entry.object)
    }

    fn among<'a>(&'a self, uids: Option<&'a Uids>) -> impl Iterator<Item = &'a Entry> {
        uids.into_iter()
            .flatten()
            .filter_map(|uid| self.entries.get(uid))
    }
}

fn add(map: &mut BTreeMap<String, Uids>, key: &str, uid: &str) {
    map.entry(key.to_owned())
        .or_default()
        .insert(uid.to_owned());
}

fn drop_from(map: &mut BTreeMap<String, Uids>, key: &str, uid: &str) {
    if let Some(uids) = map.get_mut(key) {
        uids.remove(uid);
        if uids.is_empty() {
            map.remove(key);
        }
    }
}

/// An owner reference to the controller `owner`, as Kubernetes' controllers write it.
pub(crate) fn controller_reference(kind: &Kind, owner: &Value) -> Value {
    serde_json::json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": text(owner, "/metadata/name"), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}
