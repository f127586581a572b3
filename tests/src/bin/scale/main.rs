//! `cargo xtask bench scale`: how one controller process grows with the number of FederatedReplicaSets and pods.
//!
//! ```text
//! embedded host (HTTPS) and generated members (HTTP), in this process <--> `fedrs controller`, a process of its own
//!
//! sets created -> all statuses ready -> quiet -> one full pass -> killed, one local set deleted, started again
//!   -> it creates that set, and writes nothing else
//! ```

mod member;
mod report;
mod server;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Parser;
use control_plane::request;
use fedrs_tests::{
    FRS_PATH,
    controller_process::{Controller, Program},
    frs,
    generated_members::{until, write_kubeconfigs},
    install_crds,
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Map, Value, json};
use sim_cluster::SimCluster;

use self::{report::Size, server::Members};

/// After this time without a write, the controller has settled: it writes the status of each member every ten seconds.
const QUIET: Duration = Duration::from_secs(15);
/// FederatedReplicaSets created at the same time.
const CREATED_TOGETHER: usize = 64;

/// Measures one controller process with many members, whose objects are generated.
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench scale")]
struct ScaleArgs {
    /// The program of the controller: a release build of fedrs
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Member clusters
    #[arg(long, default_value_t = 100)]
    members: usize,
    /// FederatedReplicaSets at factor 1
    #[arg(long, default_value_t = 2000)]
    sets: usize,
    /// Replicas of each FederatedReplicaSet
    #[arg(long, default_value_t = 500)]
    replicas: u32,
    /// Members that each FederatedReplicaSet selects
    #[arg(long, default_value_t = 10)]
    spread: usize,
    /// Factors: measure with this many times as many sets
    #[arg(long, value_delimiter = ',', default_value = "1,2,4")]
    factors: Vec<usize>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = ScaleArgs::parse();
    let mut sizes = Vec::new();
    for factor in &args.factors {
        let size = measure(&args, args.sets * factor).await?;
        print!("{}", report::table(std::slice::from_ref(&size)));
        sizes.push(size);
    }
    println!("\n{}{}", report::table(&sizes), report::growth(&sizes));
    Ok(())
}

/// The clusters of one measurement.
struct Clusters {
    host: SimCluster,
    members: Arc<Members>,
}

async fn measure(args: &ScaleArgs, sets: usize) -> anyhow::Result<Size> {
    let directory = tempfile::tempdir()?;
    let clusters = Clusters::start(args, directory.path()).await?;
    let server = clusters.host.serve(None).await?;
    server.write_kubeconfig(&directory.path().join("host.yaml"))?;
    let user = Client::new(clusters.host.service(), "default");
    install_crds(&user).await;
    let program = Program::of_federation(args.program.clone(), directory.path());

    let controller = program.start()?;
    clusters.until_ready(&controller).await?;
    let started = Instant::now();
    create_all(&user, args, sets).await?;
    let settled = || clusters.ready_statuses(args.replicas) == sets;
    until("all statuses are ready", async || settled()).await?;
    let settled_seconds = started.elapsed().as_secs_f64();
    clusters.until_quiet().await?;
    let (resident, _) = controller.memory()?;
    let (pass_seconds, pass_cpu_seconds) = clusters.full_pass(&controller, sets).await?;
    drop(controller);

    let (name, member) = clusters.delete_one().context("there is no local set")?;
    clusters.members.take_writes();
    let before = clusters.host_versions();
    let started = Instant::now();
    let controller = program.start()?;
    let member_writes = || clusters.members.take_writes();
    let mut writes = Vec::new();
    until("the deleted set is created again", async || {
        writes.extend(member_writes());
        !writes.is_empty()
    })
    .await?;
    let restart_seconds = writes[0].at.duration_since(started).as_secs_f64();
    clusters.until_ready(&controller).await?;
    clusters.until_quiet().await?;
    writes.extend(member_writes());
    let expected = format!("POST {member}/apis/apps/v1/namespaces/default/replicasets");
    let mut unexpected: Vec<_> = writes.iter().map(|write| write.request.clone()).collect();
    if let Some(first) = unexpected.iter().position(|write| *write == expected) {
        unexpected.remove(first);
    } else {
        bail!("the first decision is wrong: {unexpected:?}");
    }
    unexpected.extend(clusters.changed_since(&before, [&name, &member]));
    let (_, peak) = controller.memory()?;
    drop(controller);
    server.stop().await;
    clusters.host.stop().await;
    Ok(Size {
        sets,
        local_sets: sets * args.spread,
        pods: sets as u64 * u64::from(args.replicas),
        settled_seconds,
        resident,
        peak,
        pass_seconds,
        pass_cpu_seconds,
        restart_seconds,
        unexpected,
    })
}

