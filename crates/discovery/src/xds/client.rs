//! One client on one stream: what its requests ask for, and the next response. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    set::SetKey,
    xds::{
        name::ResourceName,
        resource::ResourceType,
        subscription::{News, Subscription},
        world::World,
    },
};

/// The most resources of a type that one client follows.
pub(super) const MAX_RESOURCES: usize = 20_000;
/// The name of all resources.
const ALL: &str = "*";

/// A request, by either protocol.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) kind: ResourceType,
    /// The name of the client; absent in all requests but the first.
    pub(super) node: Option<String>,
    /// The nonce of the response that it is about, or empty.
    pub(super) nonce: String,
    /// Why the client does not use that response.
    pub(super) rejection: Option<String>,
    pub(super) wants: Wants,
}

/// What a client wants of a type.
#[derive(Debug)]
pub(super) enum Wants {
    /// These resources and no others; none at first: all.
    These(BTreeSet<String>),
    /// These in addition, those no more.
    Changes {
        subscribe: Vec<String>,
        unsubscribe: Vec<String>,
        /// The versions that it has of an earlier stream.
        has: HashMap<String, String>,
    },
}

/// What one client wants and has.
#[derive(Debug, Default)]
pub(super) struct Client {
    types: BTreeMap<ResourceType, Followed>,
    last_nonce: u64,
}

#[derive(Debug, Default)]
struct Followed {
    subscription: Subscription,
    /// That of the last response.
    nonce: u64,
    /// Whether the client ever named a resource: then no names are no resources.
    has_named: bool,
}

/// Why a client gets no more responses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_RESOURCES} resources of the type {}", .0.as_str())]
pub(super) struct TooMany(ResourceType);

/// A response to a client.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) kind: ResourceType,
    pub(super) nonce: u64,
    pub(super) news: News,
}

impl Client {
    /// The client asks for something. Returns whether it wants resources that it did not want.
    ///
    /// # Errors
    /// If it wants too many resources.
    pub(super) fn ask(&mut self, ask: Ask) -> Result<bool, TooMany> {
        let Ask {
            kind, nonce, wants, ..
        } = ask;
        let followed = self.types.entry(kind).or_default();
        let has_new = match wants {
            // About an earlier response: the client has another one, and will ask again.
            Wants::These(_) if !followed.is_current(&nonce) => false,
            Wants::These(names) => followed.set(kind, names),
            Wants::Changes {
                subscribe,
                unsubscribe,
                has,
            } => followed.change(kind, subscribe, &unsubscribe, has),
        };
        let is_too_much = followed.subscription.len() > MAX_RESOURCES;
        (!is_too_much).then_some(has_new).ok_or(TooMany(kind))
    }

    /// What the client wants of a type.
    pub(super) fn subscription(&self, kind: ResourceType) -> Option<&Subscription> {
        self.types.get(&kind).map(|followed| &followed.subscription)
    }

    /// The sets whose resources the client follows.
    pub(super) fn sets(&self) -> BTreeSet<SetKey> {
        let followed = self.types.values();
        let names = followed.flat_map(|followed| followed.subscription.names());
        names
            .filter_map(|name| Some(ResourceName::parse(name)?.key))
            .collect()
    }

    /// Whether the client wants all resources of a type.
    pub(super) fn wants_all(&self) -> bool {
        let mut followed = self.types.values();
        followed.any(|followed| followed.subscription.wants_all())
    }

    /// The resources of a set have to be looked at.
    pub(super) fn set_changed(&mut self, key: &SetKey) {
        for followed in self.types.values_mut() {
            followed.subscription.set_changed(key);
        }
    }

    /// All resources have to be looked at.
    pub(super) fn all_changed(&mut self) {
        for followed in self.types.values_mut() {
            followed.subscription.all_changed();
        }
    }

    /// The next response; `None` if there is nothing new. `says_removed`: whether responses of all types say what is gone, and
    /// not only those that have all resources.
    pub(super) fn next(&mut self, world: &impl World, says_removed: bool) -> Option<Response> {
        self.types.iter_mut().find_map(|(kind, followed)| {
            let says_removed = says_removed || kind.is_whole();
            let news = followed.subscription.news(*kind, world, says_removed)?;
            self.last_nonce += 1;
            followed.nonce = self.last_nonce;
            Some(Response {
                kind: *kind,
                nonce: self.last_nonce,
                news,
            })
        })
    }
}

impl Followed {
    fn is_current(&self, nonce: &str) -> bool {
        nonce.is_empty() || nonce == self.nonce.to_string()
    }

    fn set(&mut self, kind: ResourceType, mut names: BTreeSet<String>) -> bool {
        self.has_named |= !names.is_empty();
        let is_all = names.remove(ALL) || !self.has_named;
        let has_new = self.subscription.set_names(names);
        let wanted_all = self.subscription.wants_all();
        self.subscription.set_all(is_all && kind.is_whole());
        has_new || self.subscription.wants_all() && !wanted_all
    }

    fn change(
        &mut self,
        kind: ResourceType,
        subscribe: Vec<String>,
        unsubscribe: &[String],
        has: HashMap<String, String>,
    ) -> bool {
        let has_new = !subscribe.is_empty() || !has.is_empty();
        let is_first = !std::mem::replace(&mut self.has_named, true);
        let is_all = subscribe.iter().any(|name| name == ALL) || is_first && subscribe.is_empty();
        if is_all && kind.is_whole() {
            self.subscription.set_all(true);
        }
        for name in unsubscribe {
            match &**name {
                ALL => self.subscription.set_all(false),
                name => self.subscription.remove(name),
            }
        }
        for name in subscribe.into_iter().filter(|name| name != ALL) {
            self.subscription.add(name, true);
        }
        for (name, version) in has {
            if let Ok(version) = version.parse() {
                self.subscription.client_has(name, version);
            }
        }
        has_new || is_first
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
