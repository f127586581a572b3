//! `cargo xtask bench rollouts`: how long fedrs takes to roll out many sets at once, beside a client that rolls out the same
//! Deployments with the same budget.
//!
//! ```text
//! real host and members, nodes by kwok; `fedrs controller`, a process of its own
//!
//! bare client:  N Deployments in each member, of which each may have one unavailable pod
//! fedrs:        N FederatedDeployments, each with as many unavailable pods over all members together
//!   -> a new image in all of them at once -> all pods have it, and are available
//! ```
//!
//! The turns alternate. The writes of the host are those that its API server counts, without the user's own.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Context;
use clap::Parser;
use control_plane::request;
use fedrs_tests::{
    FDEPLOY_PATH, even, frs,
    measured_federation::{MEMBERS, MeasuredFederation},
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

/// How long a stage may take.
const DEADLINE: Duration = Duration::from_secs(600);
/// How often the members are looked at.
const PERIOD: Duration = Duration::from_millis(250);
/// Objects that are written at the same time: the connections of a client.
const WRITTEN_TOGETHER: usize = 64;
const NAMESPACE: &str = "default";
/// The pods of each set in each member, of which one may be unavailable.
const PODS: u32 = 3;

/// Measures rollouts of fedrs beside those of a client that writes the same Deployments, on real control planes.
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench rollouts")]
struct RolloutArgs {
    /// The program of the controller: a release build of fedrs
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Sets of each of the two
    #[arg(long, default_value_t = 100)]
    sets: usize,
    /// Rollouts of each of the two
    #[arg(long, default_value_t = 3)]
    turns: usize,
}

/// Who rolls out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Bare,
    Fedrs,
}

struct Clusters {
    federation: MeasuredFederation,
    sets: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = RolloutArgs::parse();
    let clusters = Clusters {
        federation: MeasuredFederation::start(args.program, args.sets * 8).await?,
        sets: args.sets,
    };
    let host = &clusters.federation.host;
    for writer in [Writer::Bare, Writer::Fedrs] {
        clusters.create(writer).await?;
        clusters.wait(writer, 1).await?;
    }
    let (mut bare, mut fedrs) = (Vec::new(), Vec::new());
    for turn in 1..=args.turns {
        for (writer, all) in [(Writer::Bare, &mut bare), (Writer::Fedrs, &mut fedrs)] {
            let before = host_writes(host).await?;
            let took = clusters.roll_out(writer, turn + 1).await?;
            // The last statuses follow.
            sleep(Duration::from_secs(10)).await;
            let mut written = host_writes(host).await?;
            for (of, count) in &mut written {
                *count -= before.get(of).unwrap_or(&0);
            }
            written.retain(|_, count| *count > 0);
            println!(
                "{writer:?} {turn}: {:.1} s, writes of the host: {written:?}",
                took.as_secs_f64()
            );
            let written: u64 = written.values().sum();
            all.push((took, written));
        }
    }
    report(&clusters, &mut bare, &mut fedrs);
    clusters.federation.print_memory()
}

/// Prints the medians.
fn report(clusters: &Clusters, bare: &mut [(Duration, u64)], fedrs: &mut [(Duration, u64)]) {
    bare.sort();
    fedrs.sort();
    let (bare, fedrs) = (bare[bare.len() / 2], fedrs[fedrs.len() / 2]);
    let [bare_seconds, fedrs_seconds] = [bare, fedrs].map(|(took, _)| took.as_secs_f64());
    println!(
        "median: bare client {bare_seconds:.1} s, fedrs {fedrs_seconds:.1} s, ratio {:.2}",
        fedrs_seconds / bare_seconds
    );
    // Beside the sets, only the Lease is written, in both turns.
    let own = fedrs.1.saturating_sub(bare.1 + clusters.sets as u64);
    #[expect(clippy::cast_precision_loss, reason = "few writes")]
    let each = own as f64 / clusters.sets as f64;
    println!("writes of the host for each set and rollout: {each:.1}");
}

/// The writes that the host's API server has counted, of anything but Leases, by verb and resource.
async fn host_writes(host: &Client) -> anyhow::Result<BTreeMap<String, u64>> {
    let get = http::Request::get("/metrics").body(Vec::new())?;
    let metrics = host.request_text(get).await?;
    let mut writes = BTreeMap::new();
    for line in metrics.lines() {
        if let Some(of) = written(line) {
            let count = line.rsplit(' ').next().unwrap_or_default();
            let count: f64 = count
                .parse()
                .with_context(|| format!("no number: {line}"))?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count"
            )]
            let count = count as u64;
            *writes.entry(of).or_default() += count;
        }
    }
    Ok(writes)
}

