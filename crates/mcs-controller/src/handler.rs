//! The watch of one kind in one member: objects go into the state, the Services that they concern onto the queues.

use std::{marker::PhantomData, sync::Arc};

use reflector::{Error, EventHandler, InvalidObject, format_error};

use crate::{
    shared::Shared,
    state::{Change, MemberState},
    watches::WatchedKind,
};

/// Handles the events of one watch.
pub(crate) struct Handler<T> {
    shared: Arc<Shared>,
    member: Arc<str>,
    /// The last failure, while it lasts: it is logged once.
    failure: Option<String>,
    kind: PhantomData<fn() -> T>,
}

impl<T: WatchedKind> Handler<T> {
    pub(crate) fn new(shared: &Arc<Shared>, member: &Arc<str>) -> Self {
        Self {
            shared: Arc::clone(shared),
            member: Arc::clone(member),
            failure: None,
            kind: PhantomData,
        }
    }

    fn update(&self, change: impl FnOnce(&mut MemberState) -> Change) {
        self.shared.update(&self.member, change);
    }
}

impl<T: WatchedKind> EventHandler<T> for Handler<T> {
    fn on_init(&mut self) {
        self.update(|member| {
            T::begin(member);
            Change::nothing()
        });
    }

    fn on_apply(&mut self, object: T) {
        self.update(|member| object.apply(member));
    }

    fn on_delete(&mut self, object: T) {
        let (namespace, name) = object.id();
        self.update(|member| T::delete(member, namespace, name));
    }

    fn on_init_done(&mut self, _: &str) {
        self.update(T::end);
        self.shared.begin_if_known();
    }

    fn on_error(&mut self, error: &Error) {
        let failure = explain::<T>(error);
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!(cluster = &*self.member, "{failure}");
            self.failure = Some(failure);
        }
    }

    fn on_activity(&mut self) {
        self.failure = None;
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        let cluster = &*self.member;
        tracing::warn!(cluster, kind = T::KIND, error = %object, "skipped an object that can't be read");
        match (&object.name, object.deleted) {
            (Some(name), true) => {
                let namespace = object.namespace.as_deref().unwrap_or_default();
                self.update(|member| T::delete(member, namespace, name));
            }
            (_, true) => {}
            (_, false) => self.update(|member| {
                T::unreadable(member);
                Change::nothing()
            }),
        }
    }
}

/// What a person has to do.
fn explain<T: WatchedKind>(error: &Error) -> String {
    let kind = T::KIND;
    match error.code() {
        Some(404) => format!(
            "the cluster has no CRD of {kind}: install those of sigs.k8s.io/mcs-api (docs/mcs.md); waiting"
        ),
        Some(403) => format!(
            "failed to list {kind}: {}; `fedrs rbac mcs-member` prints the permissions that this version needs: apply them",
            format_error(error)
        ),
        _ => format!("failed to list {kind}: {}", format_error(error)),
    }
}
