//! `cargo xtask control-plane`: real Kubernetes control planes on loopback.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context;
use clap::{Args, Subcommand};
use control_plane::{Fleet, FleetSpec, Ledger, MemberSpec, NodeResources, Programs, Run, RunState};

use crate::print;

/// What to do with control planes.
#[derive(Subcommand)]
pub(crate) enum ControlPlane {
    /// Builds the pinned programs (tests/control-plane) into a cache folder, if they aren't there; needs Go.
    ///
    /// Programs in the folder that `KUBEBUILDER_ASSETS` names are taken from there.
    Build,
    /// Starts a host and members and leaves them running: DIR/host.yaml, DIR/members/NAME.yaml.
    Up(Up),
    /// Ends what runs in DIR. Its logs and data stay.
    Down {
        /// The folder that was given to `up`
        dir: PathBuf,
    },
    /// Tells which programs are there, and what runs.
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
    /// Let the API servers write down each request, without bodies
    #[arg(long)]
    audit: bool,
}

impl ControlPlane {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let programs = Programs::pinned()?;
        let ledger = Ledger::of_user()?;
        match self {
            Self::Build => build(&programs)?,
            Self::Up(up) => up.run(&programs, &ledger)?,
            Self::Down { dir } => {
                let dir = dir.canonicalize().with_context(|| shown(&dir))?;
                if ledger.end(&dir)? {
                    print::line(format_args!("ended what ran in {}", dir.display()));
                } else {
                    print::line(format_args!("nothing runs in {}", dir.display()));
                }
            }
            Self::Status => status(&programs, &ledger)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Up {
    fn run(&self, programs: &Programs, ledger: &Ledger) -> anyhow::Result<()> {
        build(programs)?;
        std::fs::create_dir_all(&self.dir).with_context(|| shown(&self.dir))?;
        let dir = self.dir.canonicalize().with_context(|| shown(&self.dir))?;
        if let Some(run) = ledger.run(&dir)?.filter(RunState::is_whole) {
            print::line(format_args!(
                "already up in {}: {} processes",
                dir.display(),
                run.processes.len()
            ));
            return Ok(());
        }
        let spec = FleetSpec {
            members: self.member_specs(),
            audit: self.audit,
        };
        let began = Instant::now();
        let run = Run {
            programs,
            ledger,
            is_owned: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // Kube finds it as the process's default.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let fleet = runtime.block_on(Fleet::start(&spec, &dir, &run))?;
        fleet.leave();
        let seconds = began.elapsed().as_secs_f64();
        let dir = dir.display();
        print::line(format_args!(
            "host and {} members up after {seconds:.1} s",
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
    print::line(format_args!(
        "programs are in {}",
        programs.folder().display()
    ));
    Ok(())
}

fn status(programs: &Programs, ledger: &Ledger) -> anyhow::Result<()> {
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
    let runs = ledger.runs()?;
    if runs.is_empty() {
        print::line("nothing runs");
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
