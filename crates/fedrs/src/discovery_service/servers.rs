//! The servers: their addresses, TLS, authorization and limits.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use discovery::{Limits, Service, Tls, TlsFiles};
use kube::Client;
use tokio::net::TcpListener;

/// Options of the servers.
#[derive(Args, Debug)]
pub(super) struct ServerArgs {
    /// Address to answer HTTP on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9480")]
    http: SocketAddr,
    /// Address to answer gRPC and xDS on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9490")]
    grpc: SocketAddr,
    /// Certificate of the servers for HTTP and gRPC, in PEM. It is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Authorities of client certificates, in PEM: clients need a certificate then
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
    /// Serve HTTP and gRPC without TLS also on addresses that are not loopback ones: the network is trusted, or encrypts itself
    #[arg(long, conflicts_with = "tls_cert")]
    plaintext: bool,
    /// Who may ask for which sets. By default everybody, if both addresses are loopback ones; otherwise it has to be said
    #[arg(long, value_enum, value_name = "MODE")]
    authorization: Option<Authorization>,
    /// Audience that the bearer tokens of clients have to be meant for
    #[arg(long, value_name = "NAME", default_value = "fedrs-discovery")]
    token_audience: String,
    /// Address to answer DNS on, by UDP and TCP. DNS has no TLS, and does not say who asks. By default 127.0.0.1:9453; none with
    /// --authorization=SubjectAccessReview
    #[arg(long, value_name = "ADDRESS")]
    dns: Option<SocketAddr>,
    /// Answer DNS also with --authorization=SubjectAccessReview: everybody who reaches the address of --dns may ask for all sets
    #[arg(long, requires = "dns")]
    anonymous_dns: bool,
    /// The most queries a second of one client address by DNS, by UDP and by TCP each; 0 for any number. A resolver in front of the
    /// service is one client
    #[arg(long, value_name = "NUMBER", default_value_t = QUERIES)]
    max_dns_queries_per_client: u32,
    /// The most connections of one client address, for HTTP, for gRPC, and for DNS by TCP
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections_per_client)]
    max_connections_per_client: usize,
    /// The most connections of all clients, for HTTP, for gRPC, and for DNS by TCP
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// The most calls of one client address that follow sets, by gRPC and xDS
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().streams_per_client)]
    max_watches_per_client: usize,
    /// The most calls of all clients that follow sets, by gRPC and xDS
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().streams)]
    max_watches: usize,
}

/// Who may ask for which sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Authorization {
    /// Everybody, for all sets
    #[value(name = "None")]
    Nobody,
    /// Users of the host, for the sets that they may get there: by a bearer token, or a client certificate
    #[value(name = "SubjectAccessReview")]
    SubjectAccessReview,
}

/// Where DNS is answered, unless something else is said.
const DNS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9453);

/// The most queries a second of one client, unless something else is said: more than a resolver that caches asks.
const QUERIES: u32 = 10_000;

/// What is served to whom has to be said.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unsaid {
    /// A server is reached from elsewhere, without TLS.
    #[error(
        "{flag}={address} is not a loopback address, and needs TLS: give --tls-cert and --tls-key, or --plaintext if the network is trusted"
    )]
    Tls {
        flag: &'static str,
        address: SocketAddr,
    },
    /// A server is reached from elsewhere.
    #[error(
        "{flag}={address} is not a loopback address: give --authorization=SubjectAccessReview, or --authorization=None if everybody who reaches it may ask for all sets"
    )]
    Authorization {
        flag: &'static str,
        address: SocketAddr,
    },
    /// DNS is answered to everybody, and the other servers are not.
    #[error(
        "--dns={0}: DNS does not say who asks: with --authorization=SubjectAccessReview, leave it out, or give --anonymous-dns if everybody who reaches it may ask for all sets"
    )]
    Dns(SocketAddr),
}

impl ServerArgs {
    /// The TLS of the servers, if they have it.
    pub(super) fn tls(&self) -> anyhow::Result<Option<Arc<Tls>>> {
        self.check()?;
        let (Some(certificate), Some(key)) = (self.tls_cert.clone(), self.tls_key.clone()) else {
            return Ok(None);
        };
        let client_ca = self.client_ca.clone();
        let files = TlsFiles {
            certificate,
            key,
            client_ca,
        };
        Ok(Some(Tls::load(files)?))
    }

    /// What is served on other addresses than loopback ones is what somebody has said.
    fn check(&self) -> Result<(), Unsaid> {
        if let Some((flag, address)) = self.remote() {
            if !self.plaintext && self.tls_cert.is_none() {
                return Err(Unsaid::Tls { flag, address });
            }
            if self.authorization.is_none() {
                return Err(Unsaid::Authorization { flag, address });
            }
        }
        match self.dns {
            Some(dns) if self.has_reviews() && !self.anonymous_dns => Err(Unsaid::Dns(dns)),
            _ => Ok(()),
        }
    }

    /// Whether the host says who may ask.
    pub(super) fn has_reviews(&self) -> bool {
        self.authorization == Some(Authorization::SubjectAccessReview)
    }

