//! What goes on for one member: its keeper, the source of its clients, its informer.

use std::{collections::VecDeque, sync::Arc};

use cluster_informer::{ChangeHandler, InformerSettings, MemberInformer, MemberView};
use kube::Client;
use reflector::ClientSender;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    MemberSecrets, Registry,
    connection::{Connected, Connection, Report},
    kubeconfig::Kubeconfig,
    objects::ObjectKeeper,
    registry::{Credentials, Trouble},
    renewal::{Renewal, subject},
    sources::{Follow, Origin, Way},
};
use crate::{
    clock::Clock, config::Config, election::Fence, event::Event, executor::MemberAccess,
    reconcile::Reconciler,
};

/// Notices that are kept of a member without a MemberCluster.
const UNTOLD: usize = 8;

/// What all members have in common.
pub(crate) struct Tools {
    pub(crate) reconciler: Arc<Reconciler>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) host: Client,
    pub(crate) fence: Fence,
    pub(crate) federation: Arc<str>,
    pub(crate) secrets: MemberSecrets,
    pub(crate) config: Config,
    pub(crate) informer_settings: InformerSettings,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) tasks: TaskTracker,
    pub(crate) cancel: CancellationToken,
}

/// One member.
pub(super) struct Link {
    name: String,
    /// Ends all that goes on for it.
    cancel: CancellationToken,
    followed: Option<Followed>,
    /// Ends what makes clients of its source, and what renews its token.
    source: CancellationToken,
    informer: Option<Informer>,
    /// What people were told of its kubeconfig.
    warnings: Vec<&'static str>,
    /// What they are told once there is a MemberCluster that events can be about.
    untold: VecDeque<Event>,
}

/// What follows a member.
struct Informer {
    client: ClientSender,
    cancel: CancellationToken,
    /// The address of the API server it follows, if that is known.
    server: Option<String>,
}

/// By what a member is followed, or is to be.
struct Followed {
    origin: Origin,
    /// The origin, as people are told of it.
    place: String,
    number: u64,
    server: Option<String>,
    /// The Secret's name and its text, where the token in it is to be renewed.
    renewed: Option<(String, String)>,
    /// Why no client could be made of it.
    failure: Option<String>,
}

impl Link {
    /// Begins with a member that is known to the registry.
    pub(super) fn begin(tools: &Tools, name: &str) -> Self {
        let cancel = tools.cancel.child_token();
        let keeper = ObjectKeeper {
            host: tools.host.clone(),
            registry: Arc::clone(&tools.registry),
            name: name.to_owned(),
            federation: tools.config.federation.clone(),
            clock: tools.clock.clone(),
            call_timeout: tools.config.call_timeout,
            joining_timeout: tools.config.joining_timeout,
        };
        tools.tasks.spawn(keeper.run(cancel.clone()));
        Self {
            name: name.to_owned(),
            source: cancel.child_token(),
            cancel,
            followed: None,
            informer: None,
            warnings: Vec::new(),
            untold: VecDeque::new(),
        }
    }

    /// Follows the member by what a source holds, if it isn't already.
    pub(super) fn follow(
        &mut self,
        tools: &Tools,
        follow: Follow<'_>,
        reports: &mpsc::Sender<Report>,
    ) {
        let same = |it: &&Followed| it.origin == follow.origin && it.number == follow.number;
        if let Some(followed) = self.followed.as_ref().filter(same) {
            let trouble = followed.failure.clone().map(Trouble::invalid);
            self.trouble(tools, trouble);
            return;
        }
        self.source.cancel();
        self.source = self.cancel.child_token();
        let renewed = match &follow.origin {
            Origin::Secret(name) => follow.renewed.map(|text| (name.clone(), text.to_owned())),
            Origin::File => None,
        };
        self.followed = Some(Followed {
            origin: follow.origin,
            place: follow.place,
            number: follow.number,
            server: match follow.way {
                Way::Client(_) => None,
                Way::Kubeconfig(kubeconfig, _) => Some(kubeconfig.server().to_owned()),
            },
            renewed,
            failure: None,
        });
        match follow.way {
            Way::Client(client) => {
                let connected = Connected {
                    client: client.clone(),
                    expires: None,
                };
                self.adopt(tools, connected);
            }
            Way::Kubeconfig(kubeconfig, folder) => {
                self.warn(tools, kubeconfig);
                let connection = Connection {
                    name: self.name.clone(),
                    number: follow.number,
                    kubeconfig: kubeconfig.clone(),
                    folder: folder.clone(),
                    connect: Arc::clone(&tools.secrets.connect),
                    clock: tools.clock.clone(),
                };
                let (source, reports) = (self.source.clone(), reports.clone());
                let connect =
                    async move { source.run_until_cancelled(connection.run(reports)).await };
                tools.tasks.spawn(connect);
            }
        }
    }

    /// Tells what is unsafe about a kubeconfig, unless that was so before.
    fn warn(&mut self, tools: &Tools, kubeconfig: &Kubeconfig) {
        let warnings = kubeconfig.warnings();
        for warning in &warnings {
            if !self.warnings.contains(warning) {
                let message = format!("the kubeconfig is used, but {warning}");
                self.tell(tools, Event::warning("InsecureKubeconfig", message));
            }
        }
        self.warnings = warnings;
    }

