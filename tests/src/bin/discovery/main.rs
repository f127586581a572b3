//! `cargo xtask bench discovery`: what `fedrs discovery` takes, and how fast it answers.
//!
//! ```text
//! embedded host (HTTPS) and generated members (HTTP), in this process <--> `fedrs discovery`, a process of its own <--> clients here
//!
//! size: start, memory; stopped, and started from its snapshots while no member answers
//! publish: from the event of a pod to what can be looked up, in this process
//! load: answers by gRPC and DNS for each second of its CPU time; from a change of a pod to a client; resolves in the process of a client
//!   DNS in turns with CoreDNS, a process of its own that has the same names
//! watchers: memory and CPU time of many clients that follow a set each
//! ```

mod clients;
mod coredns;
mod dns;
mod members;
mod publish;
mod service;
mod watchers;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::ensure;
use clap::Parser;
use control_plane::Programs;
use fedrs_tests::measured_process::MeasuredProcess;

use self::{
    clients::{Latencies, Rate},
    coredns::CoreDns,
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
    /// Changes whose publication is measured, with as many sets as at factor 1; 0 measures none
    #[arg(long, default_value_t = 10_000)]
    publications: usize,
    /// EndpointSets, of 30 endpoints each, while answers are counted
    #[arg(long, default_value_t = 500)]
    loaded_sets: usize,
    /// Seconds of each kind of load; 0 measures none, and no clients that follow sets
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Turns of fedrs and CoreDNS, which needs Go
    #[arg(long, default_value_t = 2)]
    turns: usize,
    /// Clients that follow one set each; 0 measures none
    #[arg(long, default_value_t = 10_000)]
    clients: usize,
}

/// The endpoints of a set while answers are counted.
const LOADED_ENDPOINTS: usize = 30;
/// Changes of pods a second.
const CHANGES: u32 = 100;
/// Clients that follow a set each on one connection, if they share some: fewer than a connection may have calls.
const SHARING_CLIENTS: usize = 500;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = DiscoveryArgs::parse();
    // A program that can't be built should be noticed at once.
    let coredns = (args.seconds > 0 && args.turns > 0).then(CoreDns::build);
    let coredns = coredns.transpose()?;
    let mut sizes = Vec::new();
    for factor in &args.factors {
        let shape = args.shape(*factor);
        sizes.push((shape.all(), size(&args, shape).await?));
    }
    if let [few, .., many] = &sizes[..] {
        print_growth(few, many);
    }
    if args.publications > 0 {
        publish(args.shape(1), args.publications).await?;
    }
    if args.seconds > 0 {
        load(&args, coredns.as_ref()).await?;
        if args.clients > 0 {
            watchers(&args).await?;
        }
    }
    Ok(())
}

impl DiscoveryArgs {
    /// With so many times as many sets.
    fn shape(&self, factor: usize) -> Shape {
        Shape {
            members: self.members,
            sets: self.sets * factor,
            endpoints: self.endpoints,
        }
    }

    /// While answers are counted.
    fn loaded_shape(&self) -> Shape {
        Shape {
            members: self.members,
            sets: self.loaded_sets,
            endpoints: LOADED_ENDPOINTS,
        }
    }

    fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// What a number of endpoints takes.
struct Size {
    /// The resident bytes.
    memory: f64,
    /// Seconds from a start until all is answered, from lists and from snapshots.
    from_lists: f64,
    from_snapshots: f64,
}

fn print_growth((few, small): &(usize, Size), (many, large): &(usize, Size)) {
    let power = |of: fn(&Size) -> f64| power((*few, of(small)), (*many, of(large)));
    println!(
        "by the power of the size grow: memory {:.2}, the start from lists {:.2}, from snapshots {:.2}",
        power(|size| size.memory),
        power(|size| size.from_lists),
        power(|size| size.from_snapshots),
    );
}

/// By which power of the number something grows.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn power((few, small): (usize, f64), (many, large): (usize, f64)) -> f64 {
    (large / small).ln() / (many as f64 / few as f64).ln()
}

/// Measures the size.
async fn size(args: &DiscoveryArgs, shape: Shape) -> anyhow::Result<Size> {
    println!(
        "{} endpoints in {} sets over {} members",
        shape.all(),
        shape.sets,
        shape.members
    );
    let mut service = Service::prepare(&args.program, shape).await?;
    let (from_lists, memory) = start(&mut service, "lists").await?;
    service.stop().await?;
    service.members().refuse(true);
    let (from_snapshots, _) = start(&mut service, "snapshots").await?;
    Ok(Size {
        memory,
        from_lists,
        from_snapshots,
    })
}

/// Starts the service. Returns the seconds until all is answered, and the resident bytes then.
#[expect(clippy::cast_precision_loss, reason = "for people")]
async fn start(service: &mut Service, from: &str) -> anyhow::Result<(f64, f64)> {
    let started = Instant::now();
    service.start()?;
    service.until_ready().await?;
    let seconds = started.elapsed().as_secs_f64();
    let (resident, peak) = service.process()?.memory()?;
    println!(
        "  from {from}: answers after {seconds:.1} s; {:.0} MB, {:.0} MB at most",
        resident as f64 / 1e6,
        peak as f64 / 1e6
    );
    Ok((seconds, resident as f64))
}

