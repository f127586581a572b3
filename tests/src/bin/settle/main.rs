//! `cargo run --release -p fedrs-tests --bin settle`: many FederatedReplicaSets at once, in real time, on embedded members.
//!
//! ```text
//! clusters, controller -> N sets created -> all local ReplicaSets exist -> all pods ready -> status ready -> no more writes
//!   -> a member lost and replaced -> it returns: surplus gone, balanced
//!   -> controller stopped (its heap is measured) and restarted -> it must write nothing
//! ```
//!
//! It does not include the time that real API servers take. The members share the process and its cores.

mod args;
mod clusters;
mod memory;
mod report;
mod writes;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Parser;
use control_plane::request;
use fedrs_api::SetKind;
use fedrs_tests::{FDEPLOY_PATH, FRS_PATH, frs};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};

use self::{
    args::SettleArgs,
    clusters::{Clusters, RunningController},
    report::{Memory, Report, Restart, Return},
};

/// How often the clusters are polled: the precision of the times.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a stage may take before the benchmark fails.
const DEADLINE: Duration = Duration::from_secs(600);
/// After this time without a write, the controller has settled: it writes the number of sets of each member every ten
/// seconds.
const QUIET: Duration = Duration::from_secs(11);
/// FederatedReplicaSets created at the same time: the connections of an HTTP client.
const CREATED_TOGETHER: usize = 64;

/// The exit status is 1 if the restarted controller writes anything.
fn main() -> anyhow::Result<ExitCode> {
    let args = SettleArgs::parse();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::ERROR)
        .with_writer(std::io::stderr)
        .init();
    let report = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(measure(&args))?;
    report.write(&args.json)?;
    println!("{report}written to {}", args.json.display());
    Ok(ExitCode::from(u8::from(!report.restart.is_silent())))
}

async fn measure(args: &SettleArgs) -> anyhow::Result<Report> {
    if args.https {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok()
            .context("a TLS provider is installed already")?;
    }
    let clusters = Clusters::start(args).await?;
    let controller = start_controller(&clusters, args.members).await?;
    clusters.writes().take();

    let started = Instant::now();
    let user = clusters.user().await?;
    let (created, stages) = tokio::join!(
        create_all(&user, args, started),
        Stages::wait(&clusters, args, started)
    );
    let (created, stages) = (created?, stages?);
    let last_write = wait_until_quiet(&clusters).await?;
    let writes = clusters.writes().take();

    let returned = Return::measure(&clusters, args).await?;
    wait_until_quiet(&clusters).await?;
    clusters.writes().take();

    let heap_with = memory::heap_bytes();
    controller.stop().await;
    let heap_without = memory::heap_bytes();
    let restart = restart(&clusters, args).await?;
    clusters.stop().await;
    Ok(Report {
        kind: args.set_kind().as_str(),
        sets: args.sets,
        members: args.members,
        https: args.https,
        created_seconds: created.as_secs_f64(),
        local_sets_seconds: stages.local_sets.as_secs_f64(),
        ready_pods_seconds: stages.ready_pods.as_secs_f64(),
        ready_statuses_seconds: stages.ready_statuses.as_secs_f64(),
        last_write_seconds: last_write.duration_since(started).as_secs_f64(),
        writes,
        returned,
        memory: Memory {
            resident_bytes_max: memory::peak_resident_bytes(),
            controller_heap_bytes: heap_with.saturating_sub(heap_without),
            clusters_heap_bytes: heap_without,
        },
        restart,
    })
}

/// Starts a controller and waits until it has a current view of all members.
async fn start_controller(
    clusters: &Clusters,
    members: usize,
) -> anyhow::Result<RunningController> {
    let controller = clusters.start_controller().await?;
    let readiness = controller.readiness();
    until("the controller has a current view of all members", || {
        readiness.check().is_ok() && clusters.members_ready() == members
    })
    .await?;
    Ok(controller)
}

