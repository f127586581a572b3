//! The watch of Maintenances on the host: each has a task, which ends with it.

use std::{collections::BTreeMap, sync::Arc};

use controller_base::listing::Listing;
use fedrs_api::Maintenance;
use kube::ResourceExt;
use reflector::{Error, EventHandler, InvalidObject, format_error};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    look::{Context, MaintenanceTask},
    newest::put,
};

/// Handles the events of the watch.
pub(crate) struct Handler {
    context: Arc<Context>,
    tasks: TaskTracker,
    cancel: CancellationToken,
    known: BTreeMap<String, Entry>,
    listing: Listing,
    /// The last failure, while it lasts: it is logged once.
    failure: Option<String>,
}

/// A Maintenance with a task.
struct Entry {
    object: Arc<watch::Sender<Maintenance>>,
    cancel: CancellationToken,
}

impl Handler {
    pub(crate) fn new(
        context: Arc<Context>,
        tasks: TaskTracker,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            context,
            tasks,
            cancel,
            known: BTreeMap::new(),
            listing: Listing::default(),
            failure: None,
        }
    }

    fn begin(&mut self, name: &str, object: Maintenance) {
        let entry = Entry {
            object: Arc::new(watch::Sender::new(object)),
            cancel: self.cancel.child_token(),
        };
        let task = MaintenanceTask::new(Arc::clone(&self.context), Arc::clone(&entry.object));
        let cancel = entry.cancel.clone();
        self.tasks.spawn(async move {
            cancel.run_until_cancelled(task.run()).await;
        });
        self.known.insert(name.to_owned(), entry);
    }

    fn end(&mut self, name: &str) {
        if let Some(entry) = self.known.remove(name) {
            entry.cancel.cancel();
        }
    }
}

impl EventHandler<Maintenance> for Handler {
    fn on_init(&mut self) {
        self.listing.begin();
    }

    fn on_apply(&mut self, object: Maintenance) {
        let name = object.name_any();
        self.listing.show(&name);
        if object.spec.federation != self.context.federation {
            return self.end(&name);
        }
        match self.known.get(&name) {
            None => self.begin(&name, object),
            Some(entry) => _ = entry.object.send_if_modified(|known| put(known, object)),
        }
    }

    fn on_delete(&mut self, object: Maintenance) {
        self.end(&object.name_any());
    }

    fn on_init_done(&mut self, resource_version: &str) {
        let versions: Vec<_> = self
            .known
            .iter()
            .map(|(name, entry)| {
                let version = entry.object.borrow().resource_version();
                (name.clone(), version.unwrap_or_default())
            })
            .collect();
        let known = versions
            .iter()
            .map(|(name, version)| (name.clone(), name.clone(), version.as_str()));
        for name in self.listing.gone(resource_version, known) {
            self.end(&name);
        }
    }

    fn on_error(&mut self, error: &Error) {
        let failure = match error.code() {
            Some(404) => {
                "the host has no CRD of Maintenances: install those of this version; waiting"
                    .to_owned()
            }
            _ => format!(
                "failed to list or watch Maintenances: {}",
                format_error(error)
            ),
        };
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!("{failure}");
            self.failure = Some(failure);
        }
    }

    fn on_activity(&mut self) {
        self.failure = None;
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        tracing::warn!(error = %object, "skipped a Maintenance that can't be read");
        match (&object.name, object.deleted) {
            (Some(name), true) => self.end(name),
            (Some(name), false) => self.listing.show(name),
            (None, _) => self.listing.unreadable(),
        }
    }
}
