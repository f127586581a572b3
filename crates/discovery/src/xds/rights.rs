//! Which sets the client of a stream may ask for: asked in the background, and again from time to time.
//!
//! What it may not ask for is absent. What is not known yet, or not any more, is unknown: the client keeps what it has.

use std::collections::{BTreeSet, HashMap};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};

use crate::{
    access::Caller,
    catalog::{Catalog, Lookup},
    problem::Reason,
    set::SetKey,
    xds::{
        name::ResourceName,
        resource::ResourceType,
        world::{Known, World},
    },
};

/// Questions of one stream at the same time.
const AT_ONCE: usize = 16;

/// Whether the client may ask for a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    Allowed,
    Denied,
    Unknown,
}

/// The rights of one client.
pub(super) struct Rights {
    caller: Caller,
    known: HashMap<SetKey, Right>,
    /// Sets to ask about.
    due: BTreeSet<SetKey>,
    asking: FuturesUnordered<BoxFuture<'static, (SetKey, Right)>>,
    look_again: BoxFuture<'static, ()>,
}

impl Rights {
    pub(super) fn new(caller: Caller) -> Self {
        Self {
            look_again: look_again(&caller),
            caller,
            known: HashMap::new(),
            due: BTreeSet::new(),
            asking: FuturesUnordered::new(),
        }
    }

    /// The client wants resources of a set.
    pub(super) fn want(&mut self, key: &SetKey) {
        if self.caller.is_limited() && !self.known.contains_key(key) {
            self.known.insert(key.clone(), Right::Unknown);
            self.due.insert(key.clone());
        }
    }

    /// The set is gone.
    pub(super) fn forget(&mut self, key: &SetKey) {
        self.known.remove(key);
        self.due.remove(key);
    }

    /// Whether the client may ask for the set.
    pub(super) fn of(&self, key: &SetKey) -> Right {
        if !self.caller.is_limited() {
            return Right::Allowed;
        }
        self.known.get(key).copied().unwrap_or(Right::Unknown)
    }

    /// Waits for another right, and returns its set. Can be dropped at any time.
    pub(super) async fn changed(&mut self) -> (SetKey, Right) {
        loop {
            while self.asking.len() < AT_ONCE
                && let Some(key) = self.due.pop_first()
            {
                self.asking.push(ask(self.caller.clone(), key).boxed());
            }
            tokio::select! {
                Some((key, right)) = self.asking.next() => {
                    // None if the set is gone meanwhile.
                    if let Some(known) = self.known.get_mut(&key)
                        && std::mem::replace(known, right) != right
                    {
                        return (key, right);
                    }
                }
                () = &mut self.look_again => {
                    self.look_again = look_again(&self.caller);
                    self.due.extend(self.known.keys().cloned());
                }
            }
        }
    }
}

async fn ask(caller: Caller, key: SetKey) -> (SetKey, Right) {
    let right = match caller.check(&key).await {
        Ok(()) => Right::Allowed,
        Err(problem) if problem.reason == Reason::Forbidden => Right::Denied,
        Err(_) => Right::Unknown,
    };
    (key, right)
}

fn look_again(caller: &Caller) -> BoxFuture<'static, ()> {
    let caller = caller.clone();
    async move { caller.look_again().await }.boxed()
}

/// What there is for a client.
pub(super) struct Permitted<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) rights: &'a Rights,
}

impl World for Permitted<'_> {
    fn resource(&self, kind: ResourceType, name: &str) -> Known {
        let Some(parsed) = ResourceName::parse(name) else {
            return Known::Absent;
        };
        if matches!(self.catalog.lookup(&parsed.key), Lookup::NotFound) {
            return Known::Absent;
        }
        match self.rights.of(&parsed.key) {
            Right::Allowed => self.catalog.resource(kind, name),
            Right::Denied => Known::Absent,
            Right::Unknown => Known::Unknown,
        }
    }

    fn sets(&self) -> Vec<SetKey> {
        let mut sets = self.catalog.sets();
        sets.retain(|key| self.rights.of(key) == Right::Allowed);
        sets
    }

    fn ports(&self, key: &SetKey) -> Vec<String> {
        match self.rights.of(key) {
            Right::Allowed => self.catalog.ports(key),
            Right::Denied | Right::Unknown => Vec::new(),
        }
    }
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;
