//! Where the service has its picture from: the host and the members, or another replica.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::ensure;
use clap::Args;
use discovery::{Catalog, Credentials, Discovery, LoadedSnapshots, UpstreamMetrics, Upstreams};
use http::Uri;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::members;
use crate::{host::HostArgs, member_source::MemberSource, values};

/// Options of a service that reads another one.
#[derive(Args, Debug)]
pub(super) struct UpstreamArgs {
    /// Services to read instead of the host and the members, by their addresses for gRPC: one of them at a time
    #[arg(long, value_name = "URL,...", value_delimiter = ',', value_parser = values::http_url)]
    upstream: Vec<Uri>,
    /// Authorities of upstreams `https://`, in PEM. By default those of the system
    #[arg(
        long,
        value_name = "FILE",
        requires = "upstream",
        conflicts_with = "members"
    )]
    upstream_ca: Option<PathBuf>,
    /// Certificate to show to upstreams, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["upstream", "upstream_client_key"], conflicts_with = "members")]
    upstream_client_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "upstream_client_cert")]
    upstream_client_key: Option<PathBuf>,
    /// File with a bearer token to send to upstreams. Its user has to be allowed to list the EndpointSets of all namespaces, if they
    /// have --authorization=SubjectAccessReview
    #[arg(
        long,
        value_name = "FILE",
        requires = "upstream",
        conflicts_with = "members"
    )]
    upstream_token_file: Option<PathBuf>,
}

impl UpstreamArgs {
    pub(super) fn is_given(&self) -> bool {
        !self.upstream.is_empty()
    }

    fn upstreams(self) -> anyhow::Result<Upstreams> {
        let credentials = Credentials {
            ca: self.upstream_ca,
            client: self.upstream_client_cert.zip(self.upstream_client_key),
            token: self.upstream_token_file,
        };
        let servers: Vec<_> = self.upstream.iter().map(Uri::to_string).collect();
        let servers = servers.iter().map(String::as_str);
        Ok(Upstreams::new(servers, credentials)?)
    }
}

/// The client of the host, if it is asked anything.
pub(super) async fn host(
    host: HostArgs,
    upstreams: &UpstreamArgs,
    has_reviews: bool,
) -> anyhow::Result<Option<Client>> {
    if upstreams.is_given() {
        // The default may be another cluster: that of this location.
        ensure!(
            host.is_named() || !has_reviews,
            "--authorization=SubjectAccessReview asks the host who clients are: with --upstream, give its --kubeconfig, too"
        );
        ensure!(
            !host.is_named() || has_reviews,
            "--upstream is read instead of the host: leave out --kubeconfig and --context, or give --authorization=SubjectAccessReview, which asks the host who clients are"
        );
        if !has_reviews {
            return Ok(None);
        }
    }
    Ok(Some(host.controller_client().await?))
}

/// Where the picture comes from.
pub(super) enum Source {
    /// The host and the members.
    Clusters(MemberSource, Box<Discovery>),
    /// Other replicas.
    Upstreams {
        upstreams: Upstreams,
        catalog: Arc<Catalog>,
        patience: Duration,
        metrics: UpstreamMetrics,
    },
}

impl Source {
    pub(super) fn upstreams(
        args: UpstreamArgs,
        loaded: LoadedSnapshots,
        patience: Duration,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        Ok(Self::Upstreams {
            upstreams: args.upstreams()?,
            catalog: Upstreams::catalog(loaded),
            patience,
            metrics: UpstreamMetrics::register(registry),
        })
    }

    /// What answers are made from.
    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        match self {
            Self::Clusters(_, discovery) => discovery.catalog(),
            Self::Upstreams { catalog, .. } => catalog,
        }
    }

    /// Keeps the picture up to date until `cancel`.
    pub(super) async fn follow(self, cancel: CancellationToken) {
        match self {
            Self::Clusters(source, discovery) => {
                members::follow(source, *discovery, cancel).await;
            }
            Self::Upstreams {
                upstreams,
                catalog,
                patience,
                metrics,
            } => upstreams.follow(catalog, metrics, patience, cancel).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::super::DiscoveryArgs;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        discovery: DiscoveryArgs,
    }

    async fn refused(options: &str) -> String {
        let words = ["fedrs"].into_iter().chain(options.split_whitespace());
        let args = match Command::try_parse_from(words) {
            Ok(command) => command.discovery,
            Err(error) => return error.to_string(),
        };
        let has_reviews = args.servers.has_reviews();
        let host = super::host(args.host, &args.upstreams, has_reviews).await;
        host.map_or_else(|error| error.to_string(), |_| "nothing".to_owned())
    }

    #[rstest]
    #[case::both("--members m --upstream http://a:1", "cannot be used with")]
    #[case::statuses(
        "--upstream http://a:1 --write-status",
        "'--upstream <URL,...>' cannot be used with '--write-status'"
    )]
    #[case::no_address("--upstream a:1", "must be of the form http[s]://HOST[:PORT]")]
    #[case::half_a_certificate(
        "--upstream https://a:1 --upstream-client-cert c",
        "--upstream-client-key <FILE>"
    )]
    #[case::authorities_of_nobody(
        "--members m --upstream-ca c",
        "'--members <DIR>' cannot be used with '--upstream-ca <FILE>'"
    )]
    #[case::a_token_for_nobody("--upstream-token-file t", "--upstream <URL,...>")]
    #[case::reviews_without_the_host(
        "--upstream http://a:1 --authorization SubjectAccessReview",
        "--authorization=SubjectAccessReview asks the host who clients are: with --upstream, give its --kubeconfig, too"
    )]
    #[case::a_host_for_nothing(
        "--upstream http://a:1 --kubeconfig host.yaml",
        "--upstream is read instead of the host: leave out --kubeconfig and --context, or give --authorization=SubjectAccessReview, which asks the host who clients are"
    )]
    #[case::upstreams("--upstream http://a:1,https://b:2 --upstream-token-file t", "nothing")]
    #[tokio::test]
    async fn it_is_said_where_the_picture_comes_from(#[case] options: &str, #[case] error: &str) {
        let found = refused(options).await;
        assert!(found.contains(error), "{found}");
    }
}
