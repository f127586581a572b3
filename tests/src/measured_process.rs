//! A process from outside: its memory and its CPU time.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Duration, sleep};

/// Ticks of the clock by which `/proc` counts CPU time, in a second.
const TICKS: f64 = 100.0;

/// A process that this one started; killed when dropped.
pub struct MeasuredProcess(Child);

impl MeasuredProcess {
    /// Starts `command`, with its standard error in the file `log`.
    ///
    /// # Errors
    /// If the file can't be written, or there is no such program.
    pub fn start(command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        let log = fs::File::create(log)?;
        let child = command.stdout(Stdio::null()).stderr(log).spawn();
        let program = || Path::new(command.get_program()).display().to_string();
        let child = child.with_context(|| format!("failed to start {}", program()))?;
        Ok(Self(child))
    }

    fn file(&self, name: &str) -> anyhow::Result<String> {
        let path: PathBuf = ["/proc", &self.0.id().to_string(), name].iter().collect();
        fs::read_to_string(path).context("the process ended")
    }

    /// The resident bytes, now and at most.
    ///
    /// # Errors
    /// If it has ended.
    pub fn memory(&self) -> anyhow::Result<(u64, u64)> {
        let status = self.file("status")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line?.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
            Some(kilobytes * 1024)
        };
        let resident = field("VmRSS:").zip(field("VmHWM:"));
        resident.context("/proc has no memory of the process")
    }

    /// The CPU time that it has used, in seconds.
    ///
    /// # Errors
    /// If it has ended.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = self.file("stat")?;
        // After the name, which may have spaces: the state, and 10 more fields before the ticks in user and kernel mode.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks = ticks.map(str::parse::<f64>).sum::<Result<f64, _>>()?;
        Ok(ticks / TICKS)
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Ends it as a signal does, and waits until it has ended.
    ///
    /// # Errors
    /// If it has ended before.
    pub async fn terminate(mut self) -> anyhow::Result<()> {
        let process = i32::try_from(self.0.id())?;
        let process = Pid::from_raw(process).context("a process has a number")?;
        kill_process(process, Signal::TERM)?;
        while self.is_running() {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

impl Drop for MeasuredProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
