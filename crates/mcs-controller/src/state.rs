//! What is known of all members.
//!
//! ```text
//! watches, responses to writes --apply--> State --> the Services that it concerns
//!                                           '-----> View of one Service
//! ```
//!
//! A member that can't be reached stays as it was last seen.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    export::{Export, Service},
    import::Import,
    key::ServiceKey,
    slice::{Role, Slice},
    table::{Applied, Table},
    view::{MemberView, View},
};

/// The Services that a change concerns.
pub(crate) type Changed = BTreeSet<ServiceKey>;

/// What has changed in a member.
#[derive(Debug)]
pub(crate) enum Change {
    /// These Services, their exports, imports or EndpointSlices.
    Services(Changed),
    /// Whether these namespaces exist: all Services in them are imported, or not.
    Namespaces(Vec<String>),
}

impl Change {
    pub(crate) fn nothing() -> Self {
        Self::Services(Changed::new())
    }

    pub(crate) fn service(key: ServiceKey) -> Self {
        Self::Services([key].into())
    }
}

/// The state, shared by the watches and the workers. The lock is held for one object, or one view.
#[derive(Debug, Default)]
pub(crate) struct State(Mutex<BTreeMap<Arc<str>, MemberState>>);

/// What is known of one member.
#[derive(Debug, Default)]
pub(crate) struct MemberState {
    is_member: bool,
    /// By name; whether it is being deleted.
    pub(crate) namespaces: Table<String, bool>,
    pub(crate) exports: Table<ServiceKey, Export>,
    pub(crate) services: Table<ServiceKey, Service>,
    pub(crate) imports: Table<ServiceKey, Import>,
    /// By namespace and name.
    pub(crate) slices: Table<ServiceKey, Slice>,
    /// The names of the EndpointSlices of each Service.
    slices_of: HashMap<ServiceKey, BTreeSet<ServiceKey>>,
}

impl State {
    /// There is such a member; what it has is not known yet. Of one that was known it has to be listed again.
    pub(crate) fn begin_member(&self, name: &Arc<str>) {
        let mut members = self.0.lock();
        let member = members.entry(Arc::clone(name)).or_default();
        member.is_member = true;
        member.namespaces.is_listed = false;
        member.exports.is_listed = false;
        member.services.is_listed = false;
        member.imports.is_listed = false;
        member.slices.is_listed = false;
    }

    /// It is no member any more, and stays as it is.
    pub(crate) fn end_member(&self, name: &str) {
        if let Some(member) = self.0.lock().get_mut(name) {
            member.is_member = false;
        }
    }

    /// Whether all members are known.
    pub(crate) fn is_complete(&self) -> bool {
        let members = self.0.lock();
        let mut members = members.values().filter(|member| member.is_member);
        members.all(MemberState::is_known)
    }

    /// Whether this member is known.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.0.lock().get(name).is_some_and(MemberState::is_known)
    }

    /// How many exports and ServiceImports a member has.
    pub(crate) fn counts(&self, name: &str) -> (usize, usize) {
        let members = self.0.lock();
        let member = members.get(name);
        member.map_or((0, 0), |member| {
            (member.exports.len(), member.imports.len())
        })
    }

    /// Changes what is known of a member. Returns those of the Services that this concerns which are exported or imported anywhere;
    /// all of them, if the member was not known before or is not now.
    pub(crate) fn update(
        &self,
        name: &str,
        change: impl FnOnce(&mut MemberState) -> Change,
    ) -> Changed {
        let mut members = self.0.lock();
        let Some(member) = members.get_mut(name) else {
            return Changed::new();
        };
        let was_known = member.is_known();
        let changed = change(member);
        if was_known != member.is_known() {
            return all(&members);
        }
        match changed {
            Change::Services(mut services) => {
                services.retain(|key| members.values().any(|member| member.shares(key)));
                services
            }
            Change::Namespaces(names) => {
                let mut services = all(&members);
                services.retain(|key| names.iter().any(|name| **name == *key.namespace));
                services
            }
        }
    }

    /// All Services that are exported or imported anywhere.
    pub(crate) fn all(&self) -> Changed {
        all(&self.0.lock())
    }

    /// All that is known of a Service.
    pub(crate) fn view(&self, key: &ServiceKey) -> View {
        let members = self.0.lock();
        let members = members
            .iter()
            .map(|(name, member)| (Arc::clone(name), member.view(key)));
        View {
            key: key.clone(),
            members: members.collect(),
        }
    }
}

