//! `fedrs demo`: a short live story of one application across several clusters, with a single command.
//!
//! ```text
//! embedded clusters --kubeconfigs--> controller (as in production) --.
//!    |                                                               v
//!    |--stores--> observer --snapshots--> runner (actions, goals) --lines--> live table, or lines in a pipe
//!    '--kubeconfigs--> discovery --endpoints--^
//! ```
//!
//! The controller connects to the clusters as everywhere: with a directory of kubeconfigs, over HTTPS. The observer, which
//! reads the clusters' stores, judges whether each step reached its goal.

mod endpoints;
mod expectation;
mod live_view;
mod messages;
mod observer;
mod operator;
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
use federation_controller::election::{Fence, Term};
use fedrs_api::names;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    endpoints::Endpoints, live_view::LiveView, messages::OutputLine, observer::Snapshot,
    operator::Operator, runner::StoryRunner, story::MEMBERS,
};
use crate::{
    controller::Process,
    embedded::{EmbeddedClusters, KubeconfigDirectory, STOP_TIMEOUT},
    host::HostArgs,
    logging::LogArgs,
    signals::cancel_on_signal,
    terminal,
};

/// Time to read after each step on a terminal; a pipe does not wait.
const READING_PAUSE: Duration = Duration::from_millis(2500);
/// Lines that may wait to be shown: more than any step has, so that output never delays the story.
const BUFFERED_LINES: usize = 64;

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
    let path = temporary.as_ref().map(tempfile::TempDir::path);
    let path = args.dir.as_deref().or(path);
    let path = path.expect("the directory is either given or temporary");
    let directory = KubeconfigDirectory::claim(path)?;
    log.start_in_file(&directory.path().join("controller.log"))?;
    let clusters = EmbeddedClusters::start(directory, &MEMBERS, &settings::clusters()).await?;
    clusters.install_crds()?;
    let host = HostArgs::of(clusters.directory().host_file())
        .controller_client()
        .await?;
    // As `fedrs controller --kubeconfig DIR/host.yaml --members DIR/members` does.
    let process = Process {
        host: host.clone(),
        members: Some(clusters.directory().members()),
        namespace: names::SYSTEM_NAMESPACE.to_owned(),
        config: settings::controller(),
    };
    let term = Term {
        fence: Fence::open(),
        end: cancel.clone(),
    };
    let sources = TaskTracker::new();
    let controller = process
        .start(term, &sources, &mut Registry::default())
        .await;
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

/// Runs the story, then waits for a signal unless the demo is to exit.
async fn run_story(
    args: &DemoArgs,
    host: Client,
    clusters: &EmbeddedClusters,
    cancel: &CancellationToken,
) -> anyhow::Result<ExitCode> {
    let commands = HostArgs::of(clusters.directory().host_file());
    let commands = commands.client().await?;
    let endpoints = Endpoints::start(&host, clusters).await?;
    let (steps, step) = watch::channel(0);
    let (seen, snapshots) = watch::channel(Snapshot::default());
    // Cancelled separately, so that the table shows the clusters until the end.
    let stop_observing = CancellationToken::new();
    let observing = observer::start(clusters, step, seen, stop_observing.clone())?;
    let (lines, shown_lines) = mpsc::channel(BUFFERED_LINES);
    let interactive = terminal::is_interactive();
    let showing = show(shown_lines, snapshots.clone(), interactive, cancel)?;
    let directory = std::path::absolute(clusters.directory().path())?;
    let runner = StoryRunner {
        operator: Operator::new(host, commands, clusters),
        endpoints: &endpoints,
        lines,
        steps,
        snapshots: snapshots.clone(),
        pause: if interactive {
            READING_PAUSE
        } else {
            Duration::ZERO
        },
    };
    let outcome = report_story(args, runner, &directory, cancel).await;
    endpoints.stop().await;
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
    let is_temporary = args.dir.is_none();
    let opening = messages::opening(directory, is_temporary, &settings::controller());
    runner.report(opening).await;
    let Some(failed) = cancel.run_until_cancelled(runner.run()).await else {
        // The user stopped the demo: a failure only if the outcome was requested.
        return Ok(!args.exit);
    };
    let failed = failed?;
    let ending = messages::ending(&failed, &runner.snapshots.borrow().clone());
    runner.report(ending).await;
    if !args.exit {
        let commands = messages::next_commands(directory, is_temporary);
        runner.report(commands).await;
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
        Some(LiveView::start(terminal::allows_color())?)
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
