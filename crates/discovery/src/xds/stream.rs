//! One stream: requests and changes in, as many responses as the client reads.

use std::{collections::HashSet, sync::Arc};

use futures::{
    FutureExt, Stream, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream, SelectAll},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{
    access::Caller,
    catalog::Catalog,
    metrics::DiscoveryMetrics,
    set::SetKey,
    xds::{
        client::{Ask, Client},
        protocol::Protocol,
        rights::{Permitted, Right, Rights},
    },
};

/// A client, and what it follows.
struct Connection<R> {
    catalog: Arc<Catalog>,
    metrics: DiscoveryMetrics,
    requests: BoxStream<'static, Result<R, Status>>,
    client: Client,
    /// The name of the client.
    node: String,
    changes: SelectAll<BoxStream<'static, Change>>,
    /// The sets whose changes these are.
    watched: HashSet<SetKey>,
    /// Whether there may be others to watch.
    must_watch: bool,
    others: watch::Receiver<()>,
    rights: Rights,
    /// The end of the stream.
    end: BoxFuture<'static, Status>,
    has_failed: bool,
}

/// What happened to a set.
#[derive(Debug)]
enum Change {
    Changed(SetKey),
    Ended(SetKey),
}

/// The responses to `requests` of `caller`, until these end, or `cancel`.
pub(super) fn responses<P: Protocol>(
    (catalog, metrics): (Arc<Catalog>, DiscoveryMetrics),
    caller: Caller,
    requests: BoxStream<'static, Result<P::Request, Status>>,
    cancel: CancellationToken,
) -> impl Stream<Item = Result<P::Response, Status>> + Send + use<P> {
    let connection = Connection {
        others: catalog.other_changes(),
        catalog,
        metrics,
        requests,
        client: Client::default(),
        node: String::new(),
        changes: SelectAll::new(),
        watched: HashSet::new(),
        must_watch: false,
        rights: Rights::new(caller.clone()),
        end: end(caller, cancel).boxed(),
        has_failed: false,
    };
    stream::unfold(connection, |mut connection| async {
        if connection.has_failed {
            return None;
        }
        let response = connection.next::<P>().await?;
        connection.has_failed = response.is_err();
        Some((response, connection))
    })
}

impl<R> Connection<R> {
    /// The next response; `None` once the client has left.
    async fn next<P: Protocol<Request = R>>(&mut self) -> Option<Result<P::Response, Status>> {
        loop {
            if self.catalog.ready().is_ok() {
                self.watch_sets();
                let (catalog, rights) = (&*self.catalog, &self.rights);
                let world = Permitted { catalog, rights };
                if let Some(response) = self.client.next(&world, P::SAYS_REMOVED) {
                    self.metrics.count_xds(response.kind.as_str());
                    return Some(Ok(P::response(&self.client, response)));
                }
            }
            tokio::select! {
                request = self.requests.next() => {
                    // An error is the end of the connection.
                    if let Some(ask) = P::ask(request?.ok()?)
                        && let Err(status) = self.ask(ask)
                    {
                        return Some(Err(status));
                    }
                }
                Some(change) = self.changes.next() => self.changed(change),
                _ = self.others.changed() => {
                    self.client.all_changed();
                    self.must_watch = true;
                }
                (key, right) = self.rights.changed() => self.permitted(&key, right),
                status = &mut self.end => return Some(Err(status)),
            }
        }
    }

    fn ask(&mut self, ask: Ask) -> Result<(), Status> {
        if let Some(node) = &ask.node {
            self.node = reflector::printable(node);
        }
        if let Some(error) = &ask.rejection {
            self.metrics.count_xds_rejection();
            let (node, kind) = (&self.node, ask.kind.as_str());
            tracing::warn!(
                client = node,
                kind,
                error,
                "an xDS client does not use a response"
            );
        }
        let asked = self.client.ask(ask);
        let has_new = asked.map_err(|error| Status::resource_exhausted(error.to_string()))?;
        // Most requests only confirm a response.
        self.must_watch |= has_new;
        Ok(())
    }

    fn changed(&mut self, change: Change) {
        match change {
            Change::Changed(key) => self.client.set_changed(&key),
            Change::Ended(key) => {
                self.watched.remove(&key);
                self.rights.forget(&key);
                self.client.set_changed(&key);
                self.must_watch = true;
            }
        }
    }

    fn permitted(&mut self, key: &SetKey, right: Right) {
        if right == Right::Denied {
            let node = &self.node;
            tracing::info!(client = node, set = %key, "an xDS client may not ask for a set: for it, there is none");
        }
        self.client.set_changed(key);
    }

    /// Follows the sets of all resources that the client wants.
    fn watch_sets(&mut self) {
        if !std::mem::take(&mut self.must_watch) {
            return;
        }
        let mut keys = self.client.sets();
        if self.client.wants_all() {
            keys.extend(self.catalog.keys());
        }
        keys.retain(|key| !self.watched.contains(key));
        for key in keys {
            if let Some(receiver) = self.catalog.changes(&key) {
                self.watched.insert(key.clone());
                self.rights.want(&key);
                // It may have changed since it was looked at.
                self.client.set_changed(&key);
                self.changes.push(changes(key, receiver).boxed());
            }
        }
    }
}

/// The end of a stream: of the service, or of the time for which the client is known.
async fn end(caller: Caller, cancel: CancellationToken) -> Status {
    tokio::select! {
        () = cancel.cancelled() => Status::unavailable("this replica is stopping"),
        status = caller.term() => status,
    }
}

/// The changes of a set, and its end.
fn changes(key: SetKey, receiver: watch::Receiver<u64>) -> impl Stream<Item = Change> {
    let ended = Change::Ended(key.clone());
    let changed = stream::unfold((key, receiver), |(key, mut receiver)| async {
        receiver.changed().await.ok()?;
        Some((Change::Changed(key.clone()), (key, receiver)))
    });
    changed.chain(stream::once(async { ended }))
}
