//! `cargo xtask bench settle`: many FederatedReplicaSets at once, in real time, over embedded members.
//!
//! ```text
//! clusters, controller -> N sets created -> all local sets exist -> all pods ready -> status tells -> no more writes
//!   -> controller stopped (what it held) and started anew -> watched: it must write nothing
//! ```
//!
//! What it does not show: the time a real API server takes. The members share the process and its cores.

mod fleet;
mod report;
mod writes;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::{Args, builder::TypedValueParser as _};
use control_plane::request;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};

use self::{
    fleet::{Fleet, RunningController},
    report::{Memory, Report, Restart},
};
use super::memory;

/// Options of the benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct SettleArgs {
    /// FederatedReplicaSets created at once
    #[arg(long, default_value_t = 500)]
    sets: usize,
    /// Member clusters; each set has one replica in each
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
    members: usize,
    /// Reach host and members over HTTPS on loopback, instead of in process
    #[arg(long)]
    https: bool,
    /// How long the restarted controller is watched for writes; checks that were put off come within 60 s
    #[arg(long, value_name = "SECONDS", default_value_t = 75)]
    watch_seconds: u64,
    /// Where the figures go as JSON
    #[arg(long, value_name = "FILE", default_value_os_t = default_json())]
    json: PathBuf,
}

/// In the workspace's `target`, wherever the task is started.
fn default_json() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let workspace = crates.and_then(Path::parent);
    workspace
        .expect("this crate is two folders below the workspace")
        .join("target/settle.json")
}

/// How often the clusters are looked at: the precision of the times.
const LOOK: Duration = Duration::from_millis(20);
/// How long anything may take before the benchmark gives up.
const DEADLINE: Duration = Duration::from_secs(600);
/// Without a write for this long, what the creation has caused is over: how many sets a member has is told every ten
/// seconds.
const QUIET: Duration = Duration::from_secs(11);
/// FederatedReplicaSets created at the same time: as many as a client over HTTP has connections for.
const CREATED_TOGETHER: usize = 64;
/// Where they are.
const FRS_PATH: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets";

/// Runs it; exit status 1 if the restarted controller wrote anything.
pub(super) fn run(args: &SettleArgs) -> anyhow::Result<ExitCode> {
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .init();
    let report = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(measure(args))?;
    crate::print::line(&report);
    report.write(&args.json)?;
    crate::print::line(format_args!("written to {}", args.json.display()));
    Ok(ExitCode::from(u8::from(!report.restart.is_silent())))
}

async fn measure(args: &SettleArgs) -> anyhow::Result<Report> {
    if args.https {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok()
            .context("a TLS provider is installed already")?;
    }
    let fleet = Fleet::start(args).await?;
    let controller = start_controller(&fleet, args.members).await?;
    fleet.ledger().take();

    let started = Instant::now();
    let user = fleet.user().await?;
    let (created, seen) = tokio::join!(
        create_all(&user, args, started),
        Seen::wait(&fleet, args, started)
    );
    let (created, seen) = (created?, seen?);
    let last_write = wait_until_quiet(&fleet).await?;
    let writes = fleet.ledger().take();

    let heap_with = memory::heap_bytes();
    controller.stop().await;
    let heap_without = memory::heap_bytes();
    let restart = restart(&fleet, args).await?;
    fleet.stop().await;
    Ok(Report {
        sets: args.sets,
        members: args.members,
        https: args.https,
        created_seconds: created.as_secs_f64(),
        local_sets_seconds: seen.local_sets.as_secs_f64(),
        ready_pods_seconds: seen.ready_pods.as_secs_f64(),
        told_seconds: seen.told.as_secs_f64(),
        last_write_seconds: last_write.duration_since(started).as_secs_f64(),
        writes,
        memory: Memory {
            resident_bytes_max: memory::peak_resident_bytes(),
            controller_heap_bytes: heap_with.saturating_sub(heap_without),
            clusters_heap_bytes: heap_without,
        },
        restart,
    })
}

/// Starts a controller and waits until it knows its members.
async fn start_controller(fleet: &Fleet, members: usize) -> anyhow::Result<RunningController> {
    let controller = fleet.start_controller().await?;
    let readiness = controller.readiness();
    until("the controller knows its members", || {
        readiness.check().is_ok() && fleet.members_ready() == members
    })
    .await?;
    Ok(controller)
}

/// Creates all sets, and tells how long that took.
async fn create_all(
    user: &Client,
    args: &SettleArgs,
    started: Instant,
) -> anyhow::Result<Duration> {
    let sets: Vec<Value> = (0..args.sets)
        .map(|number| frs(number, args.members))
        .collect();
    stream::iter(&sets)
        .map(|set| request(user, "POST", FRS_PATH, set))
        .buffer_unordered(CREATED_TOGETHER)
        .try_for_each(async |_| Ok(()))
        .await?;
    Ok(started.elapsed())
}

/// A set of one replica per member, spread evenly as by default.
fn frs(number: usize, replicas: usize) -> Value {
    let name = format!("set-{number:04}");
    json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedReplicaSet",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "registry.example/main:1" }] },
            },
        },
    })
}

/// When each stage was complete, from the start of the creation.
struct Seen {
    local_sets: Duration,
    ready_pods: Duration,
    told: Duration,
}

impl Seen {
    async fn wait(fleet: &Fleet, args: &SettleArgs, started: Instant) -> anyhow::Result<Self> {
        let all = args.sets * args.members;
        until("all local sets exist", || fleet.local_sets() >= all).await?;
        let local_sets = started.elapsed();
        until("all pods are ready", || fleet.ready_pods() >= all).await?;
        let ready_pods = started.elapsed();
        until("every status tells so", || {
            fleet.told_ready(args.members) == args.sets
        })
        .await?;
        Ok(Self {
            local_sets,
            ready_pods,
            told: started.elapsed(),
        })
    }
}

/// Waits until the controller has written nothing for a while, and tells when it last did.
async fn wait_until_quiet(fleet: &Fleet) -> anyhow::Result<Instant> {
    let ledger = fleet.ledger();
    let is_quiet = || {
        ledger
            .last_write()
            .is_none_or(|last| last.elapsed() >= QUIET)
    };
    until("the controller has no more to write", is_quiet).await?;
    ledger.last_write().context("nothing was ever written")
}

/// Starts the controller anew over what has settled, and watches what it writes.
async fn restart(fleet: &Fleet, args: &SettleArgs) -> anyhow::Result<Restart> {
    let before = fleet.versions();
    let started = Instant::now();
    let controller = start_controller(fleet, args.members).await?;
    let ready_seconds = started.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(args.watch_seconds)).await;
    let restart = Restart {
        ready_seconds,
        watched_seconds: args.watch_seconds,
        writes: fleet.ledger().take(),
        unchanged: fleet.versions() == before,
    };
    controller.stop().await;
    Ok(restart)
}

async fn until(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > DEADLINE {
            bail!("not within {} s: {what}", DEADLINE.as_secs());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
