//! kubectl commands that run against both clusters: `command -> exit code, lines`.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::LazyLock,
    time::Duration,
};

use regex::Regex;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process,
    time::{Instant, sleep, timeout_at},
};

use crate::reference::{
    cluster_pair::{ClusterPair, PairedCluster},
    normalize,
    runner::Record,
    script::KnownDifference,
};

/// The timeout of a command. A busy machine is slow.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The interval at which a command is repeated.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long a command that does not end by itself may print nothing more before it is stopped.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

static AGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?<before>\(|\s|^)((\d+d)?(\d+h)?(\d+m)?\d+s|\d+d(\d+h)?|\d+h(\d+m)?|\d+m|<invalid>)(?<after>\)|\s|$)",
    )
    .expect("a constant pattern is one")
});

/// Resource versions, and the names of temporary files.
static RANDOM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(resourceVersion: "|kubectl-edit-|(?:LIVE|MERGED)-)\d+"#)
        .expect("a constant pattern is one")
});
/// Times as `kubectl describe` prints them.
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} [+-]\d{4}")
        .expect("a constant pattern is one")
});
static GAP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r" {2,}").expect("a constant pattern is one"));

/// Commands that belong together, in their own namespace.
#[derive(Clone, Debug)]
pub(crate) struct KubectlSession {
    /// Its name.
    pub(crate) name: &'static str,
    /// The commands.
    pub(crate) commands: Vec<Command>,
    /// The known differences.
    pub(crate) known_differences: Vec<KnownDifference>,
}

impl KubectlSession {
    /// Declares a known difference at `at` of the result of `command`.
    #[must_use]
    pub(crate) fn differs(
        mut self,
        reason: &'static str,
        command: &'static str,
        at: &'static str,
    ) -> Self {
        self.known_differences.push(KnownDifference {
            reason,
            step: command,
            at,
        });
        self
    }
}

/// A kubectl command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// Its arguments, without namespace and kubeconfig.
    pub(crate) arguments: String,
    /// Its standard input.
    pub(crate) input: String,
    /// The environment variable `EDITOR`, if any.
    pub(crate) editor: Option<String>,
    /// The command does not end by itself: it is stopped after so many lines.
    pub(crate) stops_after: Option<usize>,
    /// The command is repeated until it prints so many lines.
    pub(crate) until_lines: Option<usize>,
    /// Its lines come in any order.
    pub(crate) is_unordered: bool,
    /// Only its exit code is compared.
    pub(crate) only_exit_code: bool,
}

/// A `kubectl` command with these arguments; spaces separate them, except within single quotes.
pub(crate) fn kubectl(arguments: &str) -> Command {
    Command {
        arguments: arguments.to_owned(),
        input: String::new(),
        editor: None,
        stops_after: None,
        until_lines: None,
        is_unordered: false,
        only_exit_code: false,
    }
}

impl Command {
    /// Sets its standard input.
    #[must_use]
    pub(crate) fn reads(mut self, input: &str) -> Self {
        input.clone_into(&mut self.input);
        self
    }

    /// Sets the command that edits the file which kubectl opens.
    #[must_use]
    pub(crate) fn edits(mut self, editor: &str) -> Self {
        self.editor = Some(editor.to_owned());
        self
    }

    /// Stops the command after so many lines, once it prints nothing more.
    #[must_use]
    pub(crate) fn ended_after(mut self, lines: usize) -> Self {
        self.stops_after = Some(lines);
        self
    }

    /// Repeats the command until it prints so many lines; the last output is compared.
    #[must_use]
    pub(crate) fn until_lines(mut self, lines: usize) -> Self {
        self.until_lines = Some(lines);
        self
    }

    /// Ignores the order of its lines.
    #[must_use]
    pub(crate) fn in_any_order(mut self) -> Self {
        self.is_unordered = true;
        self
    }

    /// Compares only its exit code.
    #[must_use]
    pub(crate) fn silent(mut self) -> Self {
        self.only_exit_code = true;
        self
    }
}

/// Runs a session against one cluster with this program.
///
/// # Errors
/// If a command can't start, or does not end.
pub(crate) async fn run_session(
    session: &KubectlSession,
    program: &Path,
    namespace: &str,
    cluster: &PairedCluster,
    pair: &ClusterPair,
) -> Result<Vec<Record>, String> {
    let home = pair
        .directory
        .join(format!("home-{namespace}-{}", cluster.name));
    std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let runner = Runner {
        program: program.to_owned(),
        namespace: namespace.to_owned(),
        home,
        cluster,
    };
    runner.run(&kubectl("create namespace ${ns}")).await?;
    let account = "wait --for=create serviceaccount/default --timeout=30s";
    runner.run(&kubectl(account)).await?;
    let mut records = Vec::new();
    for command in &session.commands {
        records.push(runner.run(command).await?);
    }
    Ok(records)
}

