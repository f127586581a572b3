//! The tasks of one member: the writer of its MemberCluster status, the connection that makes its clients, its informer.

use std::{collections::VecDeque, sync::Arc};

use cluster_informer::{
    ChangeHandler, ClusterStore, MemberInformer, MemberView, WatchScope, WorkloadChange,
};
use controller_base::event::Event;
use fedrs_api::{MemberEventReason, MemberReason, WorkloadKey};
use http::Request;
use kube::{Client, client::Body};
use reflector::{ByteBudget, ClientSender};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    connection::{Connected, Connection, Report},
    context::Context,
    kubeconfig::{Insecure, Kubeconfig, KubeconfigError},
    registry::{Credentials, Registry},
    renewal::{Holder, Renewal, involved_object},
    source_error::SourceError,
    sources::Source,
    status_writer::MemberClusterStatusWriter,
};
use crate::{
    executor::{MemberAccess, Slots},
    messages,
    trigger::Trigger,
};

/// What the larger responses of a member may take in memory at a time: two pages of a list, or four objects.
const RESPONSE_BYTES: usize = 16 << 20;
/// The most events that are kept of a member without a MemberCluster.
const EVENTS_KEPT: usize = 8;

/// One member.
pub(super) struct MemberHandle {
    name: String,
    /// Ends all its tasks.
    cancel: CancellationToken,
    followed: Option<FollowedSource>,
    /// Ends the connection that makes clients of its source, and the renewal of its token.
    source: CancellationToken,
    informer: Option<Informer>,
    /// What was requested of the member while it had another informer.
    former: Option<Arc<ClusterStore>>,
    /// The client in use.
    client: Option<Client>,
    discovery: Option<OfDiscovery>,
    /// Warnings about its kubeconfig that were recorded.
    warnings: Vec<Insecure>,
    /// Events to record once the member has a MemberCluster.
    kept_events: VecDeque<Event>,
    /// Of the responses of the member.
    budget: ByteBudget,
}

/// The running informer of a member.
struct Informer {
    client: ClientSender,
    scope: watch::Sender<WatchScope>,
    cancel: CancellationToken,
    store: Arc<ClusterStore>,
    /// The address of the API server that it watches.
    server: String,
}

/// The source of a member's client.
struct FollowedSource {
    source: Arc<Source>,
    /// Why no client could be made from it.
    failure: Option<KubeconfigError>,
}

/// The kubeconfig of discovery whose token is renewed with the client in use.
struct OfDiscovery {
    source: Arc<Source>,
    /// Ends the renewal.
    cancel: CancellationToken,
}

impl Drop for OfDiscovery {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Passes changes of a member's workloads to the reconciler, and those of the whole member to the members' task, which decides
/// what they mean before any set is checked.
struct Changes {
    trigger: Arc<dyn Trigger>,
    registry: Arc<Registry>,
}

impl ChangeHandler for Changes {
    fn on_workload_change(&self, cluster: &str, key: &WorkloadKey, change: WorkloadChange) {
        self.trigger.on_workload_change(cluster, key, change);
    }

    fn on_cluster_change(&self, _cluster: &str) {
        self.registry.contact_changed.notify_one();
    }
}

impl MemberHandle {
    /// Starts the status writer of a member that the registry knows.
    pub(super) fn begin(context: &Arc<Context>, name: &str) -> Self {
        let cancel = context.cancel.child_token();
        let writer = MemberClusterStatusWriter {
            context: Arc::clone(context),
            name: name.to_owned(),
        };
        context.tasks.spawn(writer.run(cancel.clone()));
        Self {
            name: name.to_owned(),
            source: cancel.child_token(),
            cancel,
            followed: None,
            informer: None,
            former: None,
            client: None,
            discovery: None,
            warnings: Vec::new(),
            kept_events: VecDeque::new(),
            budget: ByteBudget::new(RESPONSE_BYTES),
        }
    }

    /// Makes clients of the kubeconfig of `source`, unless it is already in use.
    pub(super) fn follow(
        &mut self,
        context: &Context,
        source: &Arc<Source>,
        reports: &mpsc::Sender<Report>,
    ) {
        if let Some(followed) = &self.followed
            && Arc::ptr_eq(&followed.source, source)
        {
            let error = followed.failure.as_ref();
            let error = error.map(|error| source.invalid(error));
            self.set_source_error(context, error);
            return;
        }
        self.source.cancel();
        self.source = self.cancel.child_token();
        self.followed = Some(FollowedSource {
            source: Arc::clone(source),
            failure: None,
        });
        let Ok(kubeconfig) = &source.kubeconfig else {
            return;
        };
        self.warn(context, kubeconfig);
        let connection = Connection {
            name: self.name.clone(),
            source: Arc::clone(source),
            kubeconfig: kubeconfig.clone(),
            connect: Arc::clone(&context.secrets.connect),
            clock: context.clock.clone(),
        };
        let (source, reports) = (self.source.clone(), reports.clone());
        let connect = async move { source.run_until_cancelled(connection.run(reports)).await };
        context.tasks.spawn(connect);
    }