impl Clusters {
    async fn start(args: &ScaleArgs, directory: &std::path::Path) -> anyhow::Result<Self> {
        let host = SimCluster::builder("host").nodes(0).start();
        let names = (0..args.members).map(member_name);
        let members = Arc::new(Members::new(names));
        let address = Arc::clone(&members).serve().await?;
        write_kubeconfigs(directory, &address, members.all.keys().cloned())?;
        Ok(Self { host, members })
    }

    /// Waits until the controller has a current view of all members.
    async fn until_ready(&self, controller: &Controller) -> anyhow::Result<()> {
        until("the controller is ready", async || {
            controller.is_ready().await && self.members_ready() == self.members.all.len()
        })
        .await
    }

    fn members_ready(&self) -> usize {
        let is_ready = |member: &Value| {
            let conditions = member["status"]["conditions"].as_array();
            let is_true = |condition: &Value| condition["status"] == "True";
            conditions.is_some_and(|all| !all.is_empty() && all.iter().all(is_true))
        };
        let members = self.on_host("MemberCluster");
        members.iter().filter(|member| is_ready(member)).count()
    }

    fn ready_statuses(&self, replicas: u32) -> usize {
        let sets = self.on_host("FederatedReplicaSet");
        let is_ready = |frs: &&sim_cluster::Object| frs["status"]["readyReplicas"] == replicas;
        sets.iter().filter(is_ready).count()
    }

    /// Waits until the controller writes nothing any more.
    async fn until_quiet(&self) -> anyhow::Result<()> {
        let mut last = (self.host.api().revision(), Instant::now());
        until("nothing is written", async || {
            let revision = self.host.api().revision();
            if revision != last.0 {
                last = (revision, Instant::now());
            }
            last.1.elapsed() >= QUIET
        })
        .await
    }

    /// Has all sets checked, because a member fails one probe. Returns the seconds until the last check has ended, and what the
    /// checks took.
    async fn full_pass(&self, controller: &Controller, sets: usize) -> anyhow::Result<(f64, f64)> {
        let (before, spent_before) = controller.checks().await?;
        let member = self.members.all.keys().next().context("no members")?;
        self.members.fail_probe(member);
        until("the probe", async || !self.members.awaits_probe()).await?;
        let started = Instant::now();
        let mut spent = 0.0;
        until("every set is checked", async || {
            let checks = controller.checks().await;
            checks.is_ok_and(|(count, seconds)| {
                spent = seconds - spent_before;
                count >= before + sets as u64
            })
        })
        .await?;
        let seconds = started.elapsed().as_secs_f64();
        self.until_quiet().await?;
        Ok((seconds, spent))
    }

    /// Deletes one local set in a member. Returns the names of both.
    fn delete_one(&self) -> Option<(String, String)> {
        let has_sets = |member: &&member::Member| !member.sets().is_empty();
        let member = self.members.all.values().find(has_sets)?;
        let name = member.sets().pop()?;
        member.delete(&name)?;
        Some((name, member.name.clone()))
    }

    /// The versions of all sets and members on the host.
    fn host_versions(&self) -> Map<String, Value> {
        let kinds = ["FederatedReplicaSet", "MemberCluster"].into_iter();
        let objects = kinds.flat_map(|kind| self.on_host(kind));
        let version = |object: &Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let version = object["metadata"]["resourceVersion"].clone();
            (format!("{} {name}", object["kind"]), version)
        };
        objects.map(|object| version(&object)).collect()
    }

    /// What was written on the host since, apart from `expected`: the set, and the member that counts its replicas.
    fn changed_since(&self, before: &Map<String, Value>, expected: [&str; 2]) -> Vec<String> {
        let now = self.host_versions().into_iter();
        let changed = now.filter(|(object, version)| before.get(object) != Some(version));
        let is_expected = |object: &str| {
            expected
                .iter()
                .any(|name| object.ends_with(&format!(" {name}")))
        };
        let others = changed.filter(|(object, _)| !is_expected(object));
        others
            .map(|(object, _)| format!("host: {object}"))
            .collect()
    }

    fn on_host(&self, kind: &str) -> Vec<sim_cluster::Object> {
        let api = self.host.api();
        let kind = api.kind_of("fedrs.dev/v1alpha1", kind);
        kind.map(|kind| api.list(&kind, None)).unwrap_or_default()
    }
}

fn member_name(number: usize) -> String {
    format!("m-{number:04}")
}

/// Creates all sets. Each selects a few members, and each member is selected by as many.
async fn create_all(user: &Client, args: &ScaleArgs, sets: usize) -> anyhow::Result<()> {
    let set = |number: usize| {
        let step = args.members / args.spread;
        let selected = (0..args.spread).map(|place| (number + place * step) % args.members);
        let weights = selected.map(|member| (member_name(member), json!({ "weight": 1 })));
        let placement = json!({ "clusters": weights.collect::<Map<_, _>>() });
        frs(&format!("set-{number:05}"), args.replicas, &placement)
    };
    stream::iter((0..sets).map(set))
        .map(|set| async move { request(user, "POST", FRS_PATH, &set).await })
        .buffer_unordered(CREATED_TOGETHER)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(())
}