    /// The audience of tokens, if clients are authorized.
    fn audience(&self) -> Option<String> {
        self.has_reviews().then(|| self.token_audience.clone())
    }

    /// Where DNS is answered, if it is.
    pub(super) fn dns(&self) -> Option<SocketAddr> {
        self.dns.or((!self.has_reviews()).then_some(DNS))
    }

    /// The most queries a second of one client by DNS.
    pub(super) fn queries_per_client(&self) -> u32 {
        self.max_dns_queries_per_client
    }

    /// The service with TLS, authorization and limits. Authorization needs the host.
    pub(super) fn secure(
        &self,
        service: Service,
        tls: Option<Arc<Tls>>,
        host: Option<&Client>,
    ) -> Service {
        let service = service.with_tls(tls).with_limits(self.limits());
        match (self.audience(), host) {
            (Some(audience), Some(host)) => service.with_reviews(host.clone(), audience),
            _ => service,
        }
    }

    /// An address that is reached from elsewhere, and its option.
    fn remote(&self) -> Option<(&'static str, SocketAddr)> {
        let mut servers = [("--http", self.http), ("--grpc", self.grpc)].into_iter();
        servers.find(|(_, address)| !address.ip().to_canonical().is_loopback())
    }

    /// The limits of each server.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections,
            connections_per_client: self.max_connections_per_client,
            streams: self.max_watches,
            streams_per_client: self.max_watches_per_client,
        }
    }

    /// Listens on both addresses: for HTTP, and for gRPC.
    pub(super) async fn bind(&self) -> anyhow::Result<[TcpListener; 2]> {
        let http = TcpListener::bind(self.http).await;
        let http = http.with_context(|| format!("--http={}", self.http))?;
        let grpc = TcpListener::bind(self.grpc).await;
        let grpc = grpc.with_context(|| format!("--grpc={}", self.grpc))?;
        Ok([http, grpc])
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        servers: ServerArgs,
    }

    fn checked(options: &str) -> Result<(), String> {
        let words = ["fedrs"].into_iter().chain(options.split_whitespace());
        let command = Command::try_parse_from(words).map_err(|error| error.to_string())?;
        command.servers.check().map_err(|error| error.to_string())
    }

    #[rstest]
    #[case::defaults("")]
    #[case::loopback("--http 127.9.0.1:0 --grpc [::1]:0")]
    #[case::mapped_loopback("--http [::ffff:127.0.0.1]:0")]
    #[case::tls(
        "--grpc 0.0.0.0:0 --tls-cert tls.crt --tls-key tls.key --authorization SubjectAccessReview"
    )]
    #[case::client_certificates(
        "--grpc 0.0.0.0:0 --tls-cert tls.crt --tls-key tls.key --client-ca ca.crt --authorization None"
    )]
    #[case::plaintext("--grpc 0.0.0.0:0 --http [::]:0 --plaintext --authorization None")]
    #[case::authorization_on_loopback("--authorization SubjectAccessReview")]
    #[case::dns_for_everybody(
        "--authorization SubjectAccessReview --dns 0.0.0.0:53 --anonymous-dns"
    )]
    #[case::dns_beside_servers_for_everybody("--dns 0.0.0.0:53")]
    fn servers_are_local_or_it_is_said_what_they_are(#[case] options: &str) {
        assert_eq!(checked(options), Ok(()));
    }

    #[rstest]
    #[case::http(
        "--http 0.0.0.0:9480",
        "--http=0.0.0.0:9480 is not a loopback address, and needs TLS: give --tls-cert and --tls-key, or --plaintext if the network is trusted"
    )]
    #[case::grpc(
        "--grpc [::]:9490",
        "--grpc=[::]:9490 is not a loopback address, and needs TLS: give --tls-cert and --tls-key, or --plaintext if the network is trusted"
    )]
    #[case::no_authorization(
        "--grpc 0.0.0.0:9490 --plaintext",
        "--grpc=0.0.0.0:9490 is not a loopback address: give --authorization=SubjectAccessReview, or --authorization=None if everybody who reaches it may ask for all sets"
    )]
    #[case::dns(
        "--authorization SubjectAccessReview --dns 127.0.0.1:53",
        "--dns=127.0.0.1:53: DNS does not say who asks: with --authorization=SubjectAccessReview, leave it out, or give --anonymous-dns if everybody who reaches it may ask for all sets"
    )]
    #[case::anonymous_dns_without_dns("--anonymous-dns", "--dns <ADDRESS>")]
    #[case::no_key("--tls-cert tls.crt", "--tls-key <FILE>")]
    #[case::no_certificate("--tls-key tls.key", "--tls-cert <FILE>")]
    #[case::authority_only("--client-ca ca.crt", "--tls-cert <FILE>")]
    #[case::both("--tls-cert tls.crt --tls-key tls.key --plaintext", "--plaintext")]
    fn other_options_are_refused(#[case] options: &str, #[case] error: &str) {
        let found = checked(options).unwrap_err();
        assert!(found.contains(error), "{found}");
    }
}
