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

/// A running `fedrs controller`; it is killed when this is dropped.
pub(super) struct Program {
    child: Child,
}

impl Program {
    /// Starts the controller on `folder/host.yaml`, `folder/members` and `folder/controller.yaml`; it logs to
    /// `folder/controller.log`.
    pub(super) fn start(folder: &Path) -> Self {
        let log = File::options()
            .append(true)
            .create(true)
            .open(folder.join("controller.log"))
            .expect("a log can be written");
        let errors = log.try_clone().expect("a log can be shared");
        let program = path();
        let child = Command::new(program)
            .arg("controller")
            .arg("--kubeconfig")
            .arg(folder.join("host.yaml"))
            .arg("--members")
            .arg(folder.join("members"))
            .arg("--config")
            .arg(folder.join("controller.yaml"))
            .args(["--listen", "127.0.0.1:0"])
            // A controller that is killed and started again is the same one to others.
            .arg("--identity")
            .arg(folder.file_name().expect("a folder has a name"))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { child }
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
    folder: TempDir,
    child: Child,
    /// The program ends if nobody can read what it prints.
    _output: BufReader<ChildStdout>,
}

impl ServedClusters {
    /// Starts a host and three members, and waits until their kubeconfigs are written.
    pub(super) fn start() -> Result<Self, String> {
        let fail = |error: std::io::Error| format!("fedrs sim: {error}");
        let folder = TempDir::with_prefix("fedrs-served-").map_err(fail)?;
        let mut child = Command::new(path())
            .args(["sim", "--dir"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        let mut output = BufReader::new(child.stdout.take().expect("the stream is piped"));
        // It prints the list of its clusters once they serve.
        let printed = output.read_line(&mut String::new()).map_err(fail);
        let served = Self {
            folder,
            child,
            _output: output,
        };
        match printed? {
            0 => Err("fedrs sim: it ended before its clusters served".to_owned()),
            _ => Ok(served),
        }
    }

    /// The folder of the kubeconfigs.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
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
    let mut folders = tests.ancestors().skip(2);
    let (Some(built), Some(target)) = (folders.next(), folders.next()) else {
        return Err(format!("{} is in no target folder", tests.display()));
    };
    let folder = built.file_name().filter(|folder| *folder != "debug");
    let profile = folder.unwrap_or(OsStr::new("dev"));
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

/// The last lines of the controller's log in `folder`.
pub(super) fn log(folder: &Path) -> String {
    const LINES: usize = 40;
    let text = fs::read_to_string(folder.join("controller.log")).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
