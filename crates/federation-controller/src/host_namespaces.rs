//! The namespaces of the host: their labels decide which members take them, and some are copied to the members.

use std::{
    collections::{BTreeMap, HashSet},
    mem,
    sync::Arc,
};

use controller_base::{
    error_text::format_error,
    list_progress::{ListProgress, ListState},
};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::LabelSelector};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use parking_lot::RwLock;
use reflector::{Error, EventHandler};
use tokio::sync::watch;

use crate::{host_lists::list_progress, messages, trigger::Trigger};

/// The path of the host's namespaces.
pub(crate) const PATH: &str = "/api/v1/namespaces";

type Labels = BTreeMap<String, String>;

/// The labels of the host's namespaces. One task writes, everybody reads.
#[derive(Debug, Default)]
pub(crate) struct HostNamespaces {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    labels: BTreeMap<String, Labels>,
    /// Why the host does not show them.
    forbidden: Option<String>,
}

/// Why the labels of a namespace are not known, or whether they are selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NamespaceError {
    /// The controller may not list the namespaces of the host.
    #[error("{0}")]
    Forbidden(String),
    /// The host has not shown the namespace of this name: it may just have been created.
    #[error("{}", messages::host_namespace_unknown(.0))]
    NotShown(String),
    /// The selector of the member is invalid.
    #[error("{}", messages::invalid_namespace_selector(.0))]
    InvalidSelector(String),
}

impl HostNamespaces {
    /// The labels of `namespace`.
    pub(crate) fn labels(&self, namespace: &str) -> Result<Labels, NamespaceError> {
        let state = self.state.read();
        match (state.labels.get(namespace), &state.forbidden) {
            (Some(labels), _) => Ok(labels.clone()),
            (None, Some(error)) => Err(NamespaceError::Forbidden(error.clone())),
            (None, None) => Err(NamespaceError::NotShown(namespace.to_owned())),
        }
    }

    /// Whether `selector` selects `namespace`.
    pub(crate) fn selects(
        &self,
        selector: &LabelSelector,
        namespace: &str,
    ) -> Result<bool, NamespaceError> {
        let selector = Selector::try_from(selector.clone())
            .map_err(|error| NamespaceError::InvalidSelector(error.to_string()))?;
        Ok(selector.matches(&self.labels(namespace)?))
    }

    /// Stores the labels of a namespace, or that it is gone. Returns whether that changes anything.
    pub(crate) fn put(&self, namespace: &str, labels: Option<Labels>) -> bool {
        let mut state = self.state.write();
        match labels {
            Some(labels) => {
                state.labels.insert(namespace.to_owned(), labels.clone()) != Some(labels)
            }
            None => state.labels.remove(namespace).is_some(),
        }
    }
}

/// Stores the namespaces that the host shows. A change of a namespace causes checks of the sets in it.
pub(crate) struct NamespaceHandler {
    namespaces: Arc<HostNamespaces>,
    trigger: Arc<dyn Trigger>,
    progress: ListProgress,
    /// What the current list has shown.
    seen: HashSet<String>,
    /// What was logged last: each attempt fails in the same way until the permission is granted.
    warned: Option<String>,
}

impl NamespaceHandler {
    pub(crate) fn new(
        namespaces: Arc<HostNamespaces>,
        trigger: Arc<dyn Trigger>,
        listed: watch::Sender<ListState>,
    ) -> Self {
        Self {
            namespaces,
            trigger,
            progress: list_progress("Namespaces", listed),
            seen: HashSet::new(),
            warned: None,
        }
    }
}

impl EventHandler<Namespace> for NamespaceHandler {
    fn on_init(&mut self) {
        self.seen.clear();
    }

    fn on_apply(&mut self, namespace: Namespace) {
        let name = namespace.name_any();
        let labels = namespace.metadata.labels.unwrap_or_default();
        if self.namespaces.put(&name, Some(labels)) {
            self.trigger.check_namespace(&name);
        }
        self.seen.insert(name);
    }

    fn on_delete(&mut self, namespace: Namespace) {
        self.namespaces.put(&namespace.name_any(), None);
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        let seen = mem::take(&mut self.seen);
        let mut state = self.namespaces.state.write();
        state.labels.retain(|name, _| seen.contains(name));
        state.forbidden = None;
        drop(state);
        self.progress.complete();
    }

    /// A controller that may not list namespaces works for all members without a selector. What was listed before stays known.
    fn on_error(&mut self, error: &Error) {
        if error.code() == Some(403) {
            let text = messages::may_not_list("Namespaces", &format_error(error));
            if self.warned.as_ref() != Some(&text) {
                tracing::warn!("{text}");
                self.warned = Some(text.clone());
            }
            self.namespaces.state.write().forbidden = Some(text);
            self.progress.complete();
        } else {
            self.progress.failed(error);
        }
    }

    fn on_activity(&mut self) {
        self.progress.answered();
    }
}
