//! `fedrs resolve`: asks `fedrs discovery` for the endpoints of an EndpointSet.

mod client;
mod credentials;
mod render;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::{Context, ensure};
use clap::Args;
use discovery::Answer;
use http::Uri;
use tokio::time::sleep;

use self::{
    client::Services,
    credentials::Credentials,
    render::{Output, render},
};
use crate::{
    output::{self, print_error},
    set_name::parse_of_kind,
    values,
};

/// The pauses after failures: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Show the endpoints of an EndpointSet, or write them as the configuration of a balancer
///
/// It asks the services of `fedrs discovery`, one after the other until one answers. With --watch it follows the set: each change is
/// printed, or written to --file, which always has a whole answer. While no service answers, the file stays as it is: stale
/// endpoints are better than none.
#[derive(Args)]
#[command(after_help = "Examples:
  # Show the endpoints
  fedrs resolve default/web

  # Ask a service that authorizes clients
  fedrs resolve default/web --servers https://discovery:9480 --ca ca.crt --token-file token

  # Keep the configuration of nginx up to date
  fedrs resolve web -n default --watch -o nginx --file /etc/nginx/conf.d/web.conf --exec 'nginx -s reload'")]
pub(crate) struct ResolveArgs {
    /// The EndpointSet
    #[arg(value_name = "[NAMESPACE/]NAME")]
    set: String,
    /// Namespace of the EndpointSet. By default `default`
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Services to ask, by their addresses for HTTP
    #[arg(long, value_name = "URL,...", value_delimiter = ',', default_value = "http://127.0.0.1:9480", value_parser = values::http_url)]
    servers: Vec<Uri>,
    #[command(flatten)]
    credentials: Credentials,
    /// Follow the set: show each change until the command is interrupted
    #[arg(long, short)]
    watch: bool,
    /// Format
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Write to this file, in one step, instead of standard output
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Command to run in a shell each time the file was written
    #[arg(long, value_name = "COMMAND", requires = "file")]
    exec: Option<String>,
}

/// Prints or writes the answer; with `--watch` until a signal.
pub(crate) async fn run(args: ResolveArgs) -> anyhow::Result<ExitCode> {
    let (namespace, name) = parse_of_kind(&args.set, args.namespace.as_deref(), &KINDS)?;
    let set = [namespace.unwrap_or("default"), name];
    for part in set {
        values::dns_label(part).map_err(|error| anyhow::anyhow!("{:?}: {error}", args.set))?;
    }
    let (servers, credentials) = (args.servers.clone(), args.credentials.clone());
    let mut services = Services::new(servers, credentials, set.join("/"))?;
    if args.watch {
        return follow(&args, &mut services).await;
    }
    if let Some(answer) = services.ask(None).await? {
        show(&args, &answer)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows each change. Ends with an error only if it can't be shown.
async fn follow(args: &ResolveArgs, services: &mut Services) -> anyhow::Result<ExitCode> {
    let (first, longest) = PAUSES;
    let (mut pause, mut version) = (first, None);
    loop {
        match services.ask(version).await {
            Ok(answer) => {
                pause = first;
                if let Some(answer) = answer {
                    version = Some(answer.version);
                    show(args, &answer)?;
                }
            }
            Err(error) => {
                let seconds = pause.as_secs();
                print_error(format_args!(
                    "warning: {error:#}; asking again in {seconds} s"
                ));
                sleep(pause).await;
                pause = (pause * 2).min(longest);
            }
        }
    }
}

/// The names of the kind, as `kubectl` takes them.
const KINDS: [&str; 3] = ["eps", "endpointset", "endpointsets"];

fn show(args: &ResolveArgs, answer: &Answer) -> anyhow::Result<()> {
    let text = render(answer, args.output);
    let Some(file) = &args.file else {
        if answer.endpoints.is_empty() && args.output == Output::Table {
            print_error(format_args!(
                "no endpoints in {}/{}",
                answer.namespace, answer.name
            ));
        } else {
            output::print(&text);
        }
        return Ok(());
    };
    replace(file, &text).with_context(|| format!("--file={}", file.display()))?;
    if let Some(command) = &args.exec {
        // With --watch the command runs again at the next change.
        if let Err(error) = execute(command) {
            print_error(format_args!("warning: --exec: {error:#}"));
            ensure!(args.watch, "--exec failed");
        }
    }
    Ok(())
}

/// Writes `text` to a file that is then put in the place of `file`: whoever reads it finds the old text, or the new one.
fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let name = file.file_name().context("it is no file")?;
    let new = file.with_file_name(format!(".{}.new", name.to_string_lossy()));
    let mut writer = std::fs::File::create(&new)?;
    writer.write_all(text.as_bytes())?;
    writer.sync_all()?;
    std::fs::rename(&new, file)?;
    Ok(())
}

fn execute(command: &str) -> anyhow::Result<()> {
    let status = Command::new("sh").arg("-c").arg(command).status()?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