/// What a line of the metrics counts, if these are writes: `PATCH deployments status`.
fn written(line: &str) -> Option<String> {
    let labels = line.strip_prefix("apiserver_request_total{")?;
    let label = |name: &str| {
        let (_, value) = labels.split_once(&format!("{name}=\""))?;
        value.split('"').next()
    };
    let (verb, resource) = (label("verb")?, label("resource")?);
    let is_write = ["POST", "PUT", "PATCH", "APPLY", "DELETE"].contains(&verb);
    let subresource = label("subresource").unwrap_or_default();
    let of = format!("{verb} {resource} {subresource}");
    (is_write && resource != "leases").then(|| of.trim_end().to_owned())
}

impl Clusters {
    async fn create(&self, writer: Writer) -> anyhow::Result<()> {
        let created = (0..self.sets).map(|number| async move {
            let set = set(writer, number);
            for (client, path) in self.targets(writer) {
                request(client, "POST", &path, &set).await?;
            }
            anyhow::Ok(())
        });
        stream::iter(created)
            .buffer_unordered(WRITTEN_TOGETHER)
            .try_collect()
            .await
    }

    /// Rolls `version` out in all sets at once. Returns how long that takes.
    async fn roll_out(&self, writer: Writer, version: usize) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let patch =
            &json!({ "spec": { "template": { "spec": { "containers": [container(version)] } } } });
        let patched = (0..self.sets).map(|number| async move {
            for (client, path) in self.targets(writer) {
                let path = format!("{path}/{}", name(writer, number));
                request(client, "PATCH", &path, patch).await?;
            }
            anyhow::Ok(())
        });
        let patched = stream::iter(patched).buffer_unordered(WRITTEN_TOGETHER);
        patched.try_collect::<()>().await?;
        self.wait(writer, version).await?;
        Ok(started.elapsed())
    }

    /// Waits until all Deployments have `version`, and nothing but available pods of it.
    async fn wait(&self, writer: Writer, version: usize) -> anyhow::Result<()> {
        let deadline = Instant::now() + DEADLINE;
        for client in &self.federation.members {
            while self.complete(client, writer, version).await? < self.sets {
                anyhow::ensure!(
                    Instant::now() < deadline,
                    "{writer:?} {version} does not end"
                );
                sleep(PERIOD).await;
            }
        }
        Ok(())
    }

    async fn complete(
        &self,
        client: &Client,
        writer: Writer,
        version: usize,
    ) -> anyhow::Result<usize> {
        let list = request(client, "GET", &deployments(), &Value::Null).await?;
        let image = &container(version)["image"];
        let is_complete = |object: &&Value| {
            let status = &object["status"];
            let counts = ["replicas", "updatedReplicas", "availableReplicas"];
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with(prefix(writer))
                && object["spec"]["template"]["spec"]["containers"][0]["image"] == *image
                && status["observedGeneration"] == object["metadata"]["generation"]
                && counts.iter().all(|count| status[count] == PODS)
        };
        let items = list["items"].as_array().context("a list")?;
        Ok(items.iter().filter(is_complete).count())
    }

    /// Where the sets of `writer` are.
    fn targets(&self, writer: Writer) -> Vec<(&Client, String)> {
        match writer {
            Writer::Bare => {
                let members = self.federation.members.iter();
                members.map(|client| (client, deployments())).collect()
            }
            Writer::Fedrs => {
                vec![(&self.federation.host, FDEPLOY_PATH.to_owned())]
            }
        }
    }
}

fn deployments() -> String {
    format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments")
}

fn prefix(writer: Writer) -> &'static str {
    match writer {
        Writer::Bare => "bare-",
        Writer::Fedrs => "fedrs-",
    }
}

fn name(writer: Writer, number: usize) -> String {
    format!("{}{number}", prefix(writer))
}

fn container(version: usize) -> Value {
    json!({ "name": "main", "image": format!("registry.example/main:{version}") })
}

/// A FederatedDeployment, or a Deployment of one member.
fn set(writer: Writer, number: usize) -> Value {
    let members = u32::try_from(MEMBERS.len()).unwrap_or(u32::MAX);
    let mut set = frs(&name(writer, number), PODS * members, &even(true));
    set["metadata"]["namespace"] = Value::Null;
    set["kind"] = "FederatedDeployment".into();
    let mut unavailable = members;
    if writer == Writer::Bare {
        set["apiVersion"] = "apps/v1".into();
        set["kind"] = "Deployment".into();
        set["spec"]["replicas"] = PODS.into();
        set["spec"]["placement"] = Value::Null;
        unavailable = 1;
    }
    set["spec"]["template"]["spec"]["containers"] = json!([container(1)]);
    let budget = json!({ "maxUnavailable": unavailable, "maxSurge": 0 });
    set["spec"]["strategy"] = json!({ "type": "RollingUpdate", "rollingUpdate": budget });
    set
}
