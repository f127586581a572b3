//! `fedrs demo`: a short story of one application over several clusters, told live, in one command.
//!
//! ```text
//! fleet (embedded clusters) --kubeconfigs--> controller (the product's own) --.
//!    |                                                                        v
//!    '--stores--> observer --scenes--> play (deeds, goals) --told--> live table, or lines in a pipe
//! ```
//!
//! The controller reaches the clusters as everywhere: by a folder of kubeconfigs, over HTTPS. Whether the story
//! came out as it should is judged by the observer, which reads the clusters' stores.

mod deeds;
mod expect;
mod live;
mod observer;
mod plain;
mod play;
mod scene;
mod settings;
pub(crate) mod story;
mod table;
mod telling;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use federation_controller::{
    Controller, Running,
    clock::Clock,
    election::Fence,
    members::{MemberSecrets, directory},
    metrics::Metrics,
};
use prometheus_client::registry::Registry;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use self::{
    deeds::Actor,
    live::Live,
    observer::{Observer, Scene},
    play::Play,
    story::MEMBERS,
    table::Palette,
    telling::{Teller, Told, Tone},
};
use crate::{
    host::HostArgs,
    logging::LogArgs,
    signals::cancel_on_signal,
    sim::{fleet::Fleet, folder::Folder},
};

/// Time to read after each step on a terminal; in a pipe nobody waits.
const READING_PAUSE: Duration = Duration::from_millis(2500);
/// Everything may take this long to end; the process ends then in any case.
const STOP_TIMEOUT: Duration = Duration::from_millis(1000);
/// Members that may be told at once; more wait in the folder's watcher.
const MEMBER_EVENTS: usize = 16;

/// See one application over several clusters: a host, three members and the controller, in this process
///
/// Plays a short story: replicas are laid out, moved when a cluster fills up or goes dark, and taken back when it
/// returns. Then it stays, and kubectl works against all of it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs demo                      # the story, then stay until Ctrl-C
  fedrs demo --dir clusters       # the same, with the kubeconfigs in clusters/
  fedrs demo --exit               # end after the story: status 0 only if every step came out as it should

The controller's log goes to controller.log beside the kubeconfigs; --log debug says more.")]
pub(crate) struct DemoArgs {
    /// End after the story, with status 0 only if every step reached the planner's layout and no replica was missed
    #[arg(long)]
    exit: bool,
    /// Folder for the kubeconfigs and the log, kept afterwards; without it a private one that is removed
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Plays the story.
pub(crate) async fn run(args: DemoArgs, log: &LogArgs) -> anyhow::Result<ExitCode> {
    let cancel = CancellationToken::new();
    tokio::spawn(cancel_on_signal(cancel.clone()));
    // Removed when it is dropped, after everything that uses it has ended.
    let temporary = match args.dir {
        Some(_) => None,
        None => Some(temporary_folder()?),
    };
    let path = args
        .dir
        .as_deref()
        .or(temporary.as_ref().map(tempfile::TempDir::path));
    let folder = Folder::claim(path.expect("one of the two is there"))?;
    log.start_in_file(&folder.path().join("controller.log"))?;
    let fleet = Fleet::start(folder, &MEMBERS, &settings::clusters()).await?;
    fleet.install_crds()?;
    let controller = start_controller(&fleet, &cancel).await?;
    let outcome = match &controller {
        Some(_) => perform(&args, &fleet, &cancel).await,
        None => Ok(ExitCode::SUCCESS),
    };
    cancel.cancel();
    let end = async {
        if let Some(running) = controller {
            running.joined().await;
        }
        fleet.stop().await;
    };
    // Nothing is kept, so that what is slow to end may as well be dropped.
    let _ = tokio::time::timeout(STOP_TIMEOUT, end).await;
    outcome
}

fn temporary_folder() -> anyhow::Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("fedrs-demo-").tempdir();
    made.context("can't make a temporary folder; give one with --dir")
}

/// The product's controller, as `fedrs controller --kubeconfig DIR/host.yaml --members DIR/members` starts it.
/// `None` if the demo was ended before it had started.
async fn start_controller(
    fleet: &Fleet,
    cancel: &CancellationToken,
) -> anyhow::Result<Option<Running>> {
    let (events, members) = mpsc::channel(MEMBER_EVENTS);
    tokio::spawn(directory::watch(
        fleet.folder().members(),
        events,
        cancel.clone(),
    ));
    let controller = Controller {
        host: HostArgs::of(fleet.folder().host_file()).client().await?,
        members,
        secrets: MemberSecrets::default(),
        config: settings::controller(),
        clock: Clock::system(),
        seed: 0,
        metrics: Metrics::register(&mut Registry::default()),
        fence: Fence::open(),
    };
    Ok(controller.start(cancel.clone()).await)
}

