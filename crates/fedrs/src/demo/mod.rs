//! `fedrs demo`: a short live story of one application across several clusters, with a single command.
//!
//! ```text
//! embedded clusters --kubeconfigs--> controller (as in production) --.
//!    |                                                               v
//!    '--stores--> observer --snapshots--> runner (actions, goals) --lines--> live table, or lines in a pipe
//! ```
//!
//! The controller connects to the clusters as everywhere: with a directory of kubeconfigs, over HTTPS. The observer, which
//! reads the clusters' stores, judges whether each step reached its goal.

mod expectation;
mod live_view;
mod messages;
mod observer;
mod operator;
mod output;
mod plain_view;
mod runner;
mod settings;
mod snapshot;
mod story;
mod table;

use std::{
    io,
    path::{Path, PathBuf},
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
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use self::{
    live_view::LiveView,
    messages::DirectoryLifetime,
    observer::{Observer, Snapshot},
    operator::Operator,
    output::{OutputLine, Reporter},
    runner::StoryRunner,
    story::MEMBERS,
    table::Palette,
};
use crate::{
    embedded::{EmbeddedClusters, KubeconfigDirectory, STOP_TIMEOUT},
    host::HostArgs,
    logging::LogArgs,
    signals::cancel_on_signal,
    terminal,
};

/// Time to read after each step on a terminal; a pipe does not wait.
const READING_PAUSE: Duration = Duration::from_millis(2500);
/// Member events that may be buffered; the watcher of the directory waits while the buffer is full.
const MEMBER_EVENTS: usize = 16;

/// Run a host, three member clusters and the controller in this process and show replicas move
///
/// The demo creates replicas, fills a cluster, makes a cluster unreachable, and brings it back. A table shows where replicas
/// run. After the last step the clusters keep running, and kubectl works against them.
///
/// The controller logs to controller.log beside the kubeconfigs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Run the demo and keep the clusters running until Ctrl-C
  fedrs demo

  # Keep the kubeconfigs and the controller's log in the directory clusters
  fedrs demo --dir clusters

  # Exit after the last step, with status 0 only if every step passed
  fedrs demo --exit")]
pub(crate) struct DemoArgs {
    /// Exit after the last step, with status 0 only if every step passed
    #[arg(long)]
    exit: bool,
    /// Directory for the kubeconfigs and the log, which stays. By default a temporary directory, deleted at the end
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the demo.
pub(crate) async fn run(args: DemoArgs, log: &LogArgs) -> anyhow::Result<ExitCode> {
    let cancel = CancellationToken::new();
    tokio::spawn(cancel_on_signal(cancel.clone()));
    // Deleted when it is dropped, after everything that uses it has stopped.
    let temporary = match args.dir {
        Some(_) => None,
        None => Some(temporary_directory()?),
    };
    let path = args
        .dir
        .as_deref()
        .or(temporary.as_ref().map(tempfile::TempDir::path));
    let path = path.expect("the directory is either given or temporary");
    let directory = KubeconfigDirectory::claim(path)?;
    log.start_in_file(&directory.path().join("controller.log"))?;
    let clusters = EmbeddedClusters::start(directory, &MEMBERS, &settings::clusters()).await?;
    clusters.install_crds()?;
    let host = HostArgs::of(clusters.directory().host_file())
        .controller_client()
        .await?;
    let controller = start_controller(host.clone(), &clusters, &cancel).await;
    let outcome = match &controller {
        Some(_) => run_story(&args, host, &clusters, &cancel).await,
        None => Ok(ExitCode::SUCCESS),
    };
    cancel.cancel();
    let stop = async {
        if let Some(running) = controller {
            running.joined().await;
        }
        clusters.stop().await;
    };
    let _ = tokio::time::timeout(STOP_TIMEOUT, stop).await;
    outcome
}

fn temporary_directory() -> anyhow::Result<tempfile::TempDir> {
    let created = tempfile::Builder::new().prefix("fedrs-demo-").tempdir();
    created.context("failed to create a temporary directory; set a directory with --dir")
}

/// Starts the controller as `fedrs controller --kubeconfig DIR/host.yaml --members DIR/members` does. `None` if the demo was
/// cancelled before the controller started.
async fn start_controller(
    host: Client,
    clusters: &EmbeddedClusters,
    cancel: &CancellationToken,
) -> Option<Running> {
    let (events, members) = mpsc::channel(MEMBER_EVENTS);
    tokio::spawn(directory::watch(
        clusters.directory().members(),
        events,
        cancel.clone(),
    ));
    let controller = Controller {
        host,
        members,
        secrets: MemberSecrets::default(),
        config: settings::controller(),
        clock: Clock::system(),
        seed: 0,
        metrics: Metrics::register(&mut Registry::default()),
        fence: Fence::open(),
    };
    controller.start(cancel.clone()).await
}

/// Runs the story, then waits for a signal unless the demo is to exit.
async fn run_story(
    args: &DemoArgs,
    host: Client,
    clusters: &EmbeddedClusters,
    cancel: &CancellationToken,
) -> anyhow::Result<ExitCode> {
    let (steps, step) = watch::channel(0);
    let (seen, snapshots) = watch::channel(Snapshot::default());
    // Cancelled separately, so that the table shows the clusters until the end.
    let stop_observing = CancellationToken::new();
    let observing = Observer::new(clusters)?.start(step, seen, stop_observing.clone())?;
    let (reporter, lines) = Reporter::new();
    let interactive = terminal::is_interactive();
    let showing = show(lines, snapshots.clone(), interactive, cancel)?;
    let directory = std::path::absolute(clusters.directory().path())?;
    let runner = StoryRunner {
        operator: Operator::new(host, clusters),
        reporter: &reporter,
        steps,
        snapshots: snapshots.clone(),
        pause: if interactive {
            READING_PAUSE
        } else {
            Duration::ZERO
        },
    };
    let outcome = report_story(args, runner, &directory, cancel).await;
    drop(reporter);
    stop_observing.cancel();
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

/// Reports the story from its opening to its ending; false if a step failed.
async fn report_story(
    args: &DemoArgs,
    mut runner: StoryRunner<'_>,
    directory: &Path,
    cancel: &CancellationToken,
) -> anyhow::Result<bool> {
    let lifetime = match args.dir {
        Some(_) => DirectoryLifetime::Kept,
        None => DirectoryLifetime::Deleted,
    };
    let reporter = runner.reporter;
    let opening = messages::opening(directory, lifetime, &settings::controller());
    reporter.report(opening).await;
    let Some(failed) = cancel.run_until_cancelled(runner.run()).await else {
        // The user stopped the demo: a failure only if the outcome was requested.
        return Ok(!args.exit);
    };
    let failed = failed?;
    let ending = messages::ending(&failed, &runner.snapshots.borrow().clone());
    reporter.report(ending).await;
    if !args.exit {
        let commands = messages::next_commands(directory, lifetime);
        reporter.report(commands).await;
        cancel.cancelled().await;
    }
    Ok(failed.is_empty())
}

/// Shows lines and snapshots on the terminal, or only lines in a pipe. Cancels the demo when that fails.
fn show(
    lines: mpsc::Receiver<OutputLine>,
    snapshots: watch::Receiver<Snapshot>,
    interactive: bool,
    cancel: &CancellationToken,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let view = if interactive {
        let colored = terminal::allows_color();
        Some(LiveView::start(Palette { colored })?)
    } else {
        None
    };
    let cancel = cancel.clone();
    Ok(tokio::spawn(async move {
        let shown = match view {
            Some(view) => view.show(lines, snapshots, cancel.clone()).await,
            None => plain_view::show(io::stdout(), lines, snapshots).await,
        };
        if shown.is_err() {
            cancel.cancel();
        }
        match shown {
            // The reader has gone.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            shown => shown,
        }
    }))
}
