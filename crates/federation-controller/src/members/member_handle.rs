//! The tasks of one member: the writer of its MemberCluster status, the connection that makes its clients, its informer.

use std::{collections::VecDeque, sync::Arc};

use cluster_informer::{ChangeHandler, MemberInformer, MemberView};
use fedrs_api::{MemberEventReason, MemberReason};
use kube::Client;
use reflector::ClientSender;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Connected, Connection, Report},
    context::Context,
    kubeconfig::{Kubeconfig, KubeconfigError},
    registry::Credentials,
    renewal::{Renewal, subject},
    source_error::SourceError,
    sources::{ClientSource, Follow, Origin},
    status_writer::MemberClusterStatusWriter,
};
use crate::{event::Event, executor::MemberAccess, messages};

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
    /// Warnings about its kubeconfig that were recorded.
    warnings: Vec<&'static str>,
    /// Events to record once the member has a MemberCluster.
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
    /// The origin, for messages.
    place: String,
    number: u64,
    server: Option<String>,
    /// The Secret's name and its text, where the token in it is to be renewed.
    renewed: Option<(String, String)>,
    /// Why no client could be made of it.
    failure: Option<KubeconfigError>,
}

impl Followed {
    fn error(&self) -> Option<SourceError> {
        let error = self.failure.clone()?;
        let place = self.place.clone();
        Some(SourceError::Invalid { place, error })
    }
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
        let same = |followed: &&Followed| {
            followed.origin == follow.origin && followed.number == follow.number
        };
        if let Some(followed) = self.followed.as_ref().filter(same) {
            let error = followed.error();
            self.set_source_error(context, error);
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
            server: match follow.client {
                ClientSource::Client(_) => None,
                ClientSource::Kubeconfig(kubeconfig, _) => Some(kubeconfig.server().to_owned()),
            },
            renewed,
            failure: None,
        });
        match follow.client {
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

    /// Records what is insecure about a kubeconfig, unless that was so before.
    fn warn(&mut self, context: &Context, kubeconfig: &Kubeconfig) {
        let warnings = kubeconfig.warnings();
        for warning in &warnings {
            if !self.warnings.contains(warning) {
                let message = messages::insecure_kubeconfig(warning);
                self.record(
                    context,
                    Event::warning(MemberEventReason::InsecureKubeconfig, message),
                );
            }
        }
        self.warnings = warnings;
    }

    /// Takes in what came of the kubeconfig that is followed; one of an earlier state is passed over.
    pub(super) fn report(&mut self, context: &Context, report: Report) {
        let Some(followed) = self
            .followed
            .as_mut()
            .filter(|followed| followed.number == report.number)
        else {
            return;
        };
        match report.made {
            Ok(connected) => {
                followed.failure = None;
                self.adopt(context, connected);
            }
            Err(error) => followed.failure = Some(error),
        }
    }

    /// Follows the member by another client.
    fn adopt(&mut self, context: &Context, connected: Connected) {
        let Connected { client, expires } = connected;
        // All clients of members pass here: none can write after the term.
        let client = context.fence.guard(&client);
        let credentials = Credentials {
            expires,
            renewal_error: None,
            source: self
                .followed
                .as_ref()
                .map(|followed| followed.origin.source()),
        };
        let server = self
            .followed
            .as_ref()
            .and_then(|followed| followed.server.clone());
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
            tracing::info!(cluster = %self.name, "client of the member replaced");
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
        let renewed = self
            .followed
            .as_ref()
            .and_then(|followed| followed.renewed.clone());
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

    /// Stores why its source can't be used, or that it can.
    pub(super) fn set_source_error(&mut self, context: &Context, error: Option<SourceError>) {
        let event = error
            .as_ref()
            .map(|error| Event::warning(error.reason(), error.to_string()));
        if context.registry.put_source_error(&self.name, error) {
            if let Some(event) = event {
                self.record(context, event);
            }
            context.trigger.check_all();
        }
    }

    /// Stops the informer, and the source of its clients.
    pub(super) fn stop(&mut self, context: &Context) {
        self.source.cancel();
        self.followed = None;
        if let Some(informer) = self.informer.take() {
            informer.cancel.cancel();
        }
        context.registry.stop(&self.name);
    }

    /// It has no kubeconfig any more: it is lost after its grace period.
    pub(super) fn remove(&mut self, context: &Context) {
        self.stop(context);
        if context
            .registry
            .put_removed(&self.name, context.clock.now())
        {
            self.record(
                context,
                Event::warning(MemberReason::Removed, messages::MEMBER_REMOVED),
            );
            context.trigger.check_all();
        }
    }

    /// Ends all its tasks.
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

    /// Records the kept events, if the member has a MemberCluster by now.
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
