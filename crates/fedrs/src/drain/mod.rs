//! `fedrs drain`: moves all replicas off a member, and waits until none is left.

mod left;

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use clap::Args;
use fedrs_api::{FederatedReplicaSet, MemberCluster};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    host::HostOfMembers,
    membership::cluster,
    remote::{Failure, Remote, Side},
    say::Say,
    values,
};

/// How often it is looked at what is left.
const PERIOD: Duration = Duration::from_secs(1);
/// The shell's code for a command that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// Move all replicas off a member: each only once its replacement is ready elsewhere
///
/// Also where preferences ask for a minimum there. Replicas that no other cluster may or can take stay; it says which.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs drain eu-west
  fedrs uncordon eu-west      # ends it: replicas are added again

Ctrl-C ends the waiting, not the drain.")]
pub(crate) struct DrainArgs {
    /// The member
    #[arg(value_parser = values::dns_label)]
    name: String,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    timeout: Duration,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Drains. Fails if something is left in the end.
pub(crate) async fn run(args: DrainArgs) -> anyhow::Result<ExitCode> {
    let mut say = Say::to_terminal();
    let name = &args.name;
    let host = Remote::new(Side::Host, args.host.config().await?)?;
    let member = cluster::existing(&host, name).await?;
    match drain(&host, member, args.timeout, &mut say).await? {
        Ended::Drained => {
            say.line(format_args!(
                "{name} is drained, and gets no replicas until `fedrs uncordon {name}`"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Ended::Interrupted => {
            say.line(format_args!(
                "{name} goes on being drained. `fedrs drain {name}` waits again, `fedrs uncordon {name}` ends it."
            ));
            Ok(ExitCode::from(INTERRUPTED))
        }
        Ended::TimedOut(left) => bail!(
            "{name} is not drained after {:?}: {left}\n\
             It goes on. `fedrs drain {name}` waits again, `fedrs uncordon {name}` ends it.",
            args.timeout
        ),
    }
}

/// How the waiting for a drain ended.
pub(crate) enum Ended {
    /// Nothing is left in the member.
    Drained,
    /// The time is over; what is left, and why.
    TimedOut(String),
    /// By Ctrl-C.
    Interrupted,
}

/// Asks for `member` to be drained and waits until it is, telling what is left.
pub(crate) async fn drain(
    host: &Remote,
    member: MemberCluster,
    patience: Duration,
    say: &mut Say,
) -> anyhow::Result<Ended> {
    let name = member.name_any();
    let generation = if member.spec.drain {
        say.line(format_args!(
            "membercluster/{name} is being drained already"
        ));
        member.metadata.generation
    } else {
        let member = cluster::ask(host, &member, json!({ "drain": true })).await?;
        say.line(format_args!("membercluster/{name} draining"));
        member.metadata.generation
    };
    let until = Instant::now() + patience;
    let wait = async {
        loop {
            let (member, sets) = look(host, &name).await?;
            let left = left::left(&member, generation, &sets);
            let Some(left) = left else {
                return anyhow::Ok(Ended::Drained);
            };
            say.waiting(&left);
            if Instant::now() >= until {
                return Ok(Ended::TimedOut(left));
            }
            sleep(PERIOD).await;
        }
    };
    tokio::select! {
        biased;
        ended = wait => ended,
        interrupt = tokio::signal::ctrl_c() => {
            interrupt?;
            Ok(Ended::Interrupted)
        }
    }
}

async fn look(
    host: &Remote,
    name: &str,
) -> anyhow::Result<(MemberCluster, Vec<FederatedReplicaSet>)> {
    let sets: Api<FederatedReplicaSet> = Api::all(host.client());
    let everything = ListParams::default();
    let list = async {
        let list = host.call("list federatedreplicasets", sets.list(&everything));
        Ok::<_, Failure>(list.await?.items)
    };
    let (member, sets) = tokio::join!(cluster::existing(host, name), list);
    Ok((member?, sets?))
}
