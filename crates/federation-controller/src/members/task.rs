//! The task that owns the list of members: reads their sources, and starts, changes or ends each member accordingly.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use controller_base::watchdog::Watched;
use fedrs_api::MemberCluster;
use jiff::Timestamp;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    MemberEvent,
    connection::Report,
    context::Context,
    inbox::{HostInput, Inbox},
    member_handle::MemberHandle,
    sources::{ResolvedSource, Sources},
};
use crate::check;

/// A member without any source is forgotten this long after its grace period, so that checks report the loss first.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);
/// How often outages are evaluated; a change of a member's health does so at once.
const OBSERVATION_PERIOD: Duration = Duration::from_secs(1);
/// Reports of connections that may wait for the task.
const REPORTS: usize = 64;

/// The task that owns the list of members.
pub(crate) struct Members {
    context: Arc<Context>,
    sources: Sources,
    handles: BTreeMap<String, MemberHandle>,
    /// Members without any source, and when each is forgotten.
    leaving: BTreeMap<String, Timestamp>,
    reports: mpsc::Sender<Report>,
    /// Set once all sources have been read.
    complete: watch::Sender<bool>,
}

impl Members {
    /// Runs until the end of the term. Sets `complete` once all sources have been read.
    pub(crate) async fn run(
        context: Context,
        mut events: mpsc::Receiver<MemberEvent>,
        inbox: Arc<Inbox>,
        complete: watch::Sender<bool>,
        watched: Watched,
    ) {
        let cancel = context.cancel.clone();
        let (reports, mut reported) = mpsc::channel(REPORTS);
        let mut this = Self {
            sources: Sources::new(
                &context.secrets.namespace,
                context.config.secret_kubeconfigs,
            ),
            context: Arc::new(context),
            handles: BTreeMap::new(),
            leaving: BTreeMap::new(),
            reports,
            complete,
        };
        let mut ticks = tokio::time::interval(OBSERVATION_PERIOD);
        loop {
            // At each tick at the latest.
            watched.beat();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                () = this.context.registry.contact_changed.notified() => this.observe(true),
                _ = ticks.tick() => {
                    this.observe(false);
                    this.refresh_scopes();
                }
                Some(event) = events.recv() => this.event(event),
                input = inbox.next() => this.input(input),
                Some(report) = reported.recv() => this.report(report),
                () = this.next_leaves() => this.forget_left(),
            }
            let is_complete = this.sources.is_complete();
            this.complete
                .send_if_modified(|known| !std::mem::replace(known, is_complete) && is_complete);
        }
    }

    /// Decides what the outages of members mean. If that has changed, or what members show, all sets are checked.
    fn observe(&self, members_changed: bool) {
        let has_changed = self.context.registry.observe(Instant::now());
        if members_changed || has_changed {
            self.context.trigger.check_all();
        }
    }

    /// Keeps namespaces watched that members no longer take, until they are empty.
    fn refresh_scopes(&self) {
        for handle in self.handles.values() {
            handle.refresh_scope(&self.context);
        }
    }

    fn event(&mut self, event: MemberEvent) {
        match event {
            MemberEvent::Kubeconfig {
                name,
                place,
                kubeconfig,
            } => {
                self.sources.put_file(&name, place, kubeconfig);
                self.converge(&name);
            }
            MemberEvent::Gone { name } => {
                self.sources.remove_file(&name);
                self.converge(&name);
            }
            MemberEvent::Emptied => {
                self.sources.empty_directory();
                self.converge_all();
            }
            MemberEvent::Complete => {
                self.sources.complete_directory();
                self.converge_all();
            }
        }
    }

    fn input(&mut self, input: HostInput) {
        match input {
            HostInput::Object(name, object) => self.object(&name, object.map(|object| *object)),
            HostInput::Secret(name, secret) => {
                for member in self.sources.put_secret(&name, secret) {
                    self.converge(&member);
                }
            }
            HostInput::ObjectsListed => {
                self.sources.complete_objects();
                self.converge_all();
            }
            HostInput::SecretsListed(listed) => {
                if self.sources.complete_secrets(listed.clone()) {
                    if let Err(error) = listed {
                        tracing::warn!("{error}");
                    }
                    self.converge_all();
                }
            }
        }
    }

    fn object(&mut self, name: &str, object: Option<MemberCluster>) {
        let spec = object.as_ref().map(|object| &object.spec);
        let has_other_source = self.sources.put_object(name, spec);
        if object.is_some() {
            let initial = !self.sources.is_complete();
            self.context
                .registry
                .admit(name, initial, self.context.clock.now());
        }
        let changed = self.context.registry.put_object(name, object);
        if let Some(handle) = self.handles.get_mut(name) {
            handle.record_kept(&self.context);
            handle.refresh_scope(&self.context);
        }
        if has_other_source {
            self.converge(name);
        }
        if changed {
            self.observe(true);
        }
    }

    fn report(&mut self, report: Report) {
        let name = report.name.clone();
        if let Some(handle) = self.handles.get_mut(&name) {
            handle.report(&self.context, report);
            self.converge(&name);
        }
    }

    fn converge_all(&mut self) {
        for name in self.sources.names() {
            self.converge(&name);
        }
    }

    /// Starts, changes or ends the member `name` as its sources say.
    fn converge(&mut self, name: &str) {
        let Self {
            context,
            sources,
            handles,
            leaving,
            reports,
            ..
        } = self;
        let resolved = sources.resolve(name);
        if let ResolvedSource::Gone = resolved {
            if let Some(handle) = handles.get_mut(name) {
                handle.remove(context);
                let lost_at = context.registry.lost_at(name);
                let lost_at = lost_at.unwrap_or_else(|| context.clock.now());
                leaving.insert(name.to_owned(), check::after(lost_at, FORGOTTEN_AFTER));
            }
            return;
        }
        leaving.remove(name);
        context
            .registry
            .admit(name, !sources.is_complete(), context.clock.now());
        context.registry.keep_object(name, sources.has_file(name));
        let handle = handles
            .entry(name.to_owned())
            .or_insert_with(|| MemberHandle::begin(context, name));
        match resolved {
            ResolvedSource::Unknown | ResolvedSource::Gone => {}
            ResolvedSource::Follow(source) => handle.follow(context, &source, reports),
            ResolvedSource::Error(error) => {
                if error.withdraws_credentials() {
                    handle.stop(context);
                }
                handle.set_source_error(context, Some(error));
            }
            ResolvedSource::Removed => handle.remove(context),
        }
        handle.renew_of_discovery(context, sources.of_discovery(name));
    }

    /// Waits until the next member is to be forgotten.
    async fn next_leaves(&self) {
        match self.leaving.values().min() {
            Some(time) => {
                let left = time.duration_since(self.context.clock.now());
                tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;
            }
            None => std::future::pending().await,
        }
    }

    fn forget_left(&mut self) {
        let now = self.context.clock.now();
        let (left, leaving) = std::mem::take(&mut self.leaving)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, time)| *time <= now);
        self.leaving = leaving;
        for name in left.keys() {
            if let Some(handle) = self.handles.remove(name) {
                handle.end(&self.context);
            }
        }
    }
}
