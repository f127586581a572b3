//! `cargo xtask control-plane`: real Kubernetes control planes on loopback.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context;
use clap::{Args, Subcommand};
use control_plane::{
    Environment, EnvironmentSpec, MemberSpec, NodeResources, Programs, Run, RunRegistry, RunState,
};

use crate::print;

/// The commands for control planes.
#[derive(Subcommand)]
pub(crate) enum ControlPlane {
    /// Builds the missing programs, as pinned in tests/control-plane, into a cache folder; needs Go.
    ///
    /// Programs in the folder that `KUBEBUILDER_ASSETS` names take precedence.
    Build,
    /// Starts a host and members and leaves them running: DIR/host.yaml, DIR/members/NAME.yaml.
    Up(Up),
    /// Ends the control planes in DIR. Keeps their logs and data.
    Down {
        /// The folder of `up`
        dir: PathBuf,
    },
    /// Shows which programs are built, and which control planes run.
    Status,
}

/// The clusters to start.
#[derive(Args)]
pub(crate) struct Up {
    /// The folder for kubeconfigs, logs and data
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
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let programs = Programs::pinned()?;
        let runs = RunRegistry::of_user()?;
        match self {
            Self::Build => build(&programs)?,
            Self::Up(up) => up.run(&programs, &runs)?,
            Self::Down { dir } => {
                let dir = dir.canonicalize().with_context(|| shown(&dir))?;
                if runs.end(&dir)? {
                    print::line(format_args!(
                        "ended the control planes in {}",
                        dir.display()
                    ));
                } else {
                    print::line(format_args!("no control plane runs in {}", dir.display()));
                }
            }
            Self::Status => status(&programs, &runs)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Up {
    fn run(&self, programs: &Programs, runs: &RunRegistry) -> anyhow::Result<()> {
        build(programs)?;
        std::fs::create_dir_all(&self.dir).with_context(|| shown(&self.dir))?;
        let dir = self.dir.canonicalize().with_context(|| shown(&self.dir))?;
        if let Some(run) = runs.run(&dir)?.filter(RunState::is_whole) {
            print::line(format_args!(
                "already running in {}: {} processes",
                dir.display(),
                run.processes.len()
            ));
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
        let seconds = began.elapsed().as_secs_f64();
        let dir = dir.display();
        print::line(format_args!(
            "host and {} members ready after {seconds:.1} s",
            self.members
        ));
        print::line(format_args!(
            "  kubectl --kubeconfig {dir}/host.yaml version"
        ));
        print::line(format_args!(
            "  fedrs controller --kubeconfig {dir}/host.yaml --members {dir}/members"
        ));
        print::line(format_args!("  cargo xtask control-plane down {dir}"));
        Ok(())
    }

    fn member_specs(&self) -> Vec<MemberSpec> {
        let names = ('a'..='z').take(self.members.into());
        names
            .map(|name| MemberSpec {
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
        print::line(format_args!("building {module} ..."));
    })?;
    if built {
        print::line(format_args!(
            "built in {:.0} s",
            began.elapsed().as_secs_f64()
        ));
    }
    print::line(format_args!("programs: {}", programs.folder().display()));
    Ok(())
}

fn status(programs: &Programs, runs: &RunRegistry) -> anyhow::Result<()> {
    let missing = programs.missing();
    let folder = programs.folder().display();
    if missing.is_empty() {
        print::line(format_args!("programs: {folder}"));
    } else {
        let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
        print::line(format_args!(
            "programs: {folder}; not built: {}",
            names.join(", ")
        ));
    }
    let runs = runs.runs()?;
    if runs.is_empty() {
        print::line("no control plane runs");
    }
    for run in runs {
        print::line(format_args!(
            "{}: {} of {} processes",
            run.folder.display(),
            run.processes.len(),
            run.expected
        ));
        for process in &run.processes {
            print::line(format_args!("  {process}"));
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