    /// Records what is insecure about a kubeconfig, unless that was recorded before.
    fn warn(&mut self, context: &Context, kubeconfig: &Kubeconfig) {
        let warnings: Vec<_> = kubeconfig.insecure().collect();
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

    /// Uses the client that was made from the current kubeconfig; ignores that of an earlier one.
    pub(super) fn report(&mut self, context: &Context, report: Report) {
        let Some(followed) = &mut self.followed else {
            return;
        };
        if !Arc::ptr_eq(&followed.source, &report.source) {
            return;
        }
        followed.failure = report.made.as_ref().err().cloned();
        let Ok(Connected {
            client,
            expires,
            namespace,
        }) = report.made
        else {
            return;
        };
        let source = report.source;
        let server = source.kubeconfig.as_ref().map(Kubeconfig::server);
        let server = server.unwrap_or_default().to_owned();
        let credentials = Credentials {
            expires,
            renewal_error: None,
            source: Some(source.origin.source()),
            namespace,
        };
        // All clients of members pass here: none can write after the term, or take the memory of others.
        let client = within_budget(context.fence.guard(&client), &self.budget);
        if let Some(informer) = &mut self.informer {
            if server == informer.server {
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
            let access = self.start_informer(context, client.clone(), server);
            context
                .registry
                .put_access(access, credentials, context.clock.now());
            tracing::info!(cluster = %self.name, "member added");
        }
        let cancel = self.source.clone();
        self.renew(context, Holder::Controller, &client, &source, cancel);
        self.client = Some(client);
        // Starts again with this client.
        self.discovery = None;
        context.trigger.check_all();
    }

    /// Renews the token of discovery in `source`, if that is asked for and the member has a client.
    pub(super) fn renew_of_discovery(&mut self, context: &Context, source: Option<&Arc<Source>>) {
        let renewed = source.filter(|source| source.renewed().is_some());
        let (Some(source), Some(client)) = (renewed, &self.client) else {
            self.discovery = None;
            return;
        };
        let known = self.discovery.as_ref();
        if known.is_some_and(|known| Arc::ptr_eq(&known.source, source)) {
            return;
        }
        let cancel = self.cancel.child_token();
        self.renew(context, Holder::Discovery, client, source, cancel.clone());
        self.discovery = Some(OfDiscovery {
            source: Arc::clone(source),
            cancel,
        });
    }

    /// Starts the informer.
    fn start_informer(
        &mut self,
        context: &Context,
        client: Client,
        server: String,
    ) -> MemberAccess {
        let cancel = self.cancel.child_token();
        let handler = Arc::new(Changes {
            trigger: Arc::clone(&context.trigger),
            registry: Arc::clone(&context.registry),
        });
        let clock = context.clock.clone();
        let informer = MemberInformer::spawn(
            &*self.name,
            client.clone(),
            &context.federation,
            context.watch_scope(&self.name),
            handler,
            context.informer_settings.clone(),
            &context.metrics.informers,
            Arc::new(move || clock.now()),
            member_seed(context.seed, &self.name),
            cancel.clone(),
        );
        self.informer = Some(Informer {
            client: informer.client,
            scope: informer.scope,
            cancel,
            store: Arc::clone(&informer.store),
            server,
        });
        if let Some(former) = self.former.take() {
            informer.store.take_requests_of(&former);
        }
        let store: Arc<dyn MemberView> = informer.store;
        let task = informer.task;
        context
            .tasks
            .spawn(async move { task.await.expect("an informer does not panic") });
        MemberAccess {
            name: self.name.as_str().into(),
            client,
            store,
            slots: Slots::new(context.config.calls_per_member),
        }
    }

    /// Changes which namespaces are watched, if that is due.
    pub(super) fn refresh_scope(&self, context: &Context) {
        if let Some(informer) = &self.informer {
            let scope = context.watch_scope(&self.name);
            informer.scope.send_if_modified(|known| {
                let has_changed = *known != scope;
                *known = scope;
                has_changed
            });
        }
    }

    /// Renews the token in the Secret `source` before it expires, until `cancel`.
    fn renew(
        &self,
        context: &Context,
        holder: Holder,
        member: &Client,
        source: &Source,
        cancel: CancellationToken,
    ) {
        let Some((secret, text)) = source.renewed() else {
            return;
        };
        let renewal = Renewal {
            holder,
            member: member.clone(),
            host: context.host.clone(),
            namespace: context.secrets.namespace.clone(),
            secret: secret.to_owned(),
            text: text.to_owned(),
            cluster: self.name.clone(),
            registry: Arc::clone(&context.registry),
            recorder: context.recorder.clone(),
            clock: context.clock.clone(),
            call_timeout: context.config.call_timeout,
            cancel,
        };
        context.tasks.spawn(renewal.run());
    }

    /// Stores why its source can't be used, or `None` if it can.
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
        self.client = None;
        self.discovery = None;
        if let Some(informer) = self.informer.take() {
            informer.cancel.cancel();
            self.former = Some(informer.store);
        }
        context.registry.stop(&self.name);
    }

    /// The member has no kubeconfig any more: it is lost after its grace period.
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
        context.metrics.remove_member(&self.name);
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
        if let Some(involved) = involved_object(&context.registry, &self.name) {
            for event in self.kept_events.drain(..) {
                context.recorder.record(&involved, event);
            }
        }
        while self.kept_events.len() > EVENTS_KEPT {
            self.kept_events.pop_front();
        }
    }
}

/// A client whose responses are read within `budget`.
fn within_budget(client: Client, budget: &ByteBudget) -> Client {
    let namespace = client.default_namespace().to_owned();
    let valid_until = *client.valid_until();
    let budget = budget.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, budget) = (client.clone(), budget.clone());
        async move {
            let mut response = client.send(request).await?;
            response.extensions_mut().insert(budget);
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, namespace).with_valid_until(valid_until)
}

/// The seed of a member's jitter: members must not be probed all at the same time.
fn member_seed(seed: u64, member: &str) -> u64 {
    seed ^ xxh3_64(member.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_seeds_of_their_own() {
        assert_ne!(member_seed(1, "a"), member_seed(1, "b"));
        assert_eq!(member_seed(1, "a"), member_seed(1, "a"));
    }
}
