//! The tasks of one member: the writer of its MemberCluster status, the connection that makes its clients, its informer.

use std::{collections::VecDeque, sync::Arc};

use cluster_informer::{ChangeHandler, MemberInformer, MemberView};
use kube::Client;
use reflector::ClientSender;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Connected, Connection, Report},
    context::Context,
    kubeconfig::Kubeconfig,
    registry::{Credentials, SourceError},
    renewal::{Renewal, subject},
    sources::{ClientSource, Follow, Origin},
    status_writer::MemberClusterStatusWriter,
};
use crate::{event::Event, executor::MemberAccess};

/// Events that are kept of a member without a MemberCluster.
const EVENTS_KEPT: usize = 8;

/// One member.
pub(super) struct MemberHandle {
    name: String,
    /// Ends all its tasks.
    cancel: CancellationToken,
    followed: Option<Followed>,
    /// Ends what makes clients of its source, and what renews its token.
    source: CancellationToken,
    informer: Option<Informer>,
    /// What people were told of its kubeconfig.
    warnings: Vec<&'static str>,
    /// What they are told once there is a MemberCluster that events can be about.
    kept_events: VecDeque<Event>,
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

impl MemberHandle {
    /// Begins with a member that is known to the registry.
    pub(super) fn begin(context: &Context, name: &str) -> Self {
        let cancel = context.cancel.child_token();
        let writer = MemberClusterStatusWriter {
            host: context.host.clone(),
            registry: Arc::clone(&context.registry),
            name: name.to_owned(),
            federation: context.config.federation.clone(),
            clock: context.clock.clone(),
            call_timeout: context.config.call_timeout,
            joining_timeout: context.config.joining_timeout,
        };
        context.tasks.spawn(writer.run(cancel.clone()));
        Self {
            name: name.to_owned(),
            source: cancel.child_token(),
            cancel,
            followed: None,
            informer: None,
            warnings: Vec::new(),
            kept_events: VecDeque::new(),
        }
    }

