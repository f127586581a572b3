//! A cluster to try by hand: `cargo run -p sim-cluster --example serve -- sim.yaml [NODES]`, then
//! `kubectl --kubeconfig sim.yaml get nodes`. Ctrl-C ends it.

use std::path::PathBuf;

use sim_cluster::SimCluster;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().unwrap_or_else(|| "sim.yaml".to_owned()));
    let nodes = arguments.next().map_or(Ok(3), |count| count.parse())?;
    let cluster = SimCluster::builder("sim")
        .nodes(nodes)
        .epoch(jiff::Timestamp::now())
        .start();
    let server = cluster.serve(None).await?;
    server.write_kubeconfig(&path)?;
    println!(
        "{} is served; KUBECONFIG={}",
        server.kubeconfig().server,
        path.display()
    );
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    cluster.stop().await;
    Ok(())
}
