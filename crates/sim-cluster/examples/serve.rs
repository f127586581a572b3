//! Serves a cluster over HTTPS for `kubectl`: `cargo run -p sim-cluster --example serve`. Ctrl-C ends it.
//!
//! The kubeconfig is written to the file that the first argument names, otherwise to the directory for temporary files.

use std::path::PathBuf;

use sim_cluster::SimCluster;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).map(PathBuf::from);
    let path = path.unwrap_or_else(|| std::env::temp_dir().join("sim-cluster.yaml"));
    let cluster = SimCluster::builder("sim")
        .nodes(3)
        .epoch(jiff::Timestamp::now())
        .start();
    let server = cluster.serve(None).await?;
    server.write_kubeconfig(&path)?;
    println!("The cluster is served at {}.", server.kubeconfig().server);
    println!("  kubectl --kubeconfig {} get nodes", path.display());
    println!("Ctrl-C ends it.");
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    cluster.stop().await;
    std::fs::remove_file(&path)?;
    Ok(())
}
