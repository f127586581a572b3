//! The task that owns the list of members: takes in what is told of them, and makes each what its sources say.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use super::{
    MemberEvent,
    connection::Report,
    inbox::{HostInput, Inbox, MemberObject},
    link::{Link, Tools},
    sources::{Sources, Verdict, Way},
};
use crate::check;

/// A member nobody names any more is forgotten so long after its grace period: checks tell of the loss first.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);
/// Connections that may report at once; more wait.
const REPORTS: usize = 64;

/// The task that owns the list of members.
pub(crate) struct Members {
    tools: Tools,
    sources: Sources,
    links: BTreeMap<String, Link>,
    /// Members that nobody names, and when each is forgotten.
    leaving: BTreeMap<String, Timestamp>,
    reports: mpsc::Sender<Report>,
    /// Set once all members that are there have been told.
    complete: watch::Sender<bool>,
}

impl Members {
    /// Takes in what is told of members until everything ends; says through `complete` when all that are there have been
    /// told once.
    pub(crate) async fn run(
        tools: Tools,
        mut events: mpsc::Receiver<MemberEvent>,
        inbox: Arc<Inbox>,
        complete: watch::Sender<bool>,
    ) {
        let cancel = tools.cancel.clone();
        let (reports, mut reported) = mpsc::channel(REPORTS);
        let mut this = Self {
            sources: Sources::new(&tools.secrets.namespace, tools.config.secret_kubeconfigs),
            tools,
            links: BTreeMap::new(),
            leaving: BTreeMap::new(),
            reports,
            complete,
        };
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                Some(event) = events.recv() => this.event(event),
                input = inbox.next() => this.input(input),
                Some(report) = reported.recv() => this.report(report),
                () = this.next_leaves() => this.forget_left(),
            }
            let is_complete = this.sources.is_complete();
            this.complete
                .send_if_modified(|told| !std::mem::replace(told, is_complete) && is_complete);
        }
    }

    fn event(&mut self, event: MemberEvent) {
        let name = match event {
            MemberEvent::Present { name, client } => {
                let place = format!("file {name} of the members' folder");
                self.sources.put_file(&name, place, Ok(Way::Client(client)));
                name
            }
            MemberEvent::Kubeconfig {
                name,
                kubeconfig,
                file,
            } => {
                let folder = file.parent().unwrap_or(&file).to_owned();
                let way = Way::Kubeconfig(kubeconfig, folder);
                self.sources.put_file(&name, place_of(&file), Ok(way));
                name
            }
            MemberEvent::Broken {
                name,
                file,
                message,
            } => {
                self.sources.put_file(&name, place_of(&file), Err(message));
                name
            }
            MemberEvent::Gone { name } => {
                self.sources.remove_file(&name);
                name
            }
            MemberEvent::Emptied => {
                self.sources.empty_folder();
                self.settle_all();
                return;
            }
            MemberEvent::Complete => {
                self.sources.complete_folder();
                self.settle_all();
                return;
            }
        };
        self.settle(&name);
    }

    fn input(&mut self, input: HostInput) {
        match input {
            HostInput::Object(name, object) => self.object(&name, object),
            HostInput::Secret(name, secret) => {
                for member in self.sources.put_secret(&name, secret) {
                    self.settle(&member);
                }
            }
            HostInput::ObjectsListed => {
                self.sources.complete_objects();
                self.settle_all();
            }
            HostInput::SecretsListed => {
                if self.sources.complete_secrets(Ok(())) {
                    self.settle_all();
                }
            }
            HostInput::SecretsUnreadable(message) => {
                if self.sources.complete_secrets(Err(message.clone())) {
                    tracing::warn!("{message}");
                    self.settle_all();
                }
            }
        }
    }

    fn object(&mut self, name: &str, object: Option<MemberObject>) {
        let spec = object.as_ref().map(|it| &it.spec);
        let news = self.sources.put_object(name, spec);
        if object.is_some() {
            self.tools.registry.admit(name, self.tools.clock.now());
        }
        let changed = self.tools.registry.put_object(name, object);
        if let Some(link) = self.links.get_mut(name) {
            link.tell_untold(&self.tools);
        }
        if news {
            self.settle(name);
        }
        if changed {
            self.tools.reconciler.check_all();
        }
    }

    fn report(&mut self, report: Report) {
        let name = report.name.clone();
        if let Some(link) = self.links.get_mut(&name) {
            link.report(&self.tools, report);
            self.settle(&name);
        }
    }

    fn settle_all(&mut self) {
        for name in self.sources.names() {
            self.settle(&name);
        }
    }

    /// Makes the member `name` what its sources say.
    fn settle(&mut self, name: &str) {
        let Self {
            tools,
            sources,
            links,
            leaving,
            reports,
            ..
        } = self;
        let verdict = sources.verdict(name);
        if let Verdict::Gone = verdict {
            if let Some(link) = links.get_mut(name) {
                link.remove(tools);
                let lost_at = tools.registry.lost_at(name);
                let lost_at = lost_at.unwrap_or_else(|| tools.clock.now());
                leaving.insert(name.to_owned(), check::after(lost_at, FORGOTTEN_AFTER));
            }
            return;
        }
        leaving.remove(name);
        tools.registry.admit(name, tools.clock.now());
        tools.registry.keep_object(name, sources.has_file(name));
        let link = links
            .entry(name.to_owned())
            .or_insert_with(|| Link::begin(tools, name));
        match verdict {
            Verdict::Unknown | Verdict::Gone => {}
            Verdict::Follow(follow) => link.follow(tools, follow, reports),
            Verdict::Trouble { trouble, stops } => {
                if stops {
                    link.stop(tools);
                }
                link.trouble(tools, Some(trouble));
            }
            Verdict::Removed => link.remove(tools),
        }
    }

    /// Waits until the next member is to be forgotten.
    async fn next_leaves(&self) {
        match self.leaving.values().min() {
            Some(time) => {
                let left = time.duration_since(self.tools.clock.now());
                tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;
            }
            None => std::future::pending().await,
        }
    }

    fn forget_left(&mut self) {
        let now = self.tools.clock.now();
        let (left, leaving) = std::mem::take(&mut self.leaving)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, time)| *time <= now);
        self.leaving = leaving;
        for name in left.keys() {
            if let Some(link) = self.links.remove(name) {
                link.end(&self.tools);
            }
        }
    }
}

/// A file of the folder, as people are told of it.
fn place_of(file: &Path) -> String {
    format!("file {}", file.display())
}
