//! Commands of kubectl, run against both clusters: `command -> exit code, lines`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::LazyLock,
    time::Duration,
};

use regex::Regex;
use serde_json::json;
use tokio::{io::AsyncWriteExt, process, time::timeout};

use super::{
    pair::{Pair, Side},
    play::Record,
    talk::Differs,
};

/// How long a command may take. A busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(90);

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
    /// It goes on until it is ended after so long.
    pub runs_for: Option<Duration>,
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
        runs_for: None,
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

    /// It is ended after so many seconds.
    #[must_use]
    pub fn for_seconds(mut self, seconds: u64) -> Self {
        self.runs_for = Some(Duration::from_secs(seconds));
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
        let failed = |what: &dyn std::fmt::Display| {
            format!("{}: {}: {what}", self.side.name, command.arguments)
        };
        let mut child = self.start(command).map_err(|it| failed(&it))?;
        if let Some(mut input) = child.stdin.take() {
            let text = self.filled(&command.input);
            // A command that reads nothing has closed it.
            let _ = input.write_all(text.as_bytes()).await;
        }
        let output = if let Some(time) = command.runs_for {
            tokio::time::sleep(time).await;
            child.start_kill().map_err(|it| failed(&it))?;
            child.wait_with_output().await
        } else {
            let ended = timeout(PATIENCE, child.wait_with_output()).await;
            ended.map_err(|_| failed(&"it does not end"))?
        };
        let output = output.map_err(|it| failed(&it))?;
        let answer = if command.is_silent {
            json!({ "code": output.status.code() })
        } else {
            json!({
                "code": output.status.code(),
                "out": self.lines(&output.stdout, command),
                "err": self.lines(&output.stderr, command),
            })
        };
        Ok(Record {
            label: command.arguments.clone(),
            answer,
            in_vain: false,
        })
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
