//! Balances requests over the endpoints of a set: a channel of tonic, and a stream of changes for tower.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tokio::sync::mpsc;
use tonic::transport::{self, Channel, channel};
use tower::discover::Change;

use crate::{
    endpoint::{Endpoint, EndpointKey},
    endpoints::Endpoints,
};

/// Changes that wait for the balancer of a channel.
const CHANGES: usize = 1_024;
/// How long a connection to an endpoint may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Where requests go: endpoints with the address of the port.
type Targets = BTreeMap<EndpointKey, (String, Arc<Endpoint>)>;

impl Endpoints {
    /// A gRPC channel that balances over the endpoints, at the port that the set calls `port`.
    ///
    /// Requests go to those that are ready; if there is none, to those that serve; if there is none, to all. They wait while
    /// there is no endpoint: give them a deadline. A connection that fails is an error of the request that needed it; a
    /// retry may go to another endpoint. When the resolver is dropped, the channel keeps the endpoints it has.
    ///
    /// Panics outside of a tokio runtime.
    pub fn channel(&self, port: &str) -> Channel {
        self.channel_with(port, |endpoint| endpoint.connect_timeout(CONNECT))
    }

    /// The same with settings of your own for the connection to each endpoint, such as TLS.
    pub fn channel_with(
        &self,
        port: &str,
        mut configure: impl FnMut(transport::Endpoint) -> transport::Endpoint + Send + 'static,
    ) -> Channel {
        let connection = move |_: &Endpoint, address: &str| {
            let endpoint = transport::Endpoint::from_shared(format!("http://{address}"));
            endpoint.ok().map(&mut configure)
        };
        let (channel, changes) = Channel::balance_channel(CHANGES);
        tokio::spawn(feed(self.discover(port, connection), changes));
        channel
    }

    /// The endpoints as a tower [`Discover`](tower::discover::Discover), for `tower::balance` and the like: `make` makes the
    /// service of an endpoint, from its address at the port that the set calls `port` (`10.0.0.1:80`, `[fd00::1]:80`).
    ///
    /// It has the endpoints that [`Endpoints::channel`] describes. An endpoint with another address replaces the one before.
    pub fn discover<S: Send + 'static>(
        &self,
        port: &str,
        mut make: impl FnMut(&Endpoint, &str) -> S + Send + 'static,
    ) -> BoxStream<'static, Result<Change<EndpointKey, S>, Infallible>> {
        let port = port.to_owned();
        let state = (self.fresh(), Targets::new(), true);
        let batches = stream::unfold(state, move |(mut endpoints, before, is_first)| {
            let port = port.clone();
            async move {
                if !is_first {
                    endpoints.changed().await.ok()?;
                }
                let current = endpoints.current();
                let after =
                    current.map_or_else(Targets::new, |current| targets(&current.endpoints, &port));
                let changes = changes(&before, &after);
                Some((stream::iter(changes), (endpoints, after, false)))
            }
        });
        let changes = batches.flatten().map(move |change| {
            Ok(match change {
                Change::Insert(key, (address, endpoint)) => {
                    Change::Insert(key, make(&endpoint, &address))
                }
                Change::Remove(key) => Change::Remove(key),
            })
        });
        // Balancers go on with what they have when the resolver is dropped: for some of them an end is an error.
        changes.chain(stream::pending()).boxed()
    }
}

/// Passes changes to the balancer of a channel until the channel is dropped. None instead of a connection is an address that
/// is none: the endpoint is left out.
async fn feed(
    mut discover: BoxStream<
        'static,
        Result<Change<EndpointKey, Option<transport::Endpoint>>, Infallible>,
    >,
    changes: mpsc::Sender<channel::Change<EndpointKey, transport::Endpoint>>,
) {
    loop {
        let change = tokio::select! {
            Some(Ok(change)) = discover.next() => change,
            () = changes.closed() => return,
        };
        let change = match change {
            Change::Insert(key, Some(endpoint)) => channel::Change::Insert(key, endpoint),
            Change::Insert(key, None) | Change::Remove(key) => channel::Change::Remove(key),
        };
        if changes.send(change).await.is_err() {
            return;
        }
    }
}

/// The endpoints that requests go to: of those that have an address at the port the ready ones, else the serving ones, else
/// all.
fn targets(endpoints: &[Arc<Endpoint>], port: &str) -> Targets {
    let tiers: [fn(&Endpoint) -> bool; 3] = [
        |endpoint| endpoint.ready,
        |endpoint| endpoint.serving,
        |_| true,
    ];
    let of_tier = |tier: fn(&Endpoint) -> bool| {
        let endpoints = endpoints.iter().filter(|endpoint| tier(endpoint));
        endpoints
            .filter_map(|endpoint| {
                Some((
                    endpoint.key(),
                    (endpoint.authority(port)?, Arc::clone(endpoint)),
                ))
            })
            .collect::<Targets>()
    };
    let mut tiers = tiers.into_iter().map(of_tier);
    tiers
        .find(|targets| !targets.is_empty())
        .unwrap_or_default()
}

/// What is different. New endpoints come first, so that the balancer has some all the time.
fn changes(before: &Targets, after: &Targets) -> Vec<Change<EndpointKey, (String, Arc<Endpoint>)>> {
    let address_before = |key| before.get(key).map(|(address, _)| address);
    let inserted = (after.iter())
        .filter(|(key, (address, _))| address_before(key) != Some(address))
        .map(|(key, target)| Change::Insert(key.clone(), target.clone()));
    let removed = before.keys().filter(|key| !after.contains_key(key));
    inserted
        .chain(removed.cloned().map(Change::Remove))
        .collect()
}

#[cfg(test)]
#[path = "balance_tests.rs"]
mod tests;
