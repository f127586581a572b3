//! `cargo xtask bench beside`: how long fedrs takes for many sets on real control planes, beside a client that writes the
//! same objects.
//!
//! ```text
//! real host and members, nodes by kwok; `fedrs controller`, a process of its own
//!
//! turn of the bare client:  N FederatedReplicaSets of another federation, and their local ReplicaSets
//! turn of fedrs:            N FederatedReplicaSets
//!   -> all local ReplicaSets exist -> all of their pods are ready -> every status says so (fedrs) -> all deleted
//! ```
//!
//! The turns alternate: what the API servers, the members' controllers and the machine take is in both.

mod progress;
mod turn;

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use fedrs_tests::measured_federation::MeasuredFederation;
use tokio::time::Duration;

use self::turn::{Times, Writer};

/// Measures fedrs beside a client that writes the same objects, on real control planes.
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench beside")]
struct BesideArgs {
    /// The program of the controller: a release build of fedrs
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// FederatedReplicaSets of each turn
    #[arg(long, default_value_t = 500)]
    sets: usize,
    /// Turns of each of the two
    #[arg(long, default_value_t = 3)]
    turns: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = BesideArgs::parse();
    let clusters = MeasuredFederation::start(args.program, args.sets).await?;
    let (mut bare, mut fedrs) = (Vec::new(), Vec::new());
    for number in 1..=args.turns {
        for (writer, all) in [(Writer::Bare, &mut bare), (Writer::Fedrs, &mut fedrs)] {
            let times = turn::run(&clusters, writer, number, args.sets).await?;
            println!("{} {number}: {times:?}", writer.name());
            all.push(times);
        }
    }
    report(&bare, &fedrs)?;
    clusters.print_memory()
}

/// Prints the median of each stage, and the ratios.
fn report(bare: &[Times], fedrs: &[Times]) -> anyhow::Result<()> {
    let stage = |all: &[Times], of: fn(&Times) -> Option<Duration>| {
        let mut seconds: Vec<_> = all.iter().filter_map(of).collect();
        seconds.sort();
        let median = seconds.get(seconds.len() / 2).context("there is a turn")?;
        Ok::<_, anyhow::Error>(median.as_secs_f64())
    };
    let sets = |times: &Times| Some(times.local_sets);
    let ready = |times: &Times| Some(times.ready);
    let (bare_sets, bare_ready) = (stage(bare, sets)?, stage(bare, ready)?);
    println!(
        "median of {} turns          bare client   fedrs   ratio",
        bare.len()
    );
    for (what, bare, fedrs) in [
        (
            "all local ReplicaSets exist",
            bare_sets,
            stage(fedrs, sets)?,
        ),
        (
            "all of them are ready      ",
            bare_ready,
            stage(fedrs, ready)?,
        ),
        (
            "every status says so       ",
            bare_ready,
            stage(fedrs, |times| times.statuses)?,
        ),
    ] {
        println!("{what}  {bare:9.1} s {fedrs:5.1} s   {:5.2}", fedrs / bare);
    }
    Ok(())
}
