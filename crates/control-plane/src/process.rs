//! One process of a control plane, identified by its id and its start time.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, with_path};

/// How long a killed process may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A process, whoever started it. The start time distinguishes it from a later process with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pid: i32,
    /// In clock ticks since the machine's start.
    started: u64,
}

impl Identity {
    /// This process.
    pub(crate) fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// The process with this id, if there is one.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let (_, started) = stat(pid)?;
        let pid = i32::try_from(pid).ok()?;
        Some(Self { pid, started })
    }

    /// Whether it runs. A zombie doesn't.
    pub(crate) fn is_alive(self) -> bool {
        let pid = self.pid.unsigned_abs();
        stat(pid)
            .is_some_and(|(state, started)| started == self.started && !matches!(state, 'Z' | 'X'))
    }

    /// The processes that execute one of `programs` in a directory below `directory`, with that directory.
    pub(crate) fn working_below(
        directory: &Path,
        programs: &[&str],
    ) -> Vec<(PathBuf, String, Self)> {
        let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut found: Vec<_> = ids
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let place = fs::read_link(entry.path().join("cwd")).ok()?;
                let program = fs::read_link(entry.path().join("exe")).ok()?;
                let program = program.file_name()?.to_str()?.to_owned();
                let is_ours = place.starts_with(directory) && programs.contains(&program.as_str());
                is_ours.then_some((place, program, Self::of(pid)?))
            })
            .collect();
        found.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
        found
    }

    /// Sends a signal, if it still runs.
    pub(crate) fn signal(self, signal: Signal) {
        if self.is_alive() {
            // It may have exited since.
            let _ = Pid::from_raw(self.pid).map(|pid| kill_process(pid, signal));
        }
    }

    /// Kills it and waits for its exit. Returns whether it exited. With SIGTERM, an API server takes a minute.
    pub(crate) fn kill(self) -> bool {
        self.signal(Signal::KILL);
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while self.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        !self.is_alive()
    }
}

/// The state and the start time of a process, from `/proc`.
fn stat(pid: u32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&text)
}

/// `PID (NAME) STATE ...`, where NAME may contain any character; the start time is the 22nd field.
fn parse_stat(text: &str) -> Option<(char, u64)> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let started = fields.nth(18)?.parse().ok()?;
    Some((state, started))
}

/// A process that this one started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) identity: Identity,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, with its output appended to `log`. It survives this process and a Ctrl-C.
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let program = Path::new(command.get_program()).to_owned();
        let file = with_path(log, File::options().append(true).create(true).open(log))?;
        let errors = with_path(log, file.try_clone())?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .process_group(0)
            .spawn();
        let child = with_path(&program, child)?;
        let identity = Identity::of(child.id()).ok_or_else(|| Error::Program {
            program: program.display().to_string(),
            message: "exited at once".to_owned(),
        })?;
        Ok(Self {
            child,
            identity,
            log: log.to_owned(),
        })
    }

    /// Its exit status with the end of its log, if it has exited.
    pub(crate) fn exit_status(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(format!("{status}\n{}", tail(&self.log)))
    }

    /// Kills it and waits for its exit.
    pub(crate) fn kill(&mut self) {
        self.identity.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    const LINES: usize = 15;
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_mislead() {
        let text = "77 (a) b (c)) S 1 77 77 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        assert_eq!(parse_stat(text), Some(('S', 12345)));
    }

    #[test]
    fn a_later_process_with_the_same_id_is_another_one() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        let earlier = Identity {
            started: own.started - 1,
            ..own
        };
        assert!(!earlier.is_alive());
    }

    #[test]
    fn a_suspended_process_can_be_killed() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("1000");
        let mut process = Process::start(command, &directory.path().join("log")).unwrap();
        process.identity.signal(Signal::STOP);
        assert!(process.identity.is_alive());
        process.kill();
        assert!(!process.identity.is_alive());
    }
}
