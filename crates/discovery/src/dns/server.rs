//! The edge: sockets by UDP and TCP.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::net::{TcpListener, UdpSocket};
use tokio_util::sync::CancellationToken;

use super::{
    handler::Handler,
    tcp, udp,
    zone::{InvalidDomain, Zone},
};
use crate::{
    catalog::Catalog,
    metrics::DiscoveryMetrics,
    serving::{Limits, Quota, ServerMetrics},
};

/// What the DNS server answers.
#[derive(Clone, Debug)]
pub struct DnsConfig {
    /// The domain: the zone is `endpoints.DOMAIN`.
    pub domain: String,
    /// For how long clients may keep an answer.
    pub ttl: Duration,
    /// The most queries a second of one client, by UDP and by TCP each; any number if it is 0. A client is an IPv4 address, or the
    /// /64 of an IPv6 address.
    pub queries_per_client: u32,
    /// The most connections by TCP.
    pub limits: Limits,
}

/// Answers DNS queries by UDP and TCP.
pub struct DnsServer {
    handler: Arc<Handler>,
    sockets: Option<(UdpSocket, TcpListener)>,
    connections: Arc<Quota>,
    metrics: ServerMetrics,
}

impl DnsServer {
    /// A server of what `catalog` has. Answers nothing yet.
    ///
    /// # Errors
    /// If the domain is no DNS name.
    pub fn new(
        catalog: Arc<Catalog>,
        metrics: DiscoveryMetrics,
        config: &DnsConfig,
    ) -> Result<Self, InvalidDomain> {
        let ttl = u32::try_from(config.ttl.as_secs()).unwrap_or(u32::MAX);
        let zone = Zone::new(&config.domain, ttl)?;
        let servers = metrics.servers.clone();
        let handler = Handler::new(catalog, metrics, zone, config.queries_per_client);
        Ok(Self {
            handler: Arc::new(handler),
            sockets: None,
            connections: Quota::connections(&config.limits),
            metrics: servers,
        })
    }

    /// Answers on this address. Returns it, with its port.
    ///
    /// # Errors
    /// If it is in use, for UDP or TCP.
    pub async fn listen(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let socket = UdpSocket::bind(address).await?;
        self.sockets = Some((socket, listener));
        Ok(address)
    }

    /// Answers until `cancel`.
    pub async fn run(self, cancel: CancellationToken) {
        let Some((socket, listener)) = self.sockets else {
            return cancel.cancelled().await;
        };
        let limits = (self.connections, self.metrics);
        tokio::join!(
            udp::answer_all(socket, &self.handler, &cancel),
            tcp::accept(listener, Arc::clone(&self.handler), limits, cancel.clone()),
        );
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
