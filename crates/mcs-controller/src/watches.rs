//! The kinds that are watched in each member, and what they change.

use reflector::{Versioned, partial::is_present};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    export::{Export, Service},
    import::Import,
    key::ServiceKey,
    meta::Meta,
    names::{EXPORTS, IMPORTS, NAMESPACES, SERVICES, SLICES, is_served},
    slice::Slice,
    state::{Change, Changed, MemberState},
    table::{Applied, Table},
};

/// A kind that is watched.
pub(crate) trait WatchedKind: DeserializeOwned + Versioned + Send + 'static {
    /// The kind, in the plural.
    const KIND: &'static str;
    /// Its collection.
    const PATH: &'static str;

    /// It exists, was created or changed.
    fn apply(self, member: &mut MemberState) -> Change;
    /// It was deleted.
    fn delete(member: &mut MemberState, namespace: &str, name: &str) -> Change;
    /// Its namespace and name.
    fn id(&self) -> (&str, &str);
    /// A list begins.
    fn begin(member: &mut MemberState);
    /// One can't be read.
    fn unreadable(member: &mut MemberState);
    /// A list is complete: what it has not shown is gone.
    fn end(member: &mut MemberState) -> Change;
}

/// A kind whose objects are those of a Service: they have its namespace and name.
trait OfService: Sized {
    fn table(member: &mut MemberState) -> &mut Table<ServiceKey, Self>;
}

impl OfService for Export {
    fn table(member: &mut MemberState) -> &mut Table<ServiceKey, Self> {
        &mut member.exports
    }
}

impl OfService for Import {
    fn table(member: &mut MemberState) -> &mut Table<ServiceKey, Self> {
        &mut member.imports
    }
}

impl OfService for Service {
    fn table(member: &mut MemberState) -> &mut Table<ServiceKey, Self> {
        &mut member.services
    }
}

fn put<T: OfService + PartialEq>(member: &mut MemberState, key: ServiceKey, object: T) -> Change {
    if !is_served(&key.namespace) {
        return Change::nothing();
    }
    match T::table(member).apply(key.clone(), object) {
        Applied::Same => Change::nothing(),
        Applied::Changed(_) => Change::service(key),
    }
}

/// Removes an object. The Service is concerned although it may not be exported any more.
fn remove<T: OfService + PartialEq>(
    member: &mut MemberState,
    namespace: &str,
    name: &str,
) -> Change {
    let key = ServiceKey::new(namespace, name);
    match T::table(member).remove(&key) {
        None => Change::nothing(),
        Some(_) => Change::service(key),
    }
}

fn end<T: OfService + PartialEq>(member: &mut MemberState) -> Change {
    let table = T::table(member);
    let gone: Changed = table.end().into_iter().collect();
    for key in &gone {
        table.remove(key);
    }
    Change::Services(gone)
}

/// The kinds that have the namespace and the name of a Service.
macro_rules! of_service {
    ($($kind:ty: $name:literal, $path:expr, $prepare:expr;)*) => { $(
        impl WatchedKind for $kind {
            const KIND: &'static str = $name;
            const PATH: &'static str = $path;

            fn apply(self, member: &mut MemberState) -> Change {
                let key = ServiceKey::new(&self.metadata.namespace, &self.metadata.name);
                let prepare: fn(Self) -> Self = $prepare;
                put(member, key, prepare(self))
            }

            fn delete(member: &mut MemberState, namespace: &str, name: &str) -> Change {
                remove::<Self>(member, namespace, name)
            }

            fn id(&self) -> (&str, &str) {
                (&self.metadata.namespace, &self.metadata.name)
            }

            fn begin(member: &mut MemberState) {
                Self::table(member).begin();
            }

            fn unreadable(member: &mut MemberState) {
                Self::table(member).unreadable();
            }

            fn end(member: &mut MemberState) -> Change {
                end::<Self>(member)
            }
        }
    )* };
}

of_service! {
    Export: "ServiceExports", EXPORTS, |export| export;
    Import: "ServiceImports", IMPORTS, |import| import;
    // Nothing else of it matters, and a cluster may have many.
    Service: "Services", SERVICES, |service| Service { metadata: Meta::default(), ..service };
}

impl WatchedKind for Slice {
    const KIND: &'static str = "EndpointSlices";
    const PATH: &'static str = SLICES;

    fn apply(mut self, member: &mut MemberState) -> Change {
        if !is_served(&self.metadata.namespace) {
            return Change::nothing();
        }
        self.metadata.annotations.clear();
        member.apply_slice(self)
    }

    fn delete(member: &mut MemberState, namespace: &str, name: &str) -> Change {
        member.remove_slice(&ServiceKey::new(namespace, name))
    }

    fn id(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }

    fn begin(member: &mut MemberState) {
        member.slices.begin();
    }

    fn unreadable(member: &mut MemberState) {
        member.slices.unreadable();
    }

    fn end(member: &mut MemberState) -> Change {
        let mut changed = Changed::new();
        for id in member.slices.end() {
            if let Change::Services(services) = member.remove_slice(&id) {
                changed.extend(services);
            }
        }
        Change::Services(changed)
    }
}

/// A namespace.
#[derive(Debug, Deserialize)]
pub(crate) struct Namespace {
    metadata: NamespaceMeta,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamespaceMeta {
    name: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default, deserialize_with = "is_present", rename = "deletionTimestamp")]
    is_deleted: bool,
}

impl Versioned for Namespace {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl WatchedKind for Namespace {
    const KIND: &'static str = "Namespaces";
    const PATH: &'static str = NAMESPACES;

    fn apply(self, member: &mut MemberState) -> Change {
        member.apply_namespace(self.metadata.name, self.metadata.is_deleted)
    }

    fn delete(member: &mut MemberState, _: &str, name: &str) -> Change {
        member.remove_namespace(name.to_owned())
    }

    fn id(&self) -> (&str, &str) {
        ("", &self.metadata.name)
    }

    fn begin(member: &mut MemberState) {
        member.namespaces.begin();
    }

    fn unreadable(member: &mut MemberState) {
        member.namespaces.unreadable();
    }

    fn end(member: &mut MemberState) -> Change {
        let gone = member.namespaces.end();
        for name in &gone {
            member.namespaces.remove(name);
        }
        Change::Namespaces(gone)
    }
}
