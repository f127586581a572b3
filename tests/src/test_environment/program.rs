//! The `fedrs` program as the controller.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::OnceLock,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The environment variable that names a program to test instead of the one from these sources.
const PROGRAM: &str = "FEDRS_PROGRAM";

static MADE: OnceLock<PathBuf> = OnceLock::new();

/// A running `fedrs controller`, `fedrs replica-set-controller` or `fedrs discovery`; it is killed when this is dropped.
pub(super) struct Program {
    child: Child,
}

impl Program {
    /// Starts the controller on `directory/host.yaml`, `directory/members` and `directory/controller.yaml`; it logs to
    /// `directory/controller.log`.
    pub(super) fn start(directory: &Path) -> Self {
        let members = directory.join("members");
        let arguments = [
            "controller".as_ref(),
            "--members".as_ref(),
            members.as_os_str(),
        ];
        Self::start_with(directory, &arguments)
    }

    /// Starts the controller of LocalReplicaSets with the same files.
    pub(super) fn start_local(directory: &Path) -> Self {
        Self::start_with(directory, &["replica-set-controller".as_ref()])
    }

    /// Starts the service of EndpointSets, with snapshots in `directory/snapshots`.
    pub(super) fn start_discovery(directory: &Path, options: &[String]) -> Self {
        let snapshots = directory.join("snapshots");
        let mut arguments = vec![
            "discovery".as_ref(),
            "--snapshot-dir".as_ref(),
            snapshots.as_os_str(),
        ];
        arguments.extend(options.iter().map(OsStr::new));
        Self::spawn(directory, &arguments)
    }

    fn start_with(directory: &Path, arguments: &[&OsStr]) -> Self {
        let config = directory.join("controller.yaml");
        // A controller that is killed and started again keeps its identity.
        let identity = directory.file_name().expect("a directory has a name");
        let options = [
            "--config".as_ref(),
            config.as_os_str(),
            "--identity".as_ref(),
            identity,
        ];
        Self::spawn(directory, &[arguments, &options].concat())
    }

    fn spawn(directory: &Path, arguments: &[&OsStr]) -> Self {
        let log = File::options()
            .append(true)
            .create(true)
            .open(directory.join("controller.log"))
            .expect("a log can be written");
        let errors = log.try_clone().expect("a log can be shared");
        let program = path();
        let child = Command::new(program)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(directory.join("host.yaml"))
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { child }
    }

    /// Ends it as Kubernetes does, and waits until it has ended.
    pub(super) fn terminate(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM)
            .expect("our child can be sent a signal");
        self.child.wait().expect("our child can be waited for");
    }

    /// Suspends the process, or resumes it.
    pub(super) fn set_suspended(&self, is_suspended: bool) {
        let signal = if is_suspended {
            Signal::STOP
        } else {
            Signal::CONT
        };
        kill_process(Pid::from_child(&self.child), signal).expect("our child can be sent a signal");
    }
}

/// A running `fedrs sim`: embedded clusters, in real time, on addresses of this machine. They end when this is dropped.
pub(super) struct ServedClusters {
    directory: TempDir,
    child: Child,
    /// The program ends if nobody can read what it prints.
    _output: BufReader<ChildStdout>,
}

impl ServedClusters {
    /// Starts a host and three members, and waits until their kubeconfigs are written.
    pub(super) fn start() -> Result<Self, String> {
        let fail = |error: std::io::Error| format!("fedrs sim: {error}");
        let directory = TempDir::with_prefix("fedrs-served-").map_err(fail)?;
        let mut child = Command::new(path())
            .args(["sim", "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        let mut output = BufReader::new(child.stdout.take().expect("the stream is piped"));
        // It prints the list of its clusters once they serve.
        let printed = output.read_line(&mut String::new()).map_err(fail);
        let served = Self {
            directory,
            child,
            _output: output,
        };
        match printed? {
            0 => Err("fedrs sim: it ended before its clusters served".to_owned()),
            _ => Ok(served),
        }
    }

    /// The directory of the kubeconfigs.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for ServedClusters {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of the program `fedrs`, once it is [built](make).
pub(super) fn path() -> &'static Path {
    MADE.get()
        .expect("the program is built before the first scenario")
}

/// Builds the program, unless [`PROGRAM`] names one: the one beside the tests may come from older sources.
pub(super) fn make() -> Result<(), String> {
    let path = match std::env::var_os(PROGRAM) {
        Some(path) => PathBuf::from(path),
        None => build().map_err(|error| format!("fedrs: {error}; {PROGRAM} may name one"))?,
    };
    if !path.is_file() {
        return Err(format!("the program: {} is not a file", path.display()));
    }
    MADE.get_or_init(|| path);
    Ok(())
}

/// Builds the program with the profile of these tests and the features of the whole workspace, so that both share their
/// dependencies.
fn build() -> Result<PathBuf, String> {
    let tests = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut directories = tests.ancestors().skip(2);
    let (Some(built), Some(target)) = (directories.next(), directories.next()) else {
        return Err(format!("{} is in no target directory", tests.display()));
    };
    let directory = built.file_name().filter(|directory| *directory != "debug");
    let profile = directory.unwrap_or(OsStr::new("dev"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--workspace", "--bin", "fedrs", "--profile"])
        .arg(profile)
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let ended = build.status().map_err(|error| error.to_string())?;
    if !ended.success() {
        return Err(format!("`cargo build --bin fedrs` failed: {ended}"));
    }
    Ok(built.join("fedrs"))
}

/// The last lines of the controller's log in `directory`.
pub(super) fn log(directory: &Path) -> String {
    const LINES: usize = 40;
    let text = fs::read_to_string(directory.join("controller.log")).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
