//! A host cluster without nodes, and the programs that run against it.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use control_plane::{Environment, EnvironmentSpec, Program, Programs};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::runtime::Runtime;

/// The host that all tests of this file share.
pub(crate) struct Host {
    programs: Programs,
    kubeconfig: PathBuf,
    environment: Mutex<Option<Environment>>,
    /// Lives as long as the environment, whose tasks it runs.
    _runtime: Runtime,
}

/// The result of a program.
pub(crate) struct ProgramOutput {
    pub(crate) succeeded: bool,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl Host {
    pub(crate) fn start() -> control_plane::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.enable_all().build().unwrap();
        let programs = Programs::pinned()?;
        let spec = EnvironmentSpec {
            members: Vec::new(),
            audit: false,
        };
        let environment = runtime.block_on(Environment::start_temporary(&spec))?;
        Ok(Self {
            programs,
            kubeconfig: environment.host.directory().join("admin.yaml"),
            environment: Mutex::new(Some(environment)),
            _runtime: runtime,
        })
    }

    pub(crate) fn end(&self) {
        drop(self.environment.lock().take());
    }

    /// Runs kubectl against the host; `input` is its standard input.
    pub(crate) fn kubectl(&self, arguments: &[&str], input: &str) -> ProgramOutput {
        self.run(Program::Kubectl, arguments, input)
    }

    /// Runs kubectl, which must succeed without a warning. Returns its output.
    pub(crate) fn must(&self, arguments: &[&str], input: &str) -> String {
        let output = self.kubectl(arguments, input);
        assert!(output.succeeded, "kubectl {arguments:?}: {}", output.errors);
        assert!(!output.errors.contains("Warning"), "{}", output.errors);
        output.out
    }

    /// An object of the host; null if it does not exist.
    pub(crate) fn get(&self, arguments: &[&str]) -> Value {
        let arguments = [&["get", "--output=json"], arguments].concat();
        let output = self.kubectl(&arguments, "");
        serde_json::from_str(&output.out).unwrap_or(Value::Null)
    }

    pub(crate) fn helm(&self, arguments: &[&str]) -> ProgramOutput {
        self.run(Program::Helm, arguments, "")
    }

    fn run(&self, program: Program, arguments: &[&str], input: &str) -> ProgramOutput {
        let mut child = Command::new(self.programs.path(program))
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .current_dir(repository())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        ProgramOutput::from(child.wait_with_output().unwrap())
    }
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> Self {
        Self {
            succeeded: output.status.success(),
            out: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Waits until `holds`, at most `seconds`.
pub(crate) fn wait_until(what: &str, seconds: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !holds() {
        assert!(
            Instant::now() < deadline,
            "timed out after {seconds} s: {what}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
