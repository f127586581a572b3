//! `cargo xtask control-plane`: real Kubernetes control planes on loopback.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context;
use clap::{Args, Subcommand};
use control_plane::{
    ControlPlaneSpec, Environment, EnvironmentSpec, NodeResources, Program, Programs, Run,
    RunRegistry, RunState,
};

use crate::print;

/// The commands for control planes.
#[derive(Subcommand)]
pub(crate) enum ControlPlane {
    /// Builds the missing programs, as pinned in tests/control-plane, into a cache directory; needs Go.
    ///
    /// Programs in the directory that `KUBEBUILDER_ASSETS` names take precedence.
    Build,
    /// Starts a host and members and leaves them running: DIR/host.yaml, DIR/members/NAME.yaml.
    Up(Up),
    /// Ends the control planes in DIR. Keeps their logs and data.
    Down {
        /// The directory of `up`
        dir: PathBuf,
    },
    /// Shows which programs are built, and which control planes run.
    Status,
}

/// The clusters to start.
#[derive(Args)]
pub(crate) struct Up {
    /// The directory for kubeconfigs, logs and data
    dir: PathBuf,
    /// How many member clusters: a, b, c, and so on
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=26))]
    members: u8,
    /// How many nodes each member has
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: u32,
    /// How many pods each node can run
    #[arg(long, value_name = "N", default_value_t = 110)]
    pods_per_node: u32,
    /// Log each request to the API servers, without bodies
    #[arg(long)]
    audit: bool,
}

impl ControlPlane {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let programs = Programs::pinned()?;
        let runs = RunRegistry::of_user()?;
        match self {
            Self::Build => build(&programs),
            Self::Up(up) => up.run(&programs, &runs),
            Self::Down { dir } => {
                let dir = dir.canonicalize().with_context(|| shown(&dir))?;
                print::line(if runs.end(&dir)? {
                    Message::Ended(&dir)
                } else {
                    Message::NotRunning(&dir)
                });
                Ok(())
            }
            Self::Status => status(&programs, &runs),
        }
    }
}

impl Up {
    fn run(&self, programs: &Programs, runs: &RunRegistry) -> anyhow::Result<()> {
        build(programs)?;
        std::fs::create_dir_all(&self.dir).with_context(|| shown(&self.dir))?;
        let dir = self.dir.canonicalize().with_context(|| shown(&self.dir))?;
        if let Some(run) = runs.run(&dir)?.filter(RunState::is_whole) {
            print::line(Message::AlreadyRunning(&dir, run.processes.len()));
            return Ok(());
        }
        let spec = EnvironmentSpec {
            members: self.member_specs(),
            audit: self.audit,
        };
        let began = Instant::now();
        let run = Run {
            programs,
            runs,
            is_owned: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // kube uses the process's default provider.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let environment = runtime.block_on(Environment::start(&spec, &dir, &run))?;
        environment.detach();
        print::line(Message::Ready {
            dir: &dir,
            members: self.members,
            seconds: began.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    fn member_specs(&self) -> Vec<ControlPlaneSpec> {
        let names = ('a'..='z').take(self.members.into());
        names
            .map(|name| ControlPlaneSpec {
                name: name.to_string(),
                nodes: self.nodes,
                resources: NodeResources {
                    pods: self.pods_per_node,
                    ..NodeResources::default()
                },
            })
            .collect()
    }
}

fn build(programs: &Programs) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut built = false;
    programs.build(|module| {
        built = true;
        print::line(Message::Building(module));
    })?;
    if built {
        print::line(Message::Built(began.elapsed().as_secs_f64()));
    }
    print::line(Message::Programs(programs.directory(), &[]));
    Ok(())
}

fn status(programs: &Programs, runs: &RunRegistry) -> anyhow::Result<()> {
    print::line(Message::Programs(programs.directory(), &programs.missing()));
    let runs = runs.runs()?;
    if runs.is_empty() {
        print::line(Message::NoRuns);
    }
    for run in &runs {
        print::line(Message::Run(run));
    }
    Ok(())
}

/// What the commands print.
enum Message<'a> {
    Ended(&'a Path),
    NotRunning(&'a Path),
    /// The directory, and how many processes run.
    AlreadyRunning(&'a Path, usize),
    Ready {
        dir: &'a Path,
        members: u8,
        seconds: f64,
    },
    Building(&'a str),
    Built(f64),
    /// The directory, and which programs are missing.
    Programs(&'a Path, &'a [Program]),
    NoRuns,
    Run(&'a RunState),
}

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(dir) => write!(f, "ended the control planes in {}", dir.display()),
            Self::NotRunning(dir) => write!(f, "no control plane runs in {}", dir.display()),
            Self::AlreadyRunning(dir, count) => {
                write!(f, "already running in {}: {count} processes", dir.display())
            }
            Self::Ready {
                dir,
                members,
                seconds,
            } => {
                let dir = dir.display();
                writeln!(f, "host and {members} members ready after {seconds:.1} s")?;
                writeln!(f, "  kubectl --kubeconfig {dir}/host.yaml version")?;
                writeln!(
                    f,
                    "  fedrs controller --kubeconfig {dir}/host.yaml --members {dir}/members"
                )?;
                write!(f, "  cargo xtask control-plane down {dir}")
            }
            Self::Building(module) => write!(f, "building {module} ..."),
            Self::Built(seconds) => write!(f, "built in {seconds:.0} s"),
            Self::Programs(directory, missing) => {
                write!(f, "programs: {}", directory.display())?;
                if !missing.is_empty() {
                    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
                    write!(f, "; not built: {}", missing.join(", "))?;
                }
                Ok(())
            }
            Self::NoRuns => f.write_str("no control plane runs"),
            Self::Run(run) => {
                let (directory, count) = (run.directory.display(), run.processes.len());
                write!(f, "{directory}: {count} of {} processes", run.expected)?;
                let mut processes = run.processes.iter();
                processes.try_for_each(|process| write!(f, "\n  {process}"))
            }
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_once() {
        let dir = Path::new("/clusters");
        let run = RunState {
            directory: dir.to_owned(),
            processes: vec!["host/etcd".to_owned()],
            expected: 17,
        };
        let messages = [
            Message::Building("kubernetes"),
            Message::Built(210.4),
            Message::Programs(dir, &[]),
            Message::Programs(dir, &[Program::Etcd, Program::Kwok]),
            Message::Ready {
                dir,
                members: 3,
                seconds: 12.34,
            },
            Message::AlreadyRunning(dir, 17),
            Message::NoRuns,
            Message::Run(&run),
            Message::Ended(dir),
            Message::NotRunning(dir),
        ];
        let texts: Vec<_> = messages.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(texts.join("\n"), @r"
        building kubernetes ...
        built in 210 s
        programs: /clusters
        programs: /clusters; not built: etcd, kwok
        host and 3 members ready after 12.3 s
          kubectl --kubeconfig /clusters/host.yaml version
          fedrs controller --kubeconfig /clusters/host.yaml --members /clusters/members
          cargo xtask control-plane down /clusters
        already running in /clusters: 17 processes
        no control plane runs
        /clusters: 1 of 17 processes
          host/etcd
        ended the control planes in /clusters
        no control plane runs in /clusters
        ");
    }
}
