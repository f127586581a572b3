//! Passes what the watches show to the catalog.

use std::sync::Arc;

use controller_base::listing::Listing;
use fedrs_api::{EndpointSet, ObjectKey, SetKind};
use jiff::Timestamp;
use reflector::{Error, EventHandler, InvalidObject, format_error};

use crate::{
    catalog::Catalog,
    freshness::Freshness,
    node::NodeObject,
    pod::PodObject,
    services::ServiceKey,
    set::SetKey,
    source::{ServiceObject, SourceObject},
};

/// The name of the kind in messages.
pub(crate) const ENDPOINT_SETS: &str = "EndpointSets";

/// The EndpointSets of the host.
pub(crate) struct Sets {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) listing: Listing<SetKey>,
}

/// The federated sets of a kind of the host.
pub(crate) struct Sources {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) kind: SetKind,
    pub(crate) listing: Listing<ObjectKey>,
}

/// The pods of a member.
pub(crate) struct Pods {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) member: Arc<str>,
}

/// The Services of a member.
pub(crate) struct Services {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) member: Arc<str>,
    pub(crate) listing: Listing<ServiceKey>,
}

/// The nodes of a member.
pub(crate) struct Nodes {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) member: Arc<str>,
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
        self.listing.begin();
    }

    fn on_apply(&mut self, object: EndpointSet) {
        self.listing.show(&SetKey::of(&object));
        self.catalog.update(|state| state.apply_set(&object));
    }

    fn on_delete(&mut self, object: EndpointSet) {
        self.catalog
            .update(|state| state.remove_set(&SetKey::of(&object)));
    }

    fn on_init_done(&mut self, _: &str) {
        if let Some(listed) = self.listing.end() {
            self.catalog.update(|state| state.end_sets(&listed));
        }
        self.catalog.listed(ENDPOINT_SETS);
    }

    fn on_error(&mut self, error: &Error) {
        warn("host", ENDPOINT_SETS, error);
        let (now, must_list) = (Timestamp::now(), error.needs_relist());
        self.catalog
            .refresh_host(ENDPOINT_SETS, |host| host.stale(now, must_list));
    }

    fn on_silence(&mut self) {
        let now = Timestamp::now();
        self.catalog
            .refresh_host(ENDPOINT_SETS, |host| host.stale(now, false));
    }

    fn on_caught_up(&mut self) {
        self.catalog
            .refresh_host(ENDPOINT_SETS, Freshness::caught_up);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        skipped("host", ENDPOINT_SETS, object);
        match (&object.namespace, &object.name) {
            (Some(namespace), Some(name)) if object.deleted => {
                let key = SetKey::new(&**namespace, &**name);
                self.catalog.update(|state| state.remove_set(&key));
            }
            _ => self.listing.unreadable(),
        }
    }
}

impl EventHandler<SourceObject> for Sources {
    fn on_init(&mut self) {
        self.listing.begin();
    }

    fn on_apply(&mut self, object: SourceObject) {
        let key = object.key(self.kind);
        self.catalog
            .update(|state| state.apply_source(&key, object.into_source()));
        self.listing.show(&key);
    }

    fn on_delete(&mut self, object: SourceObject) {
        let key = object.key(self.kind);
        self.catalog.update(|state| state.remove_source(&key));
    }

    fn on_init_done(&mut self, _: &str) {
        if let Some(listed) = self.listing.end() {
            let kind = self.kind;
            self.catalog
                .update(|state| state.end_sources(kind, &listed));
        }
        self.catalog.listed(sources(self.kind));
    }

    fn on_error(&mut self, error: &Error) {
        warn("host", sources(self.kind), error);
        let (now, must_list) = (Timestamp::now(), error.needs_relist());
        self.catalog
            .refresh_host(sources(self.kind), |host| host.stale(now, must_list));
    }

    fn on_silence(&mut self) {
        let now = Timestamp::now();
        self.catalog
            .refresh_host(sources(self.kind), |host| host.stale(now, false));
    }

    fn on_caught_up(&mut self) {
        self.catalog
            .refresh_host(sources(self.kind), Freshness::caught_up);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        skipped("host", sources(self.kind), object);
        self.listing.unreadable();
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

impl Services {
    fn refresh(&self, change: impl FnOnce(&mut Freshness)) {
        self.catalog
            .update(|state| state.refresh_services(&self.member, change));
    }
}

impl EventHandler<ServiceObject> for Services {
    fn on_init(&mut self) {
        self.listing.begin();
    }

    fn on_apply(&mut self, service: ServiceObject) {
        let key = service.key();
        self.catalog
            .update(|state| state.apply_service(&self.member, &key, service.into_service()));
        self.listing.show(&key);
    }

    fn on_delete(&mut self, service: ServiceObject) {
        self.catalog
            .update(|state| state.apply_service(&self.member, &service.key(), None));
    }

    fn on_init_done(&mut self, _: &str) {
        if let Some(listed) = self.listing.end() {
            self.catalog
                .update(|state| state.end_services(&self.member, &listed));
        }
        self.refresh(Freshness::listed);
    }

    fn on_error(&mut self, error: &Error) {
        warn(&self.member, "Services", error);
        let (now, must_list) = (Timestamp::now(), error.needs_relist());
        self.refresh(|services| services.stale(now, must_list));
    }

    fn on_silence(&mut self) {
        let now = Timestamp::now();
        self.refresh(|services| services.stale(now, false));
    }

    fn on_caught_up(&mut self) {
        self.refresh(Freshness::caught_up);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        skipped(&self.member, "Services", object);
        match (&object.namespace, &object.name) {
            (Some(namespace), Some(name)) if object.deleted => {
                let key = ServiceKey::new(&**namespace, &**name);
                self.catalog
                    .update(|state| state.apply_service(&self.member, &key, None));
            }
            _ => self.listing.unreadable(),
        }
    }
}

impl EventHandler<NodeObject> for Nodes {
    fn on_init(&mut self) {}

    fn on_apply(&mut self, node: NodeObject) {
        self.catalog
            .update(|state| state.apply_node(&self.member, node));
    }

    fn on_delete(&mut self, node: NodeObject) {
        self.catalog
            .update(|state| state.remove_node(&self.member, &node.metadata.name));
    }

    fn on_init_done(&mut self, _: &str) {}

    // Without nodes, endpoints have no zone.
    fn on_error(&mut self, error: &Error) {
        warn(&self.member, "Nodes", error);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        skipped(&self.member, "Nodes", object);
    }
}