fn all(members: &BTreeMap<Arc<str>, MemberState>) -> Changed {
    members.values().flat_map(MemberState::shared).collect()
}

impl MemberState {
    /// Whether all that matters has been listed.
    fn is_known(&self) -> bool {
        self.namespaces.is_listed
            && self.exports.is_listed
            && self.services.is_listed
            && self.imports.is_listed
            && self.slices.is_listed
    }

    /// Whether it exports or imports the Service.
    fn shares(&self, key: &ServiceKey) -> bool {
        self.exports.get(key).is_some() || self.imports.get(key).is_some() || self.has_imported(key)
    }

    fn has_imported(&self, key: &ServiceKey) -> bool {
        self.slices_of(key, Role::Imported).next().is_some()
    }

    /// The Services that it exports or imports.
    fn shared(&self) -> Changed {
        let exported = self.exports.keys().chain(self.imports.keys());
        let imported = self.slices_of.keys().filter(|key| self.has_imported(key));
        exported.chain(imported).cloned().collect()
    }

    fn slices_of(&self, key: &ServiceKey, role: Role) -> impl Iterator<Item = &Arc<Slice>> {
        let names = self.slices_of.get(key).into_iter().flatten();
        let slices = names.filter_map(|name| self.slices.get(name));
        slices.filter(move |slice| slice.service().is_some_and(|(_, is)| is == role))
    }

    fn view(&self, key: &ServiceKey) -> Option<MemberView> {
        // What was known of one that is no member any more stays known.
        let is_known = self.is_known();
        is_known.then(|| MemberView {
            is_member: self.is_member,
            has_namespace: self
                .namespaces
                .get(&key.namespace.to_string())
                .is_some_and(|is_deleted| !**is_deleted),
            export: self.exports.get(key).cloned(),
            service: self.services.get(key).cloned(),
            slices: self.slices_of(key, Role::Own).cloned().collect(),
            import: self.imports.get(key).cloned(),
            imported: self
                .slices_of(key, Role::Imported)
                .map(|slice| (slice.metadata.name.clone(), Arc::clone(slice)))
                .collect(),
        })
    }

    /// A namespace exists, or is being deleted.
    pub(crate) fn apply_namespace(&mut self, name: String, is_deleted: bool) -> Change {
        match self.namespaces.apply(name.clone(), is_deleted) {
            Applied::Same => Change::nothing(),
            Applied::Changed(_) => Change::Namespaces(vec![name]),
        }
    }

    pub(crate) fn remove_namespace(&mut self, name: String) -> Change {
        self.namespaces.remove(&name);
        Change::Namespaces(vec![name])
    }

    /// An EndpointSlice exists: it concerns the Services that it belongs to, and belonged to.
    pub(crate) fn apply_slice(&mut self, slice: Slice) -> Change {
        let id = ServiceKey::new(&slice.metadata.namespace, &slice.metadata.name);
        let Some((now, _)) = slice.service() else {
            return self.remove_slice(&id);
        };
        let before = match self.slices.apply(id.clone(), slice) {
            Applied::Same => return Change::nothing(),
            Applied::Changed(before) => before.and_then(|before| before.service()),
        };
        let mut changed = Changed::new();
        if let Some((before, _)) = before {
            self.forget_slice(&before, &id);
            changed.insert(before);
        }
        self.slices_of.entry(now.clone()).or_default().insert(id);
        changed.insert(now);
        Change::Services(changed)
    }

    pub(crate) fn remove_slice(&mut self, id: &ServiceKey) -> Change {
        let slice = self.slices.remove(id);
        let Some((of, _)) = slice.and_then(|slice| slice.service()) else {
            return Change::nothing();
        };
        self.forget_slice(&of, id);
        Change::service(of)
    }

    fn forget_slice(&mut self, of: &ServiceKey, id: &ServiceKey) {
        if let Some(slices) = self.slices_of.get_mut(of) {
            slices.remove(id);
            if slices.is_empty() {
                self.slices_of.remove(of);
            }
        }
    }
}
