//! Commands of kubectl, run against both clusters: `command -> exit code, lines`.

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

use super::{
    pair::{Pair, Side},
    play::Record,
    talk::Differs,
};

/// How long a command may take. A busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often one is run again.
const LOOK: Duration = Duration::from_millis(500);
/// One that goes on is listened to for so long when it should have no more to say.
const SILENCE: Duration = Duration::from_secs(1);

static AGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?<before>\(|\s|^)((\d+d)?(\d+h)?(\d+m)?\d+s|\d+d(\d+h)?|\d+h(\d+m)?|\d+m|<invalid>)(?<after>\)|\s|$)",
    )
    .expect("a constant pattern is one")
});

/// Versions, and the names of files that are made for a moment.
static CHANCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(resourceVersion: "|kubectl-edit-|(?:LIVE|MERGED)-)\d+"#)
        .expect("a constant pattern is one")
});
static GAP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r" {2,}").expect("a constant pattern is one"));

/// Commands that belong together, in a namespace of their own.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its name.
    pub name: &'static str,
    /// What is run.
    pub commands: Vec<Command>,
    /// What differs on purpose.
    pub differs: Vec<Differs>,
}

impl Session {
    /// A difference is meant at `at` of what comes of `command`.
    #[must_use]
    pub fn differs(mut self, why: &'static str, command: &'static str, at: &'static str) -> Self {
        self.differs.push(Differs {
            why,
            step: command,
            at,
        });
        self
    }
}

/// A command.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its arguments, without namespace and kubeconfig.
    pub arguments: String,
    /// What it reads.
    pub input: String,
    /// The variable `EDITOR`, if any.
    pub editor: Option<String>,
    /// It goes on by itself: it is ended when it has shown so many lines.
    pub goes_on: Option<usize>,
    /// It is run again until it shows so many lines.
    pub until: Option<usize>,
    /// Its lines come in any order.
    pub is_unordered: bool,
    /// What it says is not compared, only how it ends.
    pub is_silent: bool,
}

/// Runs `kubectl` with these arguments; spaces separate them, except within single quotes.
pub fn run(arguments: &str) -> Command {
    Command {
        arguments: arguments.to_owned(),
        input: String::new(),
        editor: None,
        goes_on: None,
        until: None,
        is_unordered: false,
        is_silent: false,
    }
}

impl Command {
    /// It reads this.
    #[must_use]
    pub fn reads(mut self, input: &str) -> Self {
        input.clone_into(&mut self.input);
        self
    }

    /// What it opens in an editor is edited by this command.
    #[must_use]
    pub fn edits(mut self, editor: &str) -> Self {
        self.editor = Some(editor.to_owned());
        self
    }

    /// It goes on by itself: it is ended when it has shown so many lines, and has no more to show.
    #[must_use]
    pub fn ended_after(mut self, lines: usize) -> Self {
        self.goes_on = Some(lines);
        self
    }

    /// It is run again until it shows so many lines; what it shows last is compared.
    #[must_use]
    pub fn until_lines(mut self, lines: usize) -> Self {
        self.until = Some(lines);
        self
    }

    /// Its lines come in any order.
    #[must_use]
    pub fn in_any_order(mut self) -> Self {
        self.is_unordered = true;
        self
    }

    /// Only how it ends is compared.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.is_silent = true;
        self
    }
}

/// Runs a session on one side with this program.
///
/// # Errors
/// If a command can't be run, or does not end.
pub async fn play(
    session: &Session,
    program: &Path,
    namespace: &str,
    side: &Side,
    pair: &Pair,
) -> Result<Vec<Record>, String> {
    let home = pair.folder.join(format!("home-{namespace}-{}", side.name));
    std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let runner = Runner {
        program: program.to_owned(),
        namespace: namespace.to_owned(),
        home,
        side,
    };
    runner.run(&run("create namespace ${ns}")).await?;
    let account = "wait --for=create serviceaccount/default --timeout=30s";
    runner.run(&run(account)).await?;
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
    side: &'a Side,
}

impl Runner<'_> {
    async fn run(&self, command: &Command) -> Result<Record, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.run_once(command, deadline).await;
            let output =
                output.map_err(|it| format!("{}: {}: {it}", self.side.name, command.arguments))?;
            let out = self.lines(&output.stdout, command);
            let in_vain = command.goes_on.max(command.until) > Some(out.len());
            if in_vain && command.until.is_some() && Instant::now() < deadline {
                sleep(LOOK).await;
                continue;
            }
            let code = output.status.code();
            let answer = if command.is_silent {
                json!({ "code": code })
            } else {
                json!({ "code": code, "out": out, "err": self.lines(&output.stderr, command) })
            };
            return Ok(Record {
                label: command.arguments.clone(),
                answer,
                in_vain,
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
            let text = self.filled(&command.input);
            // A command that reads nothing has closed it.
            let _ = input.write_all(text.as_bytes()).await;
        }
        let mut shown = Vec::new();
        if let Some(lines) = command.goes_on {
            let output = child.stdout.take().expect("it is piped");
            shown = listen(output, lines, deadline).await?;
            child.start_kill()?;
        }
        let ended = timeout_at(deadline, child.wait_with_output()).await;
        let mut output = ended.map_err(|_| "it does not end")??;
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
            .args(words(&self.filled(&command.arguments)))
            .arg(format!("--kubeconfig={}", self.side.kubeconfig.display()))
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

    fn filled(&self, text: &str) -> String {
        text.replace("${ns}", &self.namespace)
    }

    fn lines(&self, output: &[u8], command: &Command) -> Vec<String> {
        let text = String::from_utf8_lossy(output);
        let home = self.home.display().to_string();
        let text = text.replace(&home, "<home>");
        let lines = text.lines().map(plain).filter(|it| !it.is_empty());
        let mut lines: Vec<String> = lines.collect();
        if command.is_unordered {
            lines.sort();
        }
        lines
    }
}

/// What is shown until there are so many lines, and for a moment after that: no more should come.
async fn listen(
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
            Instant::now() + SILENCE
        };
        match timeout_at(until, output.read_until(b'\n', &mut shown)).await {
            Ok(Err(error)) => return Err(error),
            Ok(Ok(1..)) => number += 1,
            Ok(Ok(0)) | Err(_) => return Ok(shown),
        }
    }
}

/// A line without what differs between any two runs.
fn plain(line: &str) -> String {
    let line = AGE.replace_all(line, "${before}<age>${after}");
    let line = CHANCE.replace_all(&line, "$1<chance>");
    let line = GAP.replace_all(line.trim_end(), "  ");
    super::normal::text(&line)
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
    words.retain(|it| !it.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_gaps_are_plain() {
        assert_eq!(plain("web    2   3m4s"), "web  2  <age>");
        assert_eq!(plain("0 (3s ago)  5d"), "0 (<age> ago)  <age>");
        assert_eq!(words("a 'b c'  d"), ["a", "b c", "d"]);
    }
}
