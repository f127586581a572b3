//! What one client wants of one type of resources, and what it has. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    set::SetKey,
    xds::{
        name,
        resource::{Resource, ResourceType},
        world::{Known, World},
    },
};

/// What a client wants of a type.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    /// Whether it wants all that there are.
    wants_all: bool,
    resources: BTreeMap<String, Interest>,
    due: Due,
    /// Whether the client waits for a response, also if there is nothing new.
    must_respond: bool,
}

/// By default that of a client that has not asked for it by name.
#[derive(Debug, Default)]
struct Interest {
    /// Whether the client asked for it by name.
    is_named: bool,
    has: Has,
}

/// What the client has of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Has {
    #[default]
    Nothing,
    Version(u64),
    /// It knows that there is none.
    Absent,
}

/// What has to be looked at.
#[derive(Debug, Default)]
struct Due {
    is_all: bool,
    names: BTreeSet<String>,
    /// All resources of these.
    sets: BTreeSet<SetKey>,
}

/// What is new for a client.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) updated: Vec<Resource>,
    /// Names of resources that are gone, or do not exist.
    pub(super) removed: Vec<String>,
}

impl Subscription {
    /// How many resources it has.
    pub(super) fn len(&self) -> usize {
        self.resources.len()
    }

    /// The names of the resources.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.resources.keys().map(String::as_str)
    }

    /// Whether the client wants all that there are.
    pub(super) fn wants_all(&self) -> bool {
        self.wants_all
    }

    /// The client wants all resources, or does not any more.
    pub(super) fn set_all(&mut self, wants_all: bool) {
        if self.wants_all != wants_all {
            self.wants_all = wants_all;
            self.resources
                .retain(|_, interest| wants_all || interest.is_named);
            self.due.is_all = true;
            self.must_respond |= wants_all;
        }
    }

    /// The client wants a resource. Sent again if `again`, also if the client has it.
    pub(super) fn add(&mut self, name: String, again: bool) {
        let interest = self.resources.entry(name.clone()).or_default();
        interest.is_named = true;
        if again {
            interest.has = Has::Nothing;
        }
        self.due.names.insert(name);
    }

    /// The client has this version of a resource that it wants from an earlier stream.
    pub(super) fn client_has(&mut self, name: String, version: u64) {
        let is_wanted = self.wants_all || self.resources.contains_key(&name);
        if is_wanted {
            self.resources.entry(name.clone()).or_default().has = Has::Version(version);
            self.due.names.insert(name);
        }
    }

    /// The client does not want a resource any more.
    pub(super) fn remove(&mut self, name: &str) {
        if self.wants_all {
            if let Some(interest) = self.resources.get_mut(name) {
                interest.is_named = false;
            }
        } else {
            self.resources.remove(name);
        }
    }

    /// The client wants these by name, and no others. Returns whether it did not want one of them.
    pub(super) fn set_names(&mut self, names: BTreeSet<String>) -> bool {
        let known = self.resources.iter();
        let named = known.filter(|(_, interest)| interest.is_named);
        let others = named
            .map(|(name, _)| name)
            .filter(|name| !names.contains(*name));
        for name in others.cloned().collect::<Vec<_>>() {
            self.remove(&name);
        }
        let mut has_new = false;
        for name in names {
            if self
                .resources
                .get(&name)
                .is_none_or(|known| !known.is_named)
            {
                self.add(name, false);
                has_new = true;
            }
        }
        has_new
    }

    /// The resources of a set have to be looked at.
    pub(super) fn set_changed(&mut self, key: &SetKey) {
        self.due.sets.insert(key.clone());
    }

    /// All resources have to be looked at.
    pub(super) fn all_changed(&mut self) {
        self.due.is_all = true;
    }

    /// What is new for the client: it has that from now on. `None` if it gets no response.
    pub(super) fn news(
        &mut self,
        kind: ResourceType,
        world: &impl World,
        says_removed: bool,
    ) -> Option<News> {
        let mut news = News::default();
        for name in self.take_due(kind, world) {
            let Some(interest) = self.resources.get_mut(&name) else {
                continue;
            };
            let has = match world.resource(kind, &name) {
                Known::Resource(resource) => {
                    let has = Has::Version(resource.version);
                    if has != interest.has {
                        news.updated.push(resource);
                    }
                    has
                }
                Known::Absent if !interest.is_named => {
                    self.resources.remove(&name);
                    news.removed.push(name);
                    continue;
                }
                Known::Absent => {
                    if interest.has != Has::Absent {
                        news.removed.push(name);
                    }
                    Has::Absent
                }
                Known::Unknown => interest.has,
            };
            interest.has = has;
        }
        let is_new = !news.updated.is_empty() || says_removed && !news.removed.is_empty();
        (std::mem::take(&mut self.must_respond) || is_new).then_some(news)
    }

    /// The names of what has to be looked at. Adds what there is to what a client has that wants all.
    fn take_due(&mut self, kind: ResourceType, world: &impl World) -> BTreeSet<String> {
        let Due {
            is_all,
            mut names,
            sets,
        } = std::mem::take(&mut self.due);
        // Proxies take no listeners of this kind: they are for clients that ask by name.
        if self.wants_all && kind == ResourceType::Cluster {
            let sets = if is_all {
                world.sets()
            } else {
                sets.iter().cloned().collect()
            };
            for name in sets.iter().flat_map(|key| world.ports(key)) {
                self.resources.entry(name).or_default();
            }
        }
        if is_all {
            return self.resources.keys().cloned().collect();
        }
        for key in sets {
            names.extend(self.names_of(&key).map(str::to_owned));
        }
        names
    }

    /// The names of the resources of a set.
    fn names_of(&self, key: &SetKey) -> impl Iterator<Item = &str> {
        let of_set = name::of_set(key);
        let ports = format!("{of_set}:")..format!("{of_set};");
        let names = self.resources.range(ports);
        let first = self.resources.get_key_value(&of_set);
        first.into_iter().chain(names).map(|(name, _)| &**name)
    }

    /// All that the client has, if the resources follow from their names.
    pub(super) fn held(&self, kind: ResourceType) -> impl Iterator<Item = Resource> {
        let held = self.resources.iter();
        let held = held.filter(|(_, interest)| matches!(interest.has, Has::Version(_)));
        held.map(move |(name, _)| Resource::of_name(kind, name.clone()))
    }
}
