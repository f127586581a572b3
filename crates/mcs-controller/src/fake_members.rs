//! Members in memory, for tests of decisions: what they have, what is known of it, and the writes that are applied to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    decide::decide,
    export::{Export, Service},
    import::Import,
    key::ServiceKey,
    plan::{Kind, Verb, Write, plan},
    slice::Slice,
    state::{Change, State},
    watches::{Namespace, WatchedKind},
};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "default";

/// One member.
#[derive(Debug, Default)]
pub(crate) struct FakeMember {
    /// By the path of their collection, and their name.
    objects: BTreeMap<(String, String), Value>,
    pub(crate) is_unreachable: bool,
}

/// All members, and what is known of them.
#[derive(Debug, Default)]
pub(crate) struct FakeMembers {
    pub(crate) members: BTreeMap<Arc<str>, FakeMember>,
    state: State,
    /// The last uid, and the last resourceVersion.
    count: u64,
}

pub(crate) fn key() -> ServiceKey {
    ServiceKey::new(NAMESPACE, "web")
}

fn path_of<T: WatchedKind>() -> String {
    T::PATH.to_owned()
}

fn collection(kind: Kind) -> String {
    match kind {
        Kind::Export => path_of::<Export>(),
        Kind::Import => path_of::<Import>(),
        Kind::Slice => path_of::<Slice>(),
    }
}

/// As RFC 7386 says.
fn merge(object: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            object.as_object_mut().expect("it is one").remove(key);
        } else {
            merge(&mut object[key], value);
        }
    }
}

impl FakeMembers {
    /// Members with the namespace.
    pub(crate) fn new(names: &[&str]) -> Self {
        let mut members = Self::default();
        for &name in names {
            members.members.insert(name.into(), FakeMember::default());
            members.put::<Namespace>(name, json!({ "metadata": { "name": NAMESPACE } }));
        }
        members
    }

    fn next(&mut self) -> String {
        self.count += 1;
        self.count.to_string()
    }

    /// Creates or replaces an object.
    pub(crate) fn put<T: WatchedKind>(&mut self, member: &str, mut object: Value) {
        let version = self.next();
        let name = object["metadata"]["name"].as_str().expect("it has a name");
        let id = (path_of::<T>(), name.to_owned());
        let objects = &mut self.members.get_mut(member).expect("it exists").objects;
        let before = objects
            .get(&id)
            .map(|object| object["metadata"]["uid"].clone());
        object["metadata"]["uid"] = before.unwrap_or_else(|| json!(format!("uid-{version}")));
        object["metadata"]["namespace"] = json!(NAMESPACE);
        object["metadata"]["resourceVersion"] = json!(version);
        objects.insert(id, object);
    }

    pub(crate) fn remove<T: WatchedKind>(&mut self, member: &str, name: &str) {
        let objects = &mut self.members.get_mut(member).expect("it exists").objects;
        objects.remove(&(path_of::<T>(), name.to_owned()));
    }

    pub(crate) fn get<T: WatchedKind>(&self, member: &str, name: &str) -> Option<&Value> {
        let id = (path_of::<T>(), name.to_owned());
        self.members[member].objects.get(&id)
    }

    /// All objects of a kind.
    pub(crate) fn all<T: WatchedKind>(&self, member: &str) -> Vec<&Value> {
        let objects = self.members[member].objects.iter();
        let of_kind = objects.filter(|((path, _), _)| *path == T::PATH);
        of_kind.map(|(_, object)| object).collect()
    }

    /// Exports the Service `web` of a member since this second, with this spec.
    pub(crate) fn export(&mut self, member: &str, second: u32, service: Value) {
        let created = format!("2026-01-01T00:00:{second:02}Z");
        let metadata = json!({ "name": "web", "creationTimestamp": created });
        self.put::<Export>(member, json!({ "metadata": metadata }));
        self.service(member, service);
    }

    pub(crate) fn service(&mut self, member: &str, mut spec: Value) {
        if spec.get("ports").is_none() {
            spec["ports"] = json!([{ "name": "http", "port": 80 }]);
        }
        self.put::<Service>(
            member,
            json!({ "metadata": { "name": "web" }, "spec": spec }),
        );
    }

    /// The Service `web` has this endpoint in this EndpointSlice.
    pub(crate) fn endpoint(&mut self, member: &str, slice: &str, address: &str) {
        let labels = json!({ "kubernetes.io/service-name": "web" });
        let endpoint = json!({
            "addresses": [address], "conditions": { "ready": true },
            "nodeName": "node", "targetRef": { "kind": "Pod", "name": "web-1" }, "zone": "a",
        });
        let slice = json!({
            "metadata": { "name": slice, "labels": labels }, "addressType": "IPv4",
            "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }], "endpoints": [endpoint],
        });
        self.put::<Slice>(member, slice);
    }

