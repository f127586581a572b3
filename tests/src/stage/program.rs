//! The `fedrs` program as the controller.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// Environment variable: the program to test, instead of the one that was built with the tests.
const PROGRAM: &str = "FEDRS_PROGRAM";

/// A running `fedrs controller`; it is killed when this is dropped.
pub(super) struct Program {
    child: Child,
}

impl Program {
    /// Starts it on `folder/host.yaml`, `folder/members` and `folder/controller.yaml`; it logs to `folder/controller.log`.
    pub(super) fn start(folder: &Path) -> Self {
        let log = File::options()
            .append(true)
            .create(true)
            .open(folder.join("controller.log"))
            .expect("a log can be written");
        let errors = log.try_clone().expect("a log can be shared");
        let program = path();
        let child = Command::new(&program)
            .arg("controller")
            .arg("--kubeconfig")
            .arg(folder.join("host.yaml"))
            .arg("--members")
            .arg(folder.join("members"))
            .arg("--config")
            .arg(folder.join("controller.yaml"))
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { child }
    }

    /// It stops where it is, or goes on.
    pub(super) fn freeze(&self, is_frozen: bool) {
        let signal = if is_frozen {
            Signal::STOP
        } else {
            Signal::CONT
        };
        kill_process(Pid::from_child(&self.child), signal).expect("our child can be sent a signal");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the program `fedrs` is: cargo builds it beside the tests of the whole workspace.
pub(super) fn path() -> PathBuf {
    if let Some(path) = std::env::var_os(PROGRAM) {
        return path.into();
    }
    let tests = std::env::current_exe().expect("a test knows where it is");
    let built = tests
        .parent()
        .and_then(Path::parent)
        .map(|it| it.join("fedrs"));
    let built = built.filter(|it| it.is_file());
    built.expect("the program is built: cargo build -p fedrs, or FEDRS_PROGRAM names it")
}

/// The last lines of what the controller said in `folder`.
pub(super) fn log(folder: &Path) -> String {
    const LINES: usize = 40;
    let text = fs::read_to_string(folder.join("controller.log")).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