    /// Follows the member by what a source holds, if it isn't already.
    pub(super) fn follow(
        &mut self,
        context: &Context,
        follow: Follow<'_>,
        reports: &mpsc::Sender<Report>,
    ) {
        let same = |it: &&Followed| it.origin == follow.origin && it.number == follow.number;
        if let Some(followed) = self.followed.as_ref().filter(same) {
            let trouble = followed.failure.clone().map(SourceError::invalid);
            self.trouble(context, trouble);
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
                ClientSource::Client(_) => None,
                ClientSource::Kubeconfig(kubeconfig, _) => Some(kubeconfig.server().to_owned()),
            },
            renewed,
            failure: None,
        });
        match follow.way {
            ClientSource::Client(client) => {
                let connected = Connected {
                    client: client.clone(),
                    expires: None,
                };
                self.adopt(context, connected);
            }
            ClientSource::Kubeconfig(kubeconfig, folder) => {
                self.warn(context, kubeconfig);
                let connection = Connection {
                    name: self.name.clone(),
                    number: follow.number,
                    kubeconfig: kubeconfig.clone(),
                    folder: folder.clone(),
                    connect: Arc::clone(&context.secrets.connect),
                    clock: context.clock.clone(),
                };
                let (source, reports) = (self.source.clone(), reports.clone());
                let connect =
                    async move { source.run_until_cancelled(connection.run(reports)).await };
                context.tasks.spawn(connect);
            }
        }
    }

    /// Tells what is unsafe about a kubeconfig, unless that was so before.
    fn warn(&mut self, context: &Context, kubeconfig: &Kubeconfig) {
        let warnings = kubeconfig.warnings();
        for warning in &warnings {
            if !self.warnings.contains(warning) {
                let message = format!("the kubeconfig is used, but {warning}");
                self.record(context, Event::warning("InsecureKubeconfig", message));
            }
        }
        self.warnings = warnings;
    }

    /// Takes in what came of the kubeconfig that is followed; one of an earlier state is passed over.
    pub(super) fn report(&mut self, context: &Context, report: Report) {
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
                self.adopt(context, connected);
            }
            Err(message) => {
                followed.failure = Some(format!("{}: {message}", followed.place));
            }
        }
    }

    /// Follows the member by another client.
    fn adopt(&mut self, context: &Context, connected: Connected) {
        let Connected { client, expires } = connected;
        // All clients of members pass here: none can write after the term.
        let client = context.fence.guard(&client);
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
            context
                .registry
                .put_client(&self.name, client.clone(), credentials);
            tracing::info!(cluster = %self.name, "member followed by another client");
        } else {
            let access = self.inform(context, client.clone(), server);
            context
                .registry
                .put_access(access, credentials, context.clock.now());
            tracing::info!(cluster = %self.name, "member added");
        }
        self.renew(context, client);
        context.trigger.check_all();
    }

    /// Starts the informer.
    fn inform(
        &mut self,
        context: &Context,
        client: Client,
        server: Option<String>,
    ) -> MemberAccess {
        let cancel = self.cancel.child_token();
        let handler: Arc<dyn ChangeHandler> = Arc::clone(&context.trigger) as _;
        let clock = context.clock.clone();
        let informer = MemberInformer::spawn(
            &*self.name,
            client.clone(),
            &context.federation,
            handler,
            context.informer_settings.clone(),
            &context.metrics.informers,
            Arc::new(move || clock.now()),
            context.seed,
            cancel.clone(),
        );
        self.informer = Some(Informer {
            client: informer.client,
            cancel,
            server,
        });
        let store: Arc<dyn MemberView> = informer.store;
        let task = informer.task;
        context
            .tasks
            .spawn(async move { task.await.expect("an informer does not panic") });
        MemberAccess {
            name: self.name.as_str().into(),
            client,
            store,
            permits: Arc::new(Semaphore::new(context.config.calls_per_member as usize)),
        }
    }

    /// Renews the token of the Secret, if it asks for that.
    fn renew(&self, context: &Context, member: Client) {
        let renewed = self.followed.as_ref().and_then(|it| it.renewed.clone());
        let Some((secret, text)) = renewed else {
            return;
        };
        let renewal = Renewal {
            member,
            host: context.host.clone(),
            namespace: context.secrets.namespace.clone(),
            secret,
            text,
            cluster: self.name.clone(),
            registry: Arc::clone(&context.registry),
            recorder: context.recorder.clone(),
            clock: context.clock.clone(),
            call_timeout: context.config.call_timeout,
            cancel: self.source.clone(),
        };
        context.tasks.spawn(renewal.run());
    }

    /// Something is wrong with its sources, or nothing any more.
    pub(super) fn trouble(&mut self, context: &Context, trouble: Option<SourceError>) {
        let event = trouble
            .as_ref()
            .map(|it| Event::warning(it.reason, it.message.clone()));
        if context.registry.put_trouble(&self.name, trouble) {
            if let Some(event) = event {
                self.record(context, event);
            }
            context.trigger.check_all();
        }
    }

    /// Uses what it was followed by no longer.
    pub(super) fn stop(&mut self, context: &Context) {
        self.source.cancel();
        self.followed = None;
        if let Some(informer) = self.informer.take() {
            informer.cancel.cancel();
        }
        context.registry.stop(&self.name);
    }

    /// No source tells any more how to reach it: it is lost, after its grace period.
    pub(super) fn remove(&mut self, context: &Context) {
        self.stop(context);
        if context
            .registry
            .put_removed(&self.name, context.clock.now())
        {
            let message = "no kubeconfig is left: the member is lost after its grace period";
            self.record(context, Event::warning("Removed", message));
            context.trigger.check_all();
        }
    }

    /// Ends all that goes on for it.
    pub(super) fn end(self, context: &Context) {
        self.cancel.cancel();
        context.registry.forget(&self.name);
        context.metrics.informers.remove(&self.name);
        tracing::info!(cluster = %self.name, "member forgotten");
        context.trigger.check_all();
    }

    fn record(&mut self, context: &Context, event: Event) {
        tracing::warn!(cluster = %self.name, reason = event.reason, "{}", event.message);
        self.kept_events.push_back(event);
        self.record_kept(context);
    }

    /// Tells what could not be told before, if there is a MemberCluster by now.
    pub(super) fn record_kept(&mut self, context: &Context) {
        if self.kept_events.is_empty() {
            return;
        }
        if let Some(subject) = subject(&context.registry, &self.name) {
            for event in self.kept_events.drain(..) {
                context.recorder.record(&subject, event);
            }
        }
        while self.kept_events.len() > EVENTS_KEPT {
            self.kept_events.pop_front();
        }
    }
}
