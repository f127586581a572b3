//! What there is: the sets of the catalog as resources.

use crate::{
    catalog::{Catalog, Lookup},
    set::SetKey,
    xds::{
        name::{self, ResourceName},
        resource::{Resource, ResourceType},
    },
};

/// What is known of a resource.
#[derive(Debug)]
pub(super) enum Known {
    /// It is this.
    Resource(Resource),
    /// There is none.
    Absent,
    /// It can't be said: clients keep what they have.
    Unknown,
}

/// What there is.
pub(super) trait World {
    /// The resource of that name.
    fn resource(&self, kind: ResourceType, name: &str) -> Known;
    /// All sets.
    fn sets(&self) -> Vec<SetKey>;
    /// The names of the ports of a set, as far as they are known.
    fn ports(&self, key: &SetKey) -> Vec<String>;
}

impl World for Catalog {
    fn resource(&self, kind: ResourceType, name: &str) -> Known {
        let Some(parsed) = ResourceName::parse(name) else {
            return Known::Absent;
        };
        let snapshot = match self.lookup(&parsed.key) {
            Lookup::Found(snapshot) => snapshot,
            Lookup::NotFound => return Known::Absent,
            Lookup::Waiting(_) | Lookup::NoSource | Lookup::Invalid(_) => return Known::Unknown,
        };
        let mut ports = snapshot.set.ports.iter().map(|port| &*port.name);
        let port = match parsed.port {
            Some(wanted) => ports.find(|port| *port == wanted),
            None => ports.next(),
        };
        let name = name.to_owned();
        match port.map(str::to_owned) {
            None => Known::Absent,
            Some(port) if kind == ResourceType::Endpoints => {
                Known::Resource(Resource::endpoints(name, snapshot, &port))
            }
            Some(_) => Known::Resource(Resource::of_name(kind, name)),
        }
    }

    fn sets(&self) -> Vec<SetKey> {
        self.keys()
    }

    fn ports(&self, key: &SetKey) -> Vec<String> {
        let Lookup::Found(snapshot) = self.lookup(key) else {
            return Vec::new();
        };
        let ports = snapshot.set.ports.iter();
        ports.map(|port| name::of_port(key, &port.name)).collect()
    }
}
