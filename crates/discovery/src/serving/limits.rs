//! How much one client, and all clients together, may use at the same time. Clients are told apart by their addresses.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use parking_lot::Mutex;

/// Limits of the service. A client is an IPv4 address, or the /64 of an IPv6 address: hosts choose the rest as they like.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections, of each of the servers.
    pub connections: usize,
    /// Connections of one client, to each of the servers.
    pub connections_per_client: usize,
    /// Calls that follow sets, by gRPC and xDS.
    pub streams: usize,
    /// Calls of one client that follow sets.
    pub streams_per_client: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_client: 1_000,
            streams: 50_000,
            streams_per_client: 5_000,
        }
    }
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limited {
    Connections,
    Streams,
}

/// A limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    /// The one of the client.
    #[error("too many {} of this client: {most} is the most", .what.as_str())]
    OfClient { what: Limited, most: usize },
    /// That of all clients.
    #[error("too many {} of all clients: {most} is the most", .what.as_str())]
    OfAll { what: Limited, most: usize },
}

/// So many may be used at the same time.
#[derive(Debug)]
pub(crate) struct Quota {
    what: Limited,
    most: usize,
    most_per_client: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    all: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// One that is used, until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    quota: Arc<Quota>,
    client: IpAddr,
}

impl Limited {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Streams => "calls that follow sets",
        }
    }
}

impl Exceeded {
    /// The name of the limit, in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::OfClient { what, .. } => match what {
                Limited::Connections => "client_connections",
                Limited::Streams => "client_streams",
            },
            Self::OfAll { what, .. } => match what {
                Limited::Connections => "connections",
                Limited::Streams => "streams",
            },
        }
    }
}

impl Quota {
    pub(crate) fn connections(limits: &Limits) -> Arc<Self> {
        let (most, most_per_client) = (limits.connections, limits.connections_per_client);
        Self::new(Limited::Connections, most, most_per_client)
    }

    pub(crate) fn streams(limits: &Limits) -> Arc<Self> {
        Self::new(Limited::Streams, limits.streams, limits.streams_per_client)
    }

    fn new(what: Limited, most: usize, most_per_client: usize) -> Arc<Self> {
        Arc::new(Self {
            what,
            most,
            most_per_client,
            used: Mutex::default(),
        })
    }

    /// Uses one more for a client.
    ///
    /// # Errors
    /// If a limit is reached.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Result<Share, Exceeded> {
        let (client, what) = (client(address), self.what);
        let mut used = self.used.lock();
        let of_client = used.by_client.get(&client).copied().unwrap_or_default();
        if of_client >= self.most_per_client {
            let most = self.most_per_client;
            return Err(Exceeded::OfClient { what, most });
        }
        if used.all >= self.most {
            let most = self.most;
            return Err(Exceeded::OfAll { what, most });
        }
        used.all += 1;
        used.by_client.insert(client, of_client + 1);
        drop(used);
        let quota = Arc::clone(self);
        Ok(Share { quota, client })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut used = self.quota.used.lock();
        used.all -= 1;
        if let Some(of_client) = used.by_client.get_mut(&self.client) {
            *of_client -= 1;
            if *of_client == 0 {
                used.by_client.remove(&self.client);
            }
        }
    }
}

/// What counts as one client.
pub(crate) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn quota(most: usize, most_per_client: usize) -> Arc<Quota> {
        Quota::new(Limited::Streams, most, most_per_client)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_gets_its_share_and_all_clients_no_more_than_there_is() {
        let quota = quota(3, 2);
        let take = |client| quota.take(address(client));
        let first = [take("10.0.0.1").unwrap(), take("10.0.0.1").unwrap()];
        let what = Limited::Streams;
        let error = take("10.0.0.1").unwrap_err();
        assert_eq!(error, Exceeded::OfClient { what, most: 2 });
        assert_eq!(
            error.to_string(),
            "too many calls that follow sets of this client: 2 is the most"
        );
        let second = take("10.0.0.2").unwrap();
        assert_eq!(
            take("10.0.0.2").unwrap_err(),
            Exceeded::OfAll { what, most: 3 }
        );
        drop(first);
        let _third = take("10.0.0.1").unwrap();
        drop(second);
        assert_eq!(quota.used.lock().by_client.len(), 1, "who has left is gone");
    }

    #[rstest]
    #[case::ipv4("10.0.0.1", "10.0.0.2", false)]
    #[case::mapped("10.0.0.1", "::ffff:10.0.0.1", true)]
    #[case::one_network("fd00::1", "fd00::ffff:0:0:2", true)]
    #[case::another_network("fd00::1", "fd00:0:0:1::1", false)]
    fn addresses_of_one_client(#[case] one: &str, #[case] other: &str, #[case] is_same: bool) {
        assert_eq!(client(address(one)) == client(address(other)), is_same);
    }
}
