//! One turn: many sets are created, by a bare client or by fedrs, until all of them are ready; then they are deleted.

use std::time::Duration;

use control_plane::request;
use fedrs_tests::{even, frs, measured_federation::MeasuredFederation};
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::progress::{Count, Progress};

/// Objects that are written at the same time: the connections of a client.
const WRITTEN_TOGETHER: usize = 64;
/// How long a stage may take.
const DEADLINE: Duration = Duration::from_secs(900);
/// The replicas of each set: one in each member.
const REPLICAS: u32 = 3;

/// Who creates the local ReplicaSets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The user, who also creates the same FederatedReplicaSets, of a federation without a controller.
    Bare,
    /// The controller.
    Fedrs,
}

impl Writer {
    /// As a part of the name of an object.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Fedrs => "fedrs",
        }
    }
}

/// When each stage was reached, since the first creation.
#[derive(Debug)]
pub(crate) struct Times {
    /// All local ReplicaSets exist.
    pub(crate) local_sets: Duration,
    /// All of them report all of their replicas as ready.
    pub(crate) ready: Duration,
    /// Every status of a FederatedReplicaSet says so.
    pub(crate) statuses: Option<Duration>,
}

/// Runs one turn with `count` sets.
pub(crate) async fn run(
    clusters: &MeasuredFederation,
    writer: Writer,
    number: usize,
    count: usize,
) -> anyhow::Result<Times> {
    let namespace = format!("{}-{number}", writer.name());
    let object =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    for client in clusters.members.iter().chain([&clusters.host]) {
        request(client, "POST", "/api/v1/namespaces", &object).await?;
    }
    let paths = Paths::of(&namespace);
    let sets = Progress::start(&clusters.host, &paths.sets);
    let members = clusters.members.iter();
    let members: Vec<_> = members
        .map(|client| Progress::start(client, &paths.local_sets))
        .collect();

    let started = Instant::now();
    let reached = async |progress: &[Progress], is_reached: fn(Count, usize) -> bool| {
        let all = progress.iter().map(|progress| async {
            let mut seen = progress.count.clone();
            timeout(DEADLINE, seen.wait_for(|seen| is_reached(*seen, count))).await??;
            anyhow::Ok(())
        });
        try_join_all(all).await?;
        anyhow::Ok(started.elapsed())
    };
    let statuses = async {
        match writer {
            Writer::Bare => Ok(None),
            Writer::Fedrs => reached(std::slice::from_ref(&sets), |seen, all| seen.ready == all)
                .await
                .map(Some),
        }
    };
    let ((), local_sets, ready, statuses) = tokio::try_join!(
        create(clusters, writer, &paths, count),
        reached(&members, |seen, all| seen.all == all),
        reached(&members, |seen, all| seen.ready == all),
        statuses
    )?;
    delete(clusters, writer, &paths).await?;
    reached(&members, |seen, _| seen.all == 0).await?;
    reached(&[sets], |seen, _| seen.all == 0).await?;
    pods_are_gone(clusters, &namespace).await?;
    Ok(Times {
        local_sets,
        ready,
        statuses,
    })
}

/// The collections of a namespace.
struct Paths {
    sets: String,
    local_sets: String,
}

impl Paths {
    fn of(namespace: &str) -> Self {
        Self {
            sets: format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/federatedreplicasets"),
            local_sets: format!("/apis/apps/v1/namespaces/{namespace}/replicasets"),
        }
    }
}

async fn create(
    clusters: &MeasuredFederation,
    writer: Writer,
    paths: &Paths,
    count: usize,
) -> anyhow::Result<()> {
    let created = (0..count).map(|number| async move {
        let set = set(&format!("web-{number}"), writer);
        request(&clusters.host, "POST", &paths.sets, &set).await?;
        if writer == Writer::Bare {
            let local = local_set(&set);
            let members = clusters.members.iter();
            let created = members.map(|client| request(client, "POST", &paths.local_sets, &local));
            try_join_all(created).await?;
        }
        anyhow::Ok(())
    });
    let created = stream::iter(created).buffer_unordered(WRITTEN_TOGETHER);
    created.try_collect().await
}

/// A FederatedReplicaSet. A bare client's is of a federation that has no controller.
fn set(name: &str, writer: Writer) -> Value {
    let mut set = frs(name, REPLICAS, &even(true));
    // That of the path.
    set["metadata"]["namespace"] = Value::Null;
    set["spec"]["deletionPolicy"] = "Delete".into();
    if writer == Writer::Bare {
        set["spec"]["federation"] = writer.name().into();
    }
    set
}

/// The ReplicaSet that the controller creates for a set in each of three members, without its bookkeeping.
fn local_set(set: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": set["metadata"]["name"],
            "labels": { "app": set["metadata"]["name"] },
        },
        "spec": {
            "replicas": 1,
            "selector": set["spec"]["selector"],
            "template": set["spec"]["template"],
        },
    })
}

/// Deletes all sets; the controller deletes the local ReplicaSets of its own.
async fn delete(
    clusters: &MeasuredFederation,
    writer: Writer,
    paths: &Paths,
) -> anyhow::Result<()> {
    request(&clusters.host, "DELETE", &paths.sets, &Value::Null).await?;
    if writer == Writer::Bare {
        let options = json!({ "propagationPolicy": "Background" });
        for client in &clusters.members {
            request(client, "DELETE", &paths.local_sets, &options).await?;
        }
    }
    Ok(())
}

/// Waits until the next turn finds the members idle.
async fn pods_are_gone(clusters: &MeasuredFederation, namespace: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?limit=1");
    for client in &clusters.members {
        let gone = async {
            loop {
                let list = request(client, "GET", &path, &Value::Null).await?;
                if list["items"].as_array().is_some_and(Vec::is_empty) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(DEADLINE, gone).await??;
    }
    Ok(())
}