struct Runner<'a> {
    program: PathBuf,
    namespace: String,
    home: PathBuf,
    cluster: &'a PairedCluster,
}

impl Runner<'_> {
    async fn run(&self, command: &Command) -> Result<Record, String> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let output = self.run_once(command, deadline).await;
            let output = output.map_err(|error| {
                format!("{}: {}: {error}", self.cluster.name, command.arguments)
            })?;
            let out = self.lines(&output.stdout, command);
            let timed_out = command.stops_after.max(command.until_lines) > Some(out.len());
            if timed_out && command.until_lines.is_some() && Instant::now() < deadline {
                sleep(POLL_INTERVAL).await;
                continue;
            }
            let code = output.status.code();
            let response = if command.only_exit_code {
                json!({ "code": code })
            } else {
                json!({ "code": code, "out": out, "err": self.lines(&output.stderr, command) })
            };
            return Ok(Record {
                label: command.arguments.clone(),
                response,
                timed_out,
            });
        }
    }

    async fn run_once(
        &self,
        command: &Command,
        deadline: Instant,
    ) -> Result<Output, Box<dyn std::error::Error>> {
        let mut child = self.start(command)?;
        if let Some(mut input) = child.stdin.take() {
            let text = self.expand(&command.input);
            // A command that reads nothing has closed its standard input.
            let _ = input.write_all(text.as_bytes()).await;
        }
        let mut shown = Vec::new();
        if let Some(lines) = command.stops_after {
            let output = child.stdout.take().expect("the stream is piped");
            shown = read_lines(output, lines, deadline).await?;
            child.start_kill()?;
        }
        let ended = timeout_at(deadline, child.wait_with_output()).await;
        let mut output = ended.map_err(|_| "the command does not end")??;
        output.stdout.splice(..0, shown);
        Ok(output)
    }

    fn start(&self, command: &Command) -> std::io::Result<process::Child> {
        let mut process = process::Command::new(&self.program);
        process
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", &self.home)
            .current_dir(&self.home)
            .args(words(&self.expand(&command.arguments)))
            .arg(format!(
                "--kubeconfig={}",
                self.cluster.kubeconfig.display()
            ))
            .arg(format!("--namespace={}", self.namespace))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(editor) = &command.editor {
            process.env("EDITOR", editor);
        }
        process.spawn()
    }

    fn expand(&self, text: &str) -> String {
        text.replace("${ns}", &self.namespace)
    }

    fn lines(&self, output: &[u8], command: &Command) -> Vec<String> {
        let text = String::from_utf8_lossy(output);
        let home = self.home.display().to_string();
        let text = text.replace(&home, "<home>");
        let lines = text.lines().map(normalized).filter(|line| !line.is_empty());
        let mut lines: Vec<String> = lines.collect();
        if command.is_unordered {
            lines.sort();
        }
        lines
    }
}

/// Reads the output up to so many lines, and for a moment longer: nothing more should follow.
async fn read_lines(
    output: process::ChildStdout,
    lines: usize,
    deadline: Instant,
) -> std::io::Result<Vec<u8>> {
    let (mut output, mut shown) = (BufReader::new(output), Vec::new());
    let mut number = 0;
    loop {
        let until = if number < lines {
            deadline
        } else {
            Instant::now() + QUIET_PERIOD
        };
        match timeout_at(until, output.read_until(b'\n', &mut shown)).await {
            Ok(Err(error)) => return Err(error),
            Ok(Ok(1..)) => number += 1,
            Ok(Ok(0)) | Err(_) => return Ok(shown),
        }
    }
}

/// A line without the parts that differ between any two runs.
fn normalized(line: &str) -> String {
    let line = AGE.replace_all(line, "${before}<age>${after}");
    let line = RANDOM.replace_all(&line, "$1<random>");
    let line = DATE.replace_all(&line, "<date>");
    let line = GAP.replace_all(line.trim_end(), "  ");
    normalize::text(&line)
}

fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in text.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Checks of this module, which run beside the comparisons.
pub(crate) mod checks {
    use super::{normalized, words};

    pub(crate) fn ages_and_column_gaps_are_normalized() {
        assert_eq!(normalized("web    2   3m4s"), "web  2  <age>");
        assert_eq!(normalized("0 (3s ago)  5d"), "0 (<age> ago)  <age>");
        let created = "CreationTimestamp:      Tue, 24 Nov 2026 12:49:04 +0000";
        assert_eq!(normalized(created), "CreationTimestamp:  <date>");
        assert_eq!(words("a 'b c'  d"), ["a", "b c", "d"]);
    }
}