    /// Takes in what came of the kubeconfig that is followed; one of an earlier state is passed over.
    pub(super) fn report(&mut self, tools: &Tools, report: Report) {
        let Some(followed) = self
            .followed
            .as_mut()
            .filter(|it| it.number == report.number)
        else {
            return;
        };
        match report.made {
            Ok(connected) => {
                followed.failure = None;
                self.adopt(tools, connected);
            }
            Err(message) => {
                followed.failure = Some(format!("{}: {message}", followed.place));
            }
        }
    }

    /// Follows the member by another client.
    fn adopt(&mut self, tools: &Tools, connected: Connected) {
        let Connected { client, expires } = connected;
        // All clients of members pass here: none can write after the term.
        let client = tools.fence.guard(&client);
        let credentials = Credentials {
            expires,
            trouble: None,
        };
        let server = self.followed.as_ref().and_then(|it| it.server.clone());
        if let Some(informer) = &mut self.informer {
            if server.is_some() && server == informer.server {
                informer.client.renew(client.clone());
            } else {
                informer.client.replace(client.clone());
                informer.server = server;
            }
            tools
                .registry
                .put_client(&self.name, client.clone(), credentials);
            tracing::info!(cluster = %self.name, "member followed by another client");
        } else {
            let access = self.inform(tools, client.clone(), server);
            tools
                .registry
                .put_access(access, credentials, tools.clock.now());
            tracing::info!(cluster = %self.name, "member added");
        }
        self.renew(tools, client);
        tools.reconciler.check_all();
    }

    /// Starts the informer.
    fn inform(&mut self, tools: &Tools, client: Client, server: Option<String>) -> MemberAccess {
        let cancel = self.cancel.child_token();
        let handler: Arc<dyn ChangeHandler> = Arc::clone(&tools.reconciler) as _;
        let clock = tools.clock.clone();
        let informer = MemberInformer::spawn(
            &*self.name,
            client.clone(),
            &tools.federation,
            handler,
            tools.informer_settings.clone(),
            &tools.reconciler.metrics.informers,
            Arc::new(move || clock.now()),
            tools.seed,
            cancel.clone(),
        );
        self.informer = Some(Informer {
            client: informer.client,
            cancel,
            server,
        });
        let store: Arc<dyn MemberView> = informer.store;
        let task = informer.task;
        tools
            .tasks
            .spawn(async move { task.await.expect("an informer does not panic") });
        MemberAccess {
            name: self.name.as_str().into(),
            client,
            store,
            permits: Arc::new(Semaphore::new(tools.config.calls_per_member as usize)),
        }
    }

    /// Renews the token of the Secret, if it asks for that.
    fn renew(&self, tools: &Tools, member: Client) {
        let renewed = self.followed.as_ref().and_then(|it| it.renewed.clone());
        let Some((secret, text)) = renewed else {
            return;
        };
        let renewal = Renewal {
            member,
            host: tools.host.clone(),
            namespace: tools.secrets.namespace.clone(),
            secret,
            text,
            cluster: self.name.clone(),
            registry: Arc::clone(&tools.registry),
            recorder: tools.reconciler.recorder.clone(),
            clock: tools.clock.clone(),
            call_timeout: tools.config.call_timeout,
            cancel: self.source.clone(),
        };
        tools.tasks.spawn(renewal.run());
    }

    /// Something is wrong with its sources, or nothing any more.
    pub(super) fn trouble(&mut self, tools: &Tools, trouble: Option<Trouble>) {
        let event = trouble
            .as_ref()
            .map(|it| Event::warning(it.reason, it.message.clone()));
        if tools.registry.put_trouble(&self.name, trouble) {
            if let Some(event) = event {
                self.tell(tools, event);
            }
            tools.reconciler.check_all();
        }
    }

    /// Uses what it was followed by no longer.
    pub(super) fn stop(&mut self, tools: &Tools) {
        self.source.cancel();
        self.followed = None;
        if let Some(informer) = self.informer.take() {
            informer.cancel.cancel();
        }
        tools.registry.stop(&self.name);
    }

    /// No source tells any more how to reach it: it is lost, after its grace period.
    pub(super) fn remove(&mut self, tools: &Tools) {
        self.stop(tools);
        if tools.registry.put_removed(&self.name, tools.clock.now()) {
            let message = "no kubeconfig is left: the member is lost after its grace period";
            self.tell(tools, Event::warning("Removed", message));
            tools.reconciler.check_all();
        }
    }

    /// Ends all that goes on for it.
    pub(super) fn end(self, tools: &Tools) {
        self.cancel.cancel();
        tools.registry.forget(&self.name);
        tools.reconciler.metrics.informers.remove(&self.name);
        tracing::info!(cluster = %self.name, "member forgotten");
        tools.reconciler.check_all();
    }

    fn tell(&mut self, tools: &Tools, event: Event) {
        tracing::warn!(cluster = %self.name, reason = event.reason, "{}", event.message);
        self.untold.push_back(event);
        self.tell_untold(tools);
    }

    /// Tells what could not be told before, if there is a MemberCluster by now.
    pub(super) fn tell_untold(&mut self, tools: &Tools) {
        if self.untold.is_empty() {
            return;
        }
        if let Some(subject) = subject(&tools.registry, &self.name) {
            for event in self.untold.drain(..) {
                tools.reconciler.recorder.record(&subject, event);
            }
        }
        while self.untold.len() > UNTOLD {
            self.untold.pop_front();
        }
    }
}
