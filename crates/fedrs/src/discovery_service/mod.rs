//! `fedrs discovery`: answers which endpoints EndpointSets have.

mod members;
mod servers;
mod source;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use clap::Args;
use controller_base::election::{LeaderElectionConfig, Term};
use discovery::{
    Catalog, Discovery, DiscoveryMetrics, DnsConfig, DnsServer, LoadedSnapshots, Service,
    SnapshotDirectory,
};
use federation_controller::members::joined::JoinedMembers;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use self::{
    servers::ServerArgs,
    source::{Source, UpstreamArgs},
};
use crate::{
    elected::{ElectedProcess, ListenArgs, METRICS_PREFIX, Serving, own_identity, own_namespace},
    host::HostArgs,
    member_source::MemberSource,
    server::ServerState,
    values,
};

/// Answer which pods of all member clusters an EndpointSet has: by gRPC, xDS, HTTP and DNS
///
/// Members are those that have joined with `fedrs join --with-discovery`, or with --members those of a directory. It watches the
/// EndpointSets of the host, and the pods of all members, and writes nothing but, with --write-status, the status of EndpointSets. Run as
/// many as you like: each has the whole picture. It answers nothing until it knows all members, or `--member-timeout` is over. A member that can't be reached keeps its endpoints, and answers by gRPC and HTTP say how old they are.
///
/// gRPC: `Resolve` and `Watch` of `fedrs.discovery.v1alpha1.Discovery`, with reflection and health. xDS, on the same address: clients of
/// gRPC resolve `xds:///SET.NAMESPACE` or `xds:///SET.NAMESPACE:PORT`, and Envoy finds a cluster of that name for each port. HTTP:
/// `GET /v1/endpoints/NAMESPACE/SET` returns JSON with an ETag; with If-None-Match and ?wait=SECONDS the response comes when there is a
/// change. `fedrs resolve` asks it. DNS: `SET.NAMESPACE.endpoints.DOMAIN` has A and AAAA records,
/// `_PORT._tcp.SET.NAMESPACE.endpoints.DOMAIN` SRV records.
///
/// With --upstream it reads another such process instead of the host and the members: run one in each location, so that the load on
/// members does not grow with their number. While no upstream can be reached, it answers what it knows, and all members are stale.
///
/// HTTP and gRPC are served with TLS on all addresses but loopback ones, unless `--plaintext` says that the network is trusted; DNS has
/// no TLS.
///
/// With `--authorization=SubjectAccessReview`, clients say by a bearer token or a client certificate which user of the host they are, and
/// get the EndpointSets that the user may `get` there. This needs `fedrs rbac discovery-authorizer` on the host. Otherwise, whoever can
/// connect can ask for all sets: serve on addresses that only your services reach.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Answer on this machine, for the members that have joined
  fedrs discovery --kubeconfig host.yaml
  curl 127.0.0.1:9480/v1/endpoints/default/web
  grpcurl -plaintext -d '{\"set\": {\"namespace\": \"default\", \"name\": \"web\"}}' \\
    127.0.0.1:9490 fedrs.discovery.v1alpha1.Discovery/Resolve
  dig @127.0.0.1 -p 9453 web.default.endpoints.fedrs.internal

  # Answer on this machine, for the members of a directory
  fedrs discovery --kubeconfig host.yaml --members members/

  # Answer in a pod's network
  fedrs discovery --dns 0.0.0.0:53 \\
    --http 0.0.0.0:9480 --grpc 0.0.0.0:9490 \\
    --tls-cert /etc/fedrs/tls/tls.crt --tls-key /etc/fedrs/tls/tls.key --authorization None

  # Answer in another location, without clusters: from what two others know
  fedrs discovery --upstream https://discovery-0:9490,https://discovery-1:9490 \\
    --upstream-ca ca.crt --upstream-token-file token --snapshot-dir /var/lib/fedrs/snapshots

  # Answer each client for the sets that it may get on the host
  fedrs discovery --http 0.0.0.0:9480 --grpc 0.0.0.0:9490 \\
    --tls-cert tls.crt --tls-key tls.key --authorization SubjectAccessReview")]
pub(crate) struct DiscoveryArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Directory with one kubeconfig for each member cluster, named after it, instead of the members that have joined
    #[arg(long, value_name = "DIR", conflicts_with = "upstream")]
    members: Option<PathBuf>,
    /// Name of the federation whose members have joined. By default the federation without a name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = values::federation, conflicts_with_all = ["members", "upstream"])]
    federation: String,
    #[command(flatten)]
    upstreams: UpstreamArgs,
    #[command(flatten)]
    servers: ServerArgs,
    /// Domain of the DNS zone: `endpoints.DOMAIN`
    #[arg(long, value_name = "DOMAIN", default_value = "fedrs.internal")]
    domain: String,
    /// How long clients may keep an answer of DNS
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    ttl: Duration,
    /// How long answers wait, after the start, for members that can't be listed
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    member_timeout: Duration,
    /// How long endpoints of a cluster that is lost, and can't be watched, are kept for sets without any others. By default for ever
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    keep_lost: Option<Duration>,
    /// Directory for snapshots of what it knows: a start while clusters are away has their endpoints as they were, marked as
    /// stale. Each process needs its own
    #[arg(long, value_name = "DIR")]
    snapshot_dir: Option<PathBuf>,
    /// Also write the status of EndpointSets; of several processes, the one that holds the Lease fedrs-discovery does
    #[arg(long, conflicts_with = "upstream")]
    write_status: bool,
    /// Namespace on the host of the Secrets of members that have joined, and of the Lease. By default the pod's namespace, or
    /// fedrs-system outside a pod
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    listen: ListenArgs,
}

