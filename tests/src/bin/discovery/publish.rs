//! How long one change takes until it can be looked up, in a process that has all endpoints: without a network, on one thread.
//!
//! ```text
//! event of a pod --> reflector --> State --> Catalog: the set has another version
//! ```

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use discovery::{Discovery, SetKey};
use fedrs_tests::{
    generated_members::{Body, until},
    install_crds,
};
use http::{Request, Response};
use kube::Client;
use sim_cluster::SimCluster;

use crate::{
    clients::Latencies,
    members::{Members, Shape},
    service::create_sets,
};

/// How long answers wait for members.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Measures so many changes, each in any set, one after the other. Blocks the thread.
pub(crate) fn changes(shape: Shape, count: usize) -> anyhow::Result<Latencies> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    runtime.block_on(measure(shape, count))
}

async fn measure(shape: Shape, count: usize) -> anyhow::Result<Latencies> {
    let host = SimCluster::builder("host").nodes(0).start();
    let host = Client::new(host.service(), "default");
    install_crds(&host).await;
    create_sets(&host, shape).await?;
    let members = Members::new(shape);
    let mut discovery = Discovery::start(&host, PATIENCE);
    for member in 0..shape.members {
        discovery.set_member(&format!("m-{member}"), &client(&members, member));
    }
    discovery.members_known();
    let catalog = Arc::clone(discovery.catalog());
    until("all is answered", async || catalog.ready().is_ok()).await?;
    let mut took = Vec::new();
    // Each of them once stops being ready, and so leaves its set.
    for number in rand::seq::index::sample(&mut rand::rng(), shape.all(), count.min(shape.all())) {
        let set = SetKey::new("default", format!("set-{}", number / shape.endpoints));
        let mut versions = catalog.changes(&set).context("there is no such set")?;
        let changed = Instant::now();
        members.change(number, false);
        versions.changed().await?;
        took.push(changed.elapsed());
    }
    discovery.stop().await;
    Latencies::of(took, 0)
}

/// A client of a member, without a network.
fn client(members: &Arc<Members>, member: usize) -> Client {
    let members = Arc::clone(members);
    let answer = move |request: Request<kube::client::Body>| {
        let path = request.uri().path().trim_start_matches('/');
        let response = Arc::clone(&members).answer_as(member, path, &request);
        async move { Ok::<Response<Body>, tower::BoxError>(response) }
    };
    Client::new(tower::service_fn(answer), "default")
}
