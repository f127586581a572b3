//! Starts from snapshots on disk, while clusters are away.

use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::http::StatusCode;
use discovery::{Answer, DiscoveryMetrics, LoadedSnapshots, SnapshotDirectory, write_snapshots};
use prometheus_client::{encoding::text, registry::Registry};
use serde_json::Value;
use sim_cluster::SimCluster;
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::world::{PATIENCE, SETS, World, create_pod, delete_pod, write};

const BOTH: [&str; 2] = ["eu", "us"];

/// What writes snapshots of a world into a directory.
struct Writing {
    directory: TempDir,
    registry: Registry,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Writing {
    fn start(world: &World, directory: TempDir) -> Self {
        let mut registry = Registry::default();
        let metrics = DiscoveryMetrics::register(world.catalog(), &mut registry);
        let cancel = CancellationToken::new();
        let snapshots = SnapshotDirectory::new(directory.path().join("snapshots"));
        let catalog = Arc::clone(world.catalog());
        let task = tokio::spawn(write_snapshots(snapshots, catalog, metrics, cancel.clone()));
        Self {
            directory,
            registry,
            cancel,
            task,
        }
    }

    /// Ends it: the last snapshots are written then.
    async fn stop(self) -> TempDir {
        self.cancel.cancel();
        self.task.await.unwrap();
        self.directory
    }

    fn metric(&self, line: &str) -> bool {
        has_metric(&self.registry, line)
    }
}

fn has_metric(registry: &Registry, line: &str) -> bool {
    let mut encoded = String::new();
    text::encode(&mut encoded, registry).unwrap();
    encoded.lines().any(|found| found == line)
}

fn metrics(world: &World) -> Registry {
    let mut registry = Registry::default();
    DiscoveryMetrics::register(world.catalog(), &mut registry);
    registry
}

fn load(directory: &TempDir) -> LoadedSnapshots {
    SnapshotDirectory::new(directory.path().join("snapshots")).load()
}

fn file(directory: &TempDir, name: &str) -> PathBuf {
    directory.path().join("snapshots").join(name)
}

fn names(answer: &Answer) -> Vec<String> {
    let endpoints = answer.endpoints.iter();
    endpoints
        .map(|endpoint| format!("{}/{}", endpoint.cluster, endpoint.name))
        .collect()
}

fn stale(answer: &Answer) -> Vec<(&str, bool)> {
    let members = answer.stale_members.iter();
    members
        .map(|member| (member.name.as_str(), member.seconds.is_some()))
        .collect()
}

/// A world with the pods `eu/a` and `us/b`, and the snapshots that a replica of it has left.
async fn stopped() -> (World, TempDir, Answer) {
    let world = World::start(async |[eu, us]: &[SimCluster; 2]| {
        create_pod(eu, "a").await;
        create_pod(us, "b").await;
    })
    .await;
    let writing = Writing::start(&world, tempfile::tempdir().unwrap());
    let answer = world.answer(|answer| answer.endpoints.len() == 2).await;
    (world, writing.stop().await, answer)
}

#[tokio::test(start_paused = true)]
async fn d3_a_replica_that_starts_while_a_member_is_away_answers_what_it_last_knew() {
    let (world, directory, before) = stopped().await;
    world.members[0].faults().set_unreachable(true);
    let began = Instant::now();
    let world = world.restart(async || load(&directory), &BOTH).await;
    let answer = world.answer(|answer| answer.endpoints.len() == 2).await;
    assert!(began.elapsed() < PATIENCE / 2, "it waited for the member");
    assert_eq!(answer.endpoints, before.endpoints);
    assert!(answer.version > before.version);
    let answer = world.answer(|answer| answer.stale_members.len() == 1).await;
    assert_eq!(stale(&answer), [("eu", true)]);
    let registry = metrics(&world);
    assert!(has_metric(&registry, "discovery_loaded_snapshots 1"));
    // It is gone from the member meanwhile, and from the answers once the member is listed.
    delete_pod(&world.members[0], "a").await;
    create_pod(&world.members[0], "c").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let answer = world.answer(|answer| answer.endpoints.len() == 2).await;
    assert_eq!(
        (names(&answer), stale(&answer)),
        (names(&before), vec![("eu", true)])
    );
    world.members[0].faults().heal();
    let answer = world
        .answer(|answer| names(answer) == ["eu/c", "us/b"])
        .await;
    assert_eq!(stale(&answer), []);
    assert!(has_metric(&registry, "discovery_loaded_snapshots 0"));
}

#[tokio::test(start_paused = true)]
async fn d3_a_replica_that_starts_while_the_host_is_away_answers_the_sets_it_last_knew() {
    let (world, directory, before) = stopped().await;
    world.host.faults().set_unreachable(true);
    let world = world.restart(async || load(&directory), &BOTH).await;
    let answer = world.answer(|answer| answer.stale_members.is_empty()).await;
    assert_eq!(answer.endpoints, before.endpoints);
    create_pod(&world.members[0], "c").await;
    let answer = world.answer(|answer| answer.endpoints.len() == 3).await;
    assert_eq!(names(&answer), ["eu/a", "eu/c", "us/b"]);
    write(&world.host, "DELETE", &format!("{SETS}/web"), &Value::Null).await;
    let registry = metrics(&world);
    assert!(has_metric(&registry, "discovery_loaded_snapshots 1"));
    world.host.faults().heal();
    let path = "/v1/endpoints/default/web";
    while world.get(path, None).await.0 != StatusCode::NOT_FOUND {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // Federated sets may be listed later than EndpointSets.
    while !has_metric(&registry, "discovery_loaded_snapshots 0") {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn d3_a_damaged_snapshot_is_as_none() {
    let (world, directory, before) = stopped().await;
    let damaged = file(&directory, "member-eu.snapshot");
    let mut bytes = std::fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&damaged, &bytes).unwrap();
    world.members[0].faults().set_unreachable(true);
    let world = world.restart(async || load(&directory), &BOTH).await;
    tokio::time::sleep(PATIENCE / 2).await;
    let (status, body, _) = world.get("/v1/endpoints/default/web", None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, "waiting for the first list of pods of eu\n");
    // Nor is it replaced by less.
    let directory = Writing::start(&world, directory).stop().await;
    assert_eq!(std::fs::read(&damaged).unwrap(), bytes);
    let answer = world.answer(|answer| answer.endpoints.len() == 1).await;
    assert_eq!(stale(&answer), [("eu", false)]);
    world.members[0].faults().heal();
    let answer = world.answer(|answer| answer.stale_members.is_empty()).await;
    assert_eq!(names(&answer), names(&before));
    drop(directory);
}

/// A member without a kubeconfig is as one whose kubeconfig is removed while the service runs.
#[tokio::test(start_paused = true)]
async fn d3_a_member_without_a_kubeconfig_is_answered_from_its_snapshot_over_restarts() {
    let (mut world, mut directory, before) = stopped().await;
    for _ in 0..2 {
        world = world.restart(async || load(&directory), &["us"]).await;
        let answer = world.answer(|answer| answer.stale_members.len() == 1).await;
        assert_eq!(answer.endpoints, before.endpoints);
        assert_eq!(stale(&answer), [("eu", true)]);
        directory = Writing::start(&world, directory).stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn d3_snapshots_follow_changes_and_a_failure_does_not_stop_answers() {
    let (world, directory, _) = stopped().await;
    let writing = Writing::start(&world, directory);
    tokio::time::sleep(Duration::from_secs(15)).await;
    let read = |name| std::fs::read(file(&writing.directory, name)).unwrap();
    let first = (read("member-eu.snapshot"), read("member-us.snapshot"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(first == (read("member-eu.snapshot"), read("member-us.snapshot")));
    create_pod(&world.members[0], "c").await;
    world.answer(|answer| answer.endpoints.len() == 3).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(read("member-eu.snapshot") != first.0, "it has changed");
    assert!(read("member-us.snapshot") == first.1, "it has not");
    // A file in the way of the directory, as a disk that takes nothing.
    let path = file(&writing.directory, "");
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::write(path.parent().unwrap().join("snapshots"), "x").unwrap();
    create_pod(&world.members[0], "d").await;
    world.answer(|answer| answer.endpoints.len() == 4).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(writing.metric("discovery_snapshot_writes_total{result=\"failed\"} 1"));
    std::fs::remove_file(path.parent().unwrap().join("snapshots")).unwrap();
    let directory = writing.stop().await;
    world.members[0].faults().set_unreachable(true);
    let world = world.restart(async || load(&directory), &BOTH).await;
    world.answer(|answer| answer.endpoints.len() == 4).await;
}