/// Answers until a signal stops the process.
pub(crate) async fn run(args: DiscoveryArgs) -> anyhow::Result<ExitCode> {
    let tls = args.servers.tls()?;
    let has_reviews = args.servers.has_reviews();
    let host = source::host(args.host, &args.upstreams, has_reviews).await?;
    let snapshots = args.snapshot_dir.map(SnapshotDirectory::new);
    let loaded = load(snapshots.clone()).await?;
    let patience = args.member_timeout;
    let mut registry = Registry::with_prefix(METRICS_PREFIX);
    let namespace = args.namespace.unwrap_or_else(own_namespace);
    let source = match host.as_ref().filter(|_| !args.upstreams.is_given()) {
        Some(host) => {
            let joined = JoinedMembers {
                federation: args.federation,
                namespace: namespace.clone(),
            };
            let members = MemberSource::of(args.members, host, joined);
            let discovery = Discovery::start_from(loaded, host, patience);
            Source::Clusters(members, Box::new(discovery))
        }
        None => Source::upstreams(args.upstreams, loaded, patience, &mut registry)?,
    };
    let catalog = Arc::clone(source.catalog());
    let config = DnsConfig {
        domain: args.domain,
        ttl: args.ttl,
        queries_per_client: args.servers.queries_per_client(),
        limits: args.servers.limits(),
    };
    let metrics = DiscoveryMetrics::register(&catalog, &mut registry);
    let service = Service::new(Arc::clone(&catalog), metrics.clone());
    let service = args.servers.secure(service, tls, host.as_ref());
    let dns = DnsServer::new(Arc::clone(&catalog), metrics.clone(), &config);
    let mut dns = dns.context("--domain")?;
    let [http, grpc] = args.servers.bind().await?;
    let dns_address = match args.servers.dns() {
        Some(address) => {
            let listening = dns.listen(address).await;
            Some(listening.with_context(|| format!("--dns={address}"))?)
        }
        None => None,
    };

    let state = ServerState::of_catalog(registry, Arc::clone(&catalog));
    let serving = Serving::start(&args.listen, state)?;
    tracing::info!(
        http = %http.local_addr()?,
        grpc = %grpc.local_addr()?,
        dns = dns_address.map(tracing::field::display),
        "answering"
    );
    let cancel = serving.cancel.clone();
    tokio::join!(
        source.follow(cancel.clone()),
        discovery::serve_http(http, service.clone(), cancel.clone()),
        discovery::serve_grpc(grpc, service, cancel.clone()),
        dns.run(cancel.clone()),
        keep(
            snapshots,
            (Arc::clone(&catalog), metrics.clone()),
            cancel.clone()
        ),
        async {
            if let Some(keep) = args.keep_lost {
                discovery::end_lost(&catalog, keep, &cancel).await;
            }
        },
        async {
            if let Some(host) = host.filter(|_| args.write_status) {
                write_statuses(host, namespace, Arc::clone(&catalog), &serving).await;
            }
        },
    );
    serving.end();
    Ok(ExitCode::SUCCESS)
}

/// What the snapshots have, if there are any.
async fn load(snapshots: Option<SnapshotDirectory>) -> anyhow::Result<LoadedSnapshots> {
    let load = || snapshots.map(|snapshots| snapshots.load());
    let loaded = tokio::task::spawn_blocking(load).await?;
    Ok(loaded.unwrap_or_default())
}

/// Keeps snapshots, if there is a directory for them.
async fn keep(
    snapshots: Option<SnapshotDirectory>,
    (catalog, metrics): (Arc<Catalog>, DiscoveryMetrics),
    cancel: CancellationToken,
) {
    if let Some(snapshots) = snapshots {
        discovery::write_snapshots(snapshots, catalog, metrics, cancel).await;
    }
}

/// Writes the statuses of EndpointSets while this process holds the Lease.
async fn write_statuses(host: Client, namespace: String, catalog: Arc<Catalog>, serving: &Serving) {
    let elected = ElectedProcess {
        client: host.clone(),
        namespace,
        lease: discovery::LEASE.to_owned(),
        component: discovery::COMPONENT,
        timing: LeaderElectionConfig::default(),
    };
    let lead = |term: Term, _| {
        let (host, catalog) = (term.fence.guard(&host), Arc::clone(&catalog));
        async move { discovery::write_statuses(&host, &catalog, &term.end).await }
    };
    let cancel = serving.cancel.clone();
    elected
        .elect(own_identity(), &serving.state, cancel, lead)
        .await;
}