/// Measures how long a change takes until it can be looked up.
async fn publish(shape: Shape, count: usize) -> anyhow::Result<()> {
    let measured = tokio::task::spawn_blocking(move || publish::changes(shape, count));
    let Latencies { median, p99, .. } = measured.await??;
    println!(
        "one change with {} endpoints, from the event until it can be looked up: p50 {:.1} µs, p99 {:.1} µs",
        shape.all(),
        median.as_secs_f64() * 1e6,
        p99.as_secs_f64() * 1e6,
    );
    Ok(())
}

/// Measures answers.
async fn load(args: &DiscoveryArgs, coredns: Option<&Programs>) -> anyhow::Result<()> {
    let (shape, duration) = (args.loaded_shape(), args.duration());
    println!("{} sets of {LOADED_ENDPOINTS} endpoints", shape.sets);
    let mut service = Service::prepare(&args.program, shape).await?;
    service.start()?;
    service.until_ready().await?;
    println!(
        "  resolves in the process of a client: {:.0} a second",
        clients::in_process(service.grpc(), duration).await?
    );
    for (name, has_version) in [("Resolve", false), ("Resolve with the known version", true)] {
        let calls = clients::grpc(service.grpc(), shape, has_version, duration);
        rate(&format!("gRPC {name}"), service.process()?, calls).await?;
    }
    if let Some(coredns) = coredns {
        let coredns = CoreDns::start(coredns, shape).await?;
        beside(&service, &coredns, args).await?;
    }
    changes(&service, shape, duration).await
}

/// Measures answers by DNS in turns with CoreDNS.
async fn beside(service: &Service, coredns: &CoreDns, args: &DiscoveryArgs) -> anyhow::Result<()> {
    let (shape, duration) = (args.loaded_shape(), args.duration());
    for set in [0, shape.sets - 1] {
        let ours = dns::addresses(service.dns(), set).await?;
        let theirs = dns::addresses(coredns.address(), set).await?;
        ensure!(ours == theirs, "fedrs answers {ours:?}, CoreDNS {theirs:?}");
    }
    let (mut ours, mut theirs) = (0.0, 0.0);
    for turn in 1..=args.turns {
        let answers = dns::load(service.dns(), shape, duration);
        ours += rate(&format!("DNS A, fedrs {turn}"), service.process()?, answers).await?;
        let answers = dns::load(coredns.address(), shape, duration);
        theirs += rate(
            &format!("DNS A, CoreDNS {turn}"),
            coredns.process(),
            answers,
        )
        .await?;
    }
    println!("  DNS A: {:.2} times as many as CoreDNS", ours / theirs);
    Ok(())
}

/// Measures how long changes take until a client has them.
async fn changes(service: &Service, shape: Shape, duration: Duration) -> anyhow::Result<()> {
    let before = service.process()?.cpu_seconds()?;
    let latencies = clients::changes(service, shape, CHANGES, duration).await?;
    let used = service.process()?.cpu_seconds()? - before;
    let Latencies { median, p99, lost } = latencies;
    println!(
        "  {CHANGES} changes a second until a watching client has them: p50 {:.1} ms, p99 {:.1} ms, {lost} lost; {:.0} µs of CPU time each",
        median.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        used * 1e6 / (f64::from(CHANGES) * duration.as_secs_f64()),
    );
    Ok(())
}

/// Measures clients that follow sets, over connections that they share, and over one each.
async fn watchers(args: &DiscoveryArgs) -> anyhow::Result<()> {
    let (shape, clients) = (args.loaded_shape(), args.clients);
    for connections in [clients.div_ceil(SHARING_CLIENTS), clients] {
        if !watchers::can_open(connections) {
            println!(
                "{connections} connections: not measured, as there may be fewer open files (ulimit -n)"
            );
            continue;
        }
        let mut service = Service::prepare(&args.program, shape).await?;
        service.start()?;
        service.until_ready().await?;
        let load = (CHANGES, args.duration());
        let cost = watchers::cost(&service, shape, (clients, connections), load).await?;
        println!(
            "{clients} clients that follow a set each, over {connections} connections: {:.1} KB each; {:.1} % of a processor while nothing changes; {:.1} µs of CPU time for each client and change, {} of {} lost",
            cost.bytes / 1e3,
            cost.idle * 1e2,
            cost.seconds * 1e6,
            cost.lost,
            cost.sent,
        );
    }
    Ok(())
}

/// Measures and prints answers for each second of CPU time of `process`, and returns them.
#[expect(clippy::cast_precision_loss, reason = "for people")]
async fn rate(
    name: &str,
    process: &MeasuredProcess,
    load: impl Future<Output = anyhow::Result<Rate>>,
) -> anyhow::Result<f64> {
    let before = process.cpu_seconds()?;
    let Rate {
        answers,
        failed,
        seconds,
    } = load.await?;
    let answers = answers as f64;
    let rate = answers / (process.cpu_seconds()? - before);
    println!(
        "  {name}: {rate:.0} answers for each second of CPU time ({:.0} a second with all clients on this machine), {failed} failed",
        answers / seconds,
    );
    Ok(rate)
}