/// Tells and shows the story, then stays if asked to.
async fn perform(
    args: &DemoArgs,
    fleet: &Fleet,
    cancel: &CancellationToken,
) -> anyhow::Result<ExitCode> {
    let (steps, step) = watch::channel(0);
    let (seen, scenes) = watch::channel(Scene::default());
    // Ended by itself, so that the table shows what happens up to the end.
    let watching = CancellationToken::new();
    let observing = Observer::of(fleet)?.start(step, seen, watching.clone())?;
    let (teller, told) = Teller::new();
    let (showing, live) = show(told, scenes.clone(), cancel)?;
    let mut play = Play {
        actor: Actor::new(
            HostArgs::of(fleet.folder().host_file()).client().await?,
            fleet,
        ),
        teller: &teller,
        steps,
        scenes: scenes.clone(),
        pause: if live { READING_PAUSE } else { Duration::ZERO },
    };
    teller.tell_all(opening(args, fleet)).await;
    let played = cancel.run_until_cancelled(play.run()).await;
    let outcome = match played {
        Some(Ok(failed)) => {
            teller
                .tell_all(ending(&failed, &scenes.borrow().clone()))
                .await;
            if !args.exit {
                teller.tell_all(next_commands(args, fleet)).await;
                cancel.cancelled().await;
            }
            Ok(failed.is_empty())
        }
        Some(Err(error)) => Err(error),
        // Ended by the user: no failure, unless the outcome was asked for.
        None => Ok(!args.exit),
    };
    drop(teller);
    watching.cancel();
    observing.join().expect("the observer does not panic");
    showing
        .await?
        .context("failed to write to standard output")?;
    Ok(if outcome? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Shows the story where it is read: whether that is a terminal, too.
fn show(
    told: mpsc::Receiver<Told>,
    scenes: watch::Receiver<Scene>,
    cancel: &CancellationToken,
) -> io::Result<(JoinHandle<io::Result<()>>, bool)> {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let live = io::stdout().is_terminal() && io::stdin().is_terminal() && !dumb;
    let coloured = std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    let screen = if live {
        Some(Live::start(Palette { coloured })?)
    } else {
        None
    };
    let cancel = cancel.clone();
    let showing = tokio::spawn(async move {
        let shown = match screen {
            Some(screen) => screen.show(told, scenes, cancel.clone()).await,
            None => plain::show(io::stdout(), told, scenes).await,
        };
        // Nobody sees it any more.
        if shown.is_err() {
            cancel.cancel();
        }
        match shown {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            shown => shown,
        }
    });
    Ok((showing, live))
}

fn opening(args: &DemoArgs, fleet: &Fleet) -> Vec<Told> {
    let folder = fleet.folder().path().display();
    let members: Vec<_> = MEMBERS
        .iter()
        .map(|it| {
            format!(
                "{} ({} nodes for {} pods each)",
                it.name, it.nodes, it.pods_per_node
            )
        })
        .collect();
    let kept = if args.dir.is_some() {
        ""
    } else {
        ", removed at the end"
    };
    let texts = [
        format!(
            "A host cluster and three members run in this process: {}.",
            members.join(", ")
        ),
        format!(
            "The controller reaches them by the kubeconfigs in {folder}{kept}; its log is controller.log there."
        ),
        settings::told(),
    ];
    texts
        .map(|text| Told {
            tone: Tone::Aside,
            text,
        })
        .into()
}

fn ending(failed: &[usize], scene: &Scene) -> Vec<Told> {
    let gap = scene.longest_gap.as_millis();
    let (tone, text) = match failed {
        [] => (
            Tone::Good,
            format!(
                "Every step reached the planner's layout and no move lost a ready replica (looked at every 25 ms, at \
                 most {gap} ms apart)."
            ),
        ),
        failed => {
            let numbers: Vec<_> = failed.iter().map(ToString::to_string).collect();
            (
                Tone::Bad,
                format!(
                    "The story did not come out as it should: step {} failed.",
                    numbers.join(", ")
                ),
            )
        }
    };
    vec![
        Told {
            tone: Tone::Plain,
            text: String::new(),
        },
        Told { tone, text },
    ]
}

/// What to type next, in another terminal.
fn next_commands(args: &DemoArgs, fleet: &Fleet) -> Vec<Told> {
    let dir = fleet.folder().path();
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let dir = dir.display();
    let commands = [
        format!("export KUBECONFIG={dir}/host.yaml"),
        "kubectl get frs,mc".to_owned(),
        "kubectl describe frs web".to_owned(),
        "kubectl scale frs/web --replicas=80".to_owned(),
        format!(
            "kubectl get rs --kubeconfig {dir}/members/{}.yaml",
            MEMBERS[0].name
        ),
        format!("fedrs explain default/web --kubeconfig {dir}/host.yaml"),
    ];
    let intro = format!(
        "Everything stays until Ctrl-C{}. Try, in another terminal:",
        if args.dir.is_some() {
            ""
        } else {
            ", which removes the kubeconfigs"
        }
    );
    let commands = commands.into_iter().map(|it| format!("  {it}"));
    [intro]
        .into_iter()
        .chain(commands)
        .map(|text| Told {
            tone: Tone::Plain,
            text,
        })
        .collect()
}
