//! The process of the service, and the clusters that it watches.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::Context;
use control_plane::request;
use fedrs_tests::{
    controller_process::{Controller, Program},
    free_ports,
    generated_members::{until, write_kubeconfigs},
    install_crds,
    measured_process::MeasuredProcess,
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::json;
use sim_cluster::{Server, SimCluster};
use tempfile::TempDir;

use crate::members::{Members, Shape};

const SETS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/endpointsets";
/// Connections, and calls that follow sets, of all clients and of one: all clients are one, by their address.
const CLIENTS: &str = "100000";
/// Queries of DNS a second of one client: they are counted as by default, and none is too many.
const QUERIES: &str = "1000000";
/// For how long members are waited for: what is measured has all of them.
const MEMBER_TIMEOUT: &str = "10m";
/// EndpointSets created at the same time.
const CREATED_TOGETHER: usize = 64;

/// The service, and its clusters.
pub(crate) struct Service {
    program: Program,
    process: Option<Controller>,
    members: Arc<Members>,
    grpc: SocketAddr,
    dns: SocketAddr,
    _directory: TempDir,
    _host: (SimCluster, Server),
}

impl Service {
    /// Starts the clusters.
    pub(crate) async fn prepare(program: &Path, shape: Shape) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let host = SimCluster::builder("host").nodes(0).start();
        let server = host.serve(None).await?;
        server.write_kubeconfig(&directory.path().join("host.yaml"))?;
        let user = Client::new(host.service(), "default");
        install_crds(&user).await;
        create_sets(&user, shape).await?;
        let members = Members::new(shape);
        let address = Arc::clone(&members).serve().await?;
        let names = (0..shape.members).map(|number| format!("m-{number}"));
        write_kubeconfigs(directory.path(), &address, names)?;
        let [grpc, dns, http] = free_ports()?;
        let options = [
            "--grpc",
            &grpc.to_string(),
            "--dns",
            &dns.to_string(),
            "--http",
            &http.to_string(),
            "--max-connections",
            CLIENTS,
            "--max-connections-per-client",
            CLIENTS,
            "--max-watches",
            CLIENTS,
            "--max-watches-per-client",
            CLIENTS,
            "--max-dns-queries-per-client",
            QUERIES,
            "--member-timeout",
            MEMBER_TIMEOUT,
        ];
        let program = Program::of_discovery(program.to_owned(), directory.path(), &options);
        Ok(Self {
            program,
            process: None,
            members,
            grpc,
            dns,
            _directory: directory,
            _host: (host, server),
        })
    }

    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        self.process = Some(self.program.start()?);
        Ok(())
    }

    /// Ends it, as a signal does.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        let process = self.process.take().context("it runs")?;
        process.terminate().await
    }

    /// Its memory and its CPU time.
    pub(crate) fn process(&self) -> anyhow::Result<&MeasuredProcess> {
        let process = self.process.as_ref().context("it does not run")?;
        Ok(process.process())
    }

    /// Waits until answers have begun.
    pub(crate) async fn until_ready(&self) -> anyhow::Result<()> {
        let process = self.process.as_ref().context("it does not run")?;
        until("all is answered", async || process.is_ready().await).await
    }

    pub(crate) fn members(&self) -> &Arc<Members> {
        &self.members
    }

    pub(crate) fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    pub(crate) fn dns(&self) -> SocketAddr {
        self.dns
    }
}

pub(crate) async fn create_sets(user: &Client, shape: Shape) -> anyhow::Result<()> {
    let set = |number: usize| {
        json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": format!("set-{number}") },
            "spec": {
                "source": { "selector": { "matchLabels": { "app": format!("set-{number}") } } },
                "ports": [{ "name": "http", "port": "http" }],
            },
        })
    };
    stream::iter((0..shape.sets).map(set))
        .map(|set| async move { request(user, "POST", SETS, &set).await })
        .buffer_unordered(CREATED_TOGETHER)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(())
}
