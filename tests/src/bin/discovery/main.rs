//! `cargo xtask bench discovery`: what `fedrs discovery` takes, and how fast it answers.
//!
//! ```text
//! embedded host (HTTPS) and generated members (HTTP), in this process <--> `fedrs discovery`, a process of its own <--> clients here
//!
//! size: start, memory; stopped, and started from its snapshots while no member answers
//! load: answers by gRPC and DNS for each second of its CPU time; from a change of a pod to a client; resolves in the process of a client
//! ```

mod clients;
mod members;
mod service;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Parser;
use fedrs_tests::generated_members::until;

use self::{
    clients::{Latencies, Rate},
    members::Shape,
    service::Service,
};

/// Measures `fedrs discovery` with generated members.
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench discovery")]
struct DiscoveryArgs {
    /// The program: a release build of fedrs
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Member clusters
    #[arg(long, default_value_t = 50)]
    members: usize,
    /// EndpointSets at factor 1
    #[arg(long, default_value_t = 10_000)]
    sets: usize,
    /// Endpoints of each
    #[arg(long, default_value_t = 100)]
    endpoints: usize,
    /// Factors: measure the size with this many times as many sets
    #[arg(long, value_delimiter = ',', default_value = "1")]
    factors: Vec<usize>,
    /// EndpointSets, of 30 endpoints each, while answers are counted
    #[arg(long, default_value_t = 500)]
    loaded_sets: usize,
    /// Seconds of each kind of load; 0 measures none
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// The endpoints of a set while answers are counted.
const LOADED_ENDPOINTS: usize = 30;
/// Changes of pods a second.
const CHANGES: u32 = 100;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = DiscoveryArgs::parse();
    let mut sizes = Vec::new();
    for factor in &args.factors {
        let shape = Shape {
            members: args.members,
            sets: args.sets * factor,
            endpoints: args.endpoints,
        };
        sizes.push((shape.all(), size(&args, shape).await?));
    }
    if let [(few, small), .., (many, large)] = sizes[..] {
        println!(
            "memory grows with the power {:.2} of the size",
            power((few, small), (many, large))
        );
    }
    if args.seconds > 0 {
        load(&args).await?;
    }
    Ok(())
}

/// By which power of the number the bytes grow.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn power((few, small): (usize, u64), (many, large): (usize, u64)) -> f64 {
    (large as f64 / small as f64).ln() / (many as f64 / few as f64).ln()
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Measures the size. Returns the resident bytes.
async fn size(args: &DiscoveryArgs, shape: Shape) -> anyhow::Result<u64> {
    println!(
        "{} endpoints in {} sets over {} members",
        shape.all(),
        shape.sets,
        shape.members
    );
    let mut service = Service::prepare(&args.program, shape).await?;
    let started = Instant::now();
    service.start()?;
    until("all is answered", async || service.is_ready().await).await?;
    let seconds = started.elapsed().as_secs_f64();
    let (resident, peak) = service.memory()?;
    println!(
        "  from lists: answers after {seconds:.1} s; {:.0} MB, {:.0} MB at most",
        megabytes(resident),
        megabytes(peak)
    );
    service.stop().await?;
    service.members().refuse(true);
    let started = Instant::now();
    service.start()?;
    until("all is answered", async || service.is_ready().await).await?;
    let seconds = started.elapsed().as_secs_f64();
    let (loaded, peak) = service.memory()?;
    println!(
        "  from snapshots: answers after {seconds:.1} s; {:.0} MB, {:.0} MB at most",
        megabytes(loaded),
        megabytes(peak)
    );
    Ok(resident)
}

/// Measures answers.
async fn load(args: &DiscoveryArgs) -> anyhow::Result<()> {
    let shape = Shape {
        members: args.members,
        sets: args.loaded_sets,
        endpoints: LOADED_ENDPOINTS,
    };
    println!("{} sets of {LOADED_ENDPOINTS} endpoints", shape.sets);
    let mut service = Service::prepare(&args.program, shape).await?;
    service.start()?;
    until("all is answered", async || service.is_ready().await).await?;
    let duration = Duration::from_secs(args.seconds);
    println!(
        "  resolves in the process of a client: {:.0} a second",
        clients::in_process(service.grpc(), duration).await?
    );
    for (name, has_version) in [("Resolve", false), ("Resolve with the known version", true)] {
        let before = service.cpu_seconds()?;
        let calls = clients::grpc(service.grpc(), shape, has_version, duration).await?;
        print_rate(
            &format!("gRPC {name}"),
            calls,
            service.cpu_seconds()? - before,
        );
    }
    let before = service.cpu_seconds()?;
    let answers = clients::dns(service.dns(), shape, duration).await?;
    print_rate("DNS A", answers, service.cpu_seconds()? - before);
    let before = service.cpu_seconds()?;
    let latencies = clients::changes(&service, shape, CHANGES, duration).await?;
    let used = service.cpu_seconds()? - before;
    let Latencies { median, p99, lost } = latencies;
    println!(
        "  {CHANGES} changes a second until a watching client has them: p50 {:.1} ms, p99 {:.1} ms, {lost} lost; {:.0} µs of CPU time each",
        median.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        used * 1e6 / (f64::from(CHANGES) * duration.as_secs_f64()),
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn print_rate(
    name: &str,
    Rate {
        answers,
        failed,
        seconds,
    }: Rate,
    cpu_seconds: f64,
) {
    println!(
        "  {name}: {:.0} answers for each second of CPU time ({:.0} a second with all clients on this machine), {failed} failed",
        answers as f64 / cpu_seconds,
        answers as f64 / seconds,
    );
}
