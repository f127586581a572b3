//! `cargo xtask bench replica-sets`: the controller of LocalReplicaSets on a real control plane, beside Kubernetes' own of
//! ReplicaSets.
//!
//! ```text
//! real API server, scheduler and controllers, nodes by kwok; `fedrs replica-set-controller`, a process of its own
//!
//! scale:    a ReplicaSet, then a LocalReplicaSet, from 0 to N pods and back, in turns
//! updates:  a LocalReplicaSet of N pods: in place with the readiness gate, without it, and recreated
//! many:     M LocalReplicaSets: the memory of the controller, and what it writes after a restart
//! ```
//!
//! Writes are those in the audit log of the API server by the controller's account.

mod sets;

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Parser, ValueEnum};
use fedrs_tests::measured_cluster::MeasuredCluster;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use crate::sets::{Kind, NAMESPACE, Set, WRITTEN_TOGETHER};

/// How long the last statuses and events may take.
const REST: Duration = Duration::from_secs(5);
/// How long a restarted controller is watched.
const AFTER_RESTART: Duration = Duration::from_secs(30);

/// Measures LocalReplicaSets beside ReplicaSets on a real control plane.
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench replica-sets")]
struct ReplicaSetArgs {
    /// The program of the controller: a release build of fedrs
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Pods of the set that is scaled and updated
    #[arg(long, default_value_t = 1000)]
    pods: usize,
    /// How often each kind is scaled
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Sets that run at the same time, with 10 pods each
    #[arg(long, default_value_t = 1000)]
    sets: usize,
    /// What is measured
    #[arg(value_enum, default_values_t = [Part::Scale, Part::Updates, Part::Many])]
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    Scale,
    Updates,
    Many,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = ReplicaSetArgs::parse();
    let most = args.pods.max(args.sets * PODS_OF_EACH);
    let mut cluster = MeasuredCluster::start(args.program, most).await?;
    for part in &args.parts {
        match part {
            Part::Scale => scale(&cluster, args.pods, args.turns).await?,
            Part::Updates => update(&cluster, args.pods).await?,
            Part::Many => many(&mut cluster, args.sets).await?,
        }
    }
    Ok(())
}

/// Pods of each of many sets.
const PODS_OF_EACH: usize = 10;

async fn scale(cluster: &MeasuredCluster, pods: usize, turns: usize) -> anyhow::Result<()> {
    let sets = [Kind::Native, Kind::Local].map(|kind| Set::new(cluster, kind, "scaled"));
    for set in &sets {
        set.create(0, &json!({})).await?;
    }
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for turn in 1..=turns {
        for set in &sets {
            let began = Timestamp::now();
            let watcher = cluster.watch(NAMESPACE, set.name()).await;
            let up = set.scale(pods, &watcher).await?.as_secs_f64();
            let down = set.scale(0, &watcher).await?.as_secs_f64();
            sleep(REST).await;
            println!(
                "{:?} {turn}: to {pods} pods {up:.1} s, to none {down:.1} s; writes of fedrs: {:?}",
                set.kind(),
                cluster.writes(began)?
            );
            all.entry((set.kind(), "up")).or_default().push(up);
            all.entry((set.kind(), "down")).or_default().push(down);
        }
    }
    for ((kind, direction), seconds) in &mut all {
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        println!("median of {kind:?}, {direction}: {median:.1} s");
    }
    for set in &sets {
        set.remove().await?;
    }
    Ok(())
}

/// Updates a set of new pods in place, recreates them, and updates a set of adopted ones, which have no gate. These say
/// which template they have: pods of which nothing is known are recreated.
async fn update(cluster: &MeasuredCluster, pods: usize) -> anyhow::Result<()> {
    let set = Set::new(cluster, Kind::Local, "updated");
    set.create(pods, &json!({})).await?;
    set.until_updated(pods).await?;
    let variables = json!([{ "name": "LEVEL", "value": "debug" }]);
    measure(
        cluster,
        &set,
        pods,
        "in place, with the gate",
        &json!({ "image": "registry.example/main:2" }),
    )
    .await?;
    measure(
        cluster,
        &set,
        pods,
        "recreated",
        &json!({ "env": variables }),
    )
    .await?;
    set.remove().await?;

    let set = Set::new(cluster, Kind::Local, "adopted");
    set.create(0, &json!({})).await?;
    let hash = set.template_hash().await?;
    set.remove().await?;
    set.create_orphans(pods, &hash).await?;
    set.create(pods, &json!({ "updateMode": "Never" })).await?;
    set.until_available(pods).await?;
    set.patch(&json!({ "spec": { "updateMode": "Rolling" } }))
        .await?;
    measure(
        cluster,
        &set,
        pods,
        "in place, without a gate",
        &json!({ "image": "registry.example/main:2" }),
    )
    .await?;
    set.remove().await
}

async fn measure(
    cluster: &MeasuredCluster,
    set: &Set<'_>,
    pods: usize,
    what: &str,
    container: &Value,
) -> anyhow::Result<()> {
    sleep(REST).await;
    let began = Timestamp::now();
    let took = set.update(container, pods).await?.as_secs_f64();
    sleep(REST).await;
    println!("{pods} pods updated {what}: {took:.1} s");
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    for (of, count) in cluster.writes(began)? {
        println!(
            "  {of}: {count}, {:.2} for each pod",
            count as f64 / pods as f64
        );
    }
    Ok(())
}

async fn many(cluster: &mut MeasuredCluster, sets: usize) -> anyhow::Result<()> {
    let began = Timestamp::now();
    {
        let cluster = &*cluster;
        let all: Vec<_> = (0..sets)
            .map(|number| Set::new(cluster, Kind::Local, &format!("many-{number}")))
            .collect();
        stream::iter(&all)
            .map(|set| async { set.create(PODS_OF_EACH, &json!({})).await })
            .buffer_unordered(WRITTEN_TOGETHER)
            .try_collect::<()>()
            .await?;
        for set in &all {
            set.until_available(PODS_OF_EACH).await?;
        }
    }
    let took = Timestamp::now().duration_since(began).as_secs_f64();
    sleep(AFTER_RESTART).await;
    let megabytes = |bytes: u64| bytes / 1_000_000;
    let (now, most) = cluster.memory()?;
    println!(
        "{sets} sets of {PODS_OF_EACH} pods: available after {took:.0} s, memory {} MB, at most {} MB; writes: {:?}",
        megabytes(now),
        megabytes(most),
        cluster.writes(began)?
    );
    let began = Timestamp::now();
    cluster.restart().await?;
    sleep(AFTER_RESTART).await;
    let (now, most) = cluster.memory()?;
    println!(
        "after a restart: memory {} MB, at most {} MB; writes: {:?}",
        megabytes(now),
        megabytes(most),
        cluster.writes(began)?
    );
    Ok(())
}