/// Creates all sets. Returns how long that takes.
async fn create_all(
    user: &Client,
    args: &SettleArgs,
    started: Instant,
) -> anyhow::Result<Duration> {
    let replicas = u32::try_from(args.members)?;
    // The default placement spreads evenly: one replica in each member.
    let kind = args.set_kind();
    let set = |number| {
        let mut set = frs(&format!("set-{number:04}"), replicas, &json!({}));
        set["kind"] = kind.as_str().into();
        set
    };
    let sets: Vec<Value> = (0..args.sets).map(set).collect();
    let path = match kind {
        SetKind::FederatedReplicaSet => FRS_PATH,
        SetKind::FederatedDeployment => FDEPLOY_PATH,
    };
    stream::iter(&sets)
        .map(|set| request(user, "POST", path, set))
        .buffer_unordered(CREATED_TOGETHER)
        .try_for_each(async |_| Ok(()))
        .await?;
    Ok(started.elapsed())
}

/// When each stage was complete, from the start of the creation.
struct Stages {
    local_sets: Duration,
    ready_pods: Duration,
    ready_statuses: Duration,
}

impl Stages {
    async fn wait(
        clusters: &Clusters,
        args: &SettleArgs,
        started: Instant,
    ) -> anyhow::Result<Self> {
        let all = args.sets * args.members;
        until("all local sets exist", || clusters.local_sets() >= all).await?;
        let local_sets = started.elapsed();
        until("all pods are ready", || clusters.ready_pods().0 >= all).await?;
        let ready_pods = started.elapsed();
        until("all statuses are ready", || {
            clusters.ready_statuses(args.members) == args.sets
        })
        .await?;
        Ok(Self {
            local_sets,
            ready_pods,
            ready_statuses: started.elapsed(),
        })
    }
}

impl Return {
    /// Disconnects the last member, and connects it again.
    async fn measure(clusters: &Clusters, args: &SettleArgs) -> anyhow::Result<Self> {
        let all = args.sets * args.members;
        let started = Instant::now();
        clusters.set_last_unreachable(true);
        let is_replaced = || args.members == 1 || clusters.ready_pods().1 >= all;
        until("the other members run all replicas", is_replaced).await?;
        let replaced = started.elapsed().as_secs_f64();
        let answers = Instant::now();
        clusters.set_last_unreachable(false);
        let is_stabilizing = || clusters.stabilizing() == 1;
        until("a node of the member has reported", is_stabilizing).await?;
        let nodes_reported = answers.elapsed().as_secs_f64();
        let requested = || clusters.requested();
        let has_no_surplus = || requested().iter().sum::<u64>() <= all as u64;
        until("the surplus is gone", has_no_surplus).await?;
        let surplus_gone = answers.elapsed().as_secs_f64();
        let is_balanced = || requested().iter().all(|of| *of == args.sets as u64);
        until("the members are balanced", is_balanced).await?;
        Ok(Self {
            replaced,
            nodes_reported,
            stabilization: clusters::STABILIZATION_WINDOW.as_secs_f64(),
            surplus_gone,
            balanced: answers.elapsed().as_secs_f64(),
        })
    }
}

/// Waits until the controller has written nothing for a while. Returns the time of its last write.
async fn wait_until_quiet(clusters: &Clusters) -> anyhow::Result<Instant> {
    let writes = clusters.writes();
    let is_quiet = || {
        writes
            .last_write()
            .is_none_or(|last| last.elapsed() >= QUIET)
    };
    until("the controller writes nothing more", is_quiet).await?;
    writes.last_write().context("the controller wrote nothing")
}

/// Restarts the controller on the settled clusters, and watches its writes.
async fn restart(clusters: &Clusters, args: &SettleArgs) -> anyhow::Result<Restart> {
    let before = clusters.versions();
    let started = Instant::now();
    let controller = start_controller(clusters, args.members).await?;
    let ready_seconds = started.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(args.watch_seconds)).await;
    let restart = Restart {
        ready_seconds,
        watched_seconds: args.watch_seconds,
        writes: clusters.writes().take(),
        unchanged: clusters.versions() == before,
    };
    controller.stop().await;
    Ok(restart)
}

async fn until(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > DEADLINE {
            bail!(
                "timed out after {} s waiting until {what}",
                DEADLINE.as_secs()
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
