//! The servers for HTTP and gRPC: their addresses, TLS and limits.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::Context;
use clap::Args;
use discovery::{Limits, Tls, TlsFiles};
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
    /// The most connections of one client address, for HTTP and for gRPC
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections_per_client)]
    max_connections_per_client: usize,
    /// The most connections of all clients, for HTTP and for gRPC
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// The most calls of one client address that follow sets, by gRPC and xDS
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().streams_per_client)]
    max_watches_per_client: usize,
    /// The most calls of all clients that follow sets, by gRPC and xDS
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().streams)]
    max_watches: usize,
}

/// The servers are reached from elsewhere, without TLS.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{flag}={address} is not a loopback address, and needs TLS: give --tls-cert and --tls-key, or --plaintext if the network is trusted"
)]
struct NeedsTls {
    flag: &'static str,
    address: SocketAddr,
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

    /// Plain text leaves the machine only if somebody has said so.
    fn check(&self) -> Result<(), NeedsTls> {
        if self.plaintext || self.tls_cert.is_some() {
            return Ok(());
        }
        let remote = self.remote();
        remote.map_or(Ok(()), |(flag, address)| Err(NeedsTls { flag, address }))
    }

    /// An address that is reached from elsewhere, and its option.
    fn remote(&self) -> Option<(&'static str, SocketAddr)> {
        let mut servers = [("--http", self.http), ("--grpc", self.grpc)].into_iter();
        servers.find(|(_, address)| !address.ip().to_canonical().is_loopback())
    }

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
    #[case::tls("--grpc 0.0.0.0:0 --tls-cert tls.crt --tls-key tls.key")]
    #[case::client_certificates(
        "--grpc 0.0.0.0:0 --tls-cert tls.crt --tls-key tls.key --client-ca ca.crt"
    )]
    #[case::plaintext("--grpc 0.0.0.0:0 --http [::]:0 --plaintext")]
    fn servers_are_local_or_have_tls_or_are_told_not_to(#[case] options: &str) {
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
    #[case::no_key("--tls-cert tls.crt", "--tls-key <FILE>")]
    #[case::no_certificate("--tls-key tls.key", "--tls-cert <FILE>")]
    #[case::authority_only("--client-ca ca.crt", "--tls-cert <FILE>")]
    #[case::both("--tls-cert tls.crt --tls-key tls.key --plaintext", "--plaintext")]
    fn other_options_are_refused(#[case] options: &str, #[case] error: &str) {
        let found = checked(options).unwrap_err();
        assert!(found.contains(error), "{found}");
    }
}