    /// Lists what a member has, if it can be reached.
    pub(crate) fn observe(&self, name: &str) {
        if self.members[name].is_unreachable {
            return;
        }
        self.list::<Namespace>(name);
        self.list::<Export>(name);
        self.list::<Service>(name);
        self.list::<Import>(name);
        self.list::<Slice>(name);
    }

    fn list<T: WatchedKind>(&self, member: &str) {
        self.state.update(member, |state| {
            T::begin(state);
            Change::nothing()
        });
        for object in self.all::<T>(member) {
            let object: T = serde_json::from_value(object.clone()).expect("it is valid");
            self.state.update(member, |state| object.apply(state));
        }
        self.state.update(member, T::end);
    }

    /// A controller starts that knows nothing yet.
    pub(crate) fn restart(&mut self) {
        self.state = State::default();
        for name in self.members.keys() {
            self.state.begin_member(name);
        }
    }

    /// A member is none any more.
    pub(crate) fn end(&mut self, name: &str) {
        self.state.end_member(name);
    }

    /// The next writes, of each member.
    pub(crate) fn writes(&self) -> Vec<(Arc<str>, Write)> {
        let view = self.state.view(&key());
        let decisions = decide(&view).into_iter();
        let writes = decisions.flat_map(|(name, decision)| {
            let member = view.members[&name].as_ref().expect("it is known");
            let writes = plan(&key(), member, &decision, Timestamp::UNIX_EPOCH);
            writes
                .into_iter()
                .map(move |write| (Arc::clone(&name), write))
        });
        writes.collect()
    }

    /// What is known: the members, and the sources of EndpointSlices that they have.
    pub(crate) fn known(&self) -> BTreeSet<Arc<str>> {
        let view = self.state.view(&key());
        view.known().map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Carries out a write, if the member can be reached and the object is as it was seen. Returns whether it was.
    pub(crate) fn carry_out(&mut self, member: &str, write: &Write) -> bool {
        if self.members[member].is_unreachable {
            return false;
        }
        let version = self.next();
        let objects = &mut self.members.get_mut(member).expect("it exists").objects;
        let (_, name) = write.id();
        let new = write.body["metadata"]["name"].as_str();
        let name = if write.verb == Verb::Create {
            new.expect("it has a name").to_owned()
        } else {
            name
        };
        let id = (collection(write.kind), name);
        let seen = match write.verb {
            Verb::Delete => &write.body["preconditions"],
            Verb::Create | Verb::Patch => &write.body["metadata"],
        };
        let found = objects.get_mut(&id);
        match (write.verb, found) {
            (Verb::Create, None) => {
                let mut object = write.body.clone();
                object["metadata"]["uid"] = json!(format!("uid-{version}"));
                object["metadata"]["namespace"] = json!(NAMESPACE);
                object["metadata"]["resourceVersion"] = json!(version);
                objects.insert(id, object);
                true
            }
            (Verb::Patch, Some(found)) if is_seen(found, seen) => {
                merge(found, &write.body);
                found["metadata"]["resourceVersion"] = json!(version);
                true
            }
            (Verb::Delete, Some(found)) if is_seen(found, seen) => {
                objects.remove(&id);
                true
            }
            _ => false,
        }
    }

    /// Observes and writes until there is nothing to write.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20 {
            for name in self.members.keys() {
                self.observe(name);
            }
            let writes = self.writes();
            let reachable = writes
                .iter()
                .filter(|(name, _)| !self.members[name].is_unreachable);
            let writes: Vec<_> = reachable.cloned().collect();
            if writes.is_empty() {
                return;
            }
            for (member, write) in writes {
                self.carry_out(&member, &write);
            }
        }
        panic!("it does not settle: {:#?}", self.writes());
    }

    /// The addresses that a member has imported, by the member that has them.
    pub(crate) fn imported(&self, member: &str) -> BTreeMap<String, BTreeSet<String>> {
        let mut imported: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for slice in self.all::<Slice>(member) {
            let source =
                slice["metadata"]["labels"].get("multicluster.kubernetes.io/source-cluster");
            if let Some(source) = source.and_then(Value::as_str) {
                let endpoints = slice["endpoints"].as_array().expect("it is a list").iter();
                let addresses = endpoints.filter_map(|endpoint| endpoint["addresses"][0].as_str());
                let of = imported.entry(source.to_owned()).or_default();
                of.extend(addresses.map(str::to_owned));
            }
        }
        imported
    }

    /// The condition of an export: its status, its reason and its message.
    pub(crate) fn condition(&self, member: &str, of_type: &str) -> (String, String, String) {
        let export = self.get::<Export>(member, "web").expect("it is exported");
        let conditions = export["status"]["conditions"].as_array();
        let mut conditions = conditions.expect("it has conditions").iter();
        let condition = conditions.find(|condition| condition["type"] == of_type);
        let condition = condition.expect("it has this one");
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }
}

fn is_seen(found: &Value, seen: &Value) -> bool {
    let fields = ["uid", "resourceVersion"];
    fields
        .iter()
        .all(|&field| found["metadata"][field] == seen[field])
}
