//! kubectl as a user of a cluster runs it, with a transcript that a person can read.
//!
//! ```text
//! session.run("get frs") --> kubectl --> the cluster
//!         |--> recorded/sessions/NAME.txt: commands and outputs, without what differs between two runs
//! ```

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use control_plane::{Program, Programs};
use regex::Regex;
use tempfile::TempDir;

use super::TestEnvironment;

/// What differs between two clusters. The alphabet of generated names has no vowels, so that they form no words.
static REDACTED: LazyLock<[(Regex, &str); 7]> = LazyLock::new(|| {
    [
        (r"(\w-)[bcdfghjklmnpqrstvwxz2456789]{5}\b", "$1<generated>"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uid>"),
        (r"\b\d{4}-\d{2}-\d{2}T[\d:.]+Z", "<time>"),
        (r"v1\.\d+\.\d+(\+sim)? +", "<version>  "),
        (r"VERSION +", "VERSION    "),
        (r"(Resource Version: +)\d+", "$1<number>"),
        (r"\b[0-9a-f]{16}\b", "<hash>"),
    ]
    .map(|(pattern, text)| (regex(pattern), text))
});
/// The field `internal`: state of the controller that depends on the time.
static INTERNAL: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^( +Internal:).*$"));
/// An age with the spaces that fill its column.
static AGE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(  )(?:\d[\dm]*s \(x\d+ over \w+\) {0,2}|\ds {0,4}|\d[\dm]*\ds {0,3})( |\S|$)")
});
static GAP: LazyLock<Regex> = LazyLock::new(|| regex(r"(\S) {2,}"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern is one")
}

/// kubectl commands of one user, and what they printed ([`Capability::Kubectl`](super::Capability)).
pub struct KubectlSession {
    program: PathBuf,
    home: TempDir,
    namespace: String,
    transcript: String,
}

/// The result of a command.
pub struct CommandOutput {
    /// Whether its exit code is 0.
    pub succeeded: bool,
    /// Its output, then its errors.
    pub output: String,
}

impl TestEnvironment {
    /// A session of an administrator of the host, in the scenario's namespace.
    pub fn kubectl(&self) -> KubectlSession {
        self.session(&self.real().shared.host)
    }

    /// A session of an administrator of a member.
    pub fn kubectl_of(&self, member: &str) -> KubectlSession {
        self.session(&self.real().shared.members[member].direct)
    }

    fn session(&self, kubeconfig: &str) -> KubectlSession {
        let programs = Programs::pinned().expect("the pins can be read");
        let home = TempDir::with_prefix("fedrs-kubectl-").expect("a temporary directory");
        fs::write(home.path().join("cluster.yaml"), kubeconfig).expect("a file can be written");
        KubectlSession {
            program: programs.path(Program::Kubectl),
            home,
            namespace: self.namespace.clone(),
            transcript: String::new(),
        }
    }
}

impl KubectlSession {
    /// Runs a command that must succeed. Returns its output.
    pub async fn must(&mut self, arguments: &str) -> String {
        let ran = self.run(arguments, "").await;
        assert!(ran.succeeded, "kubectl {arguments}: {}", ran.output);
        ran.output
    }

    /// Runs a command with this standard input. Spaces separate its arguments, except within single quotes.
    pub async fn run(&mut self, arguments: &str, input: &str) -> CommandOutput {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("HOME", self.home.path())
            .arg("--kubeconfig")
            .arg(self.home.path().join("cluster.yaml"))
            .args(["--namespace", &self.namespace])
            .args(words(arguments));
        let file = self.home.path().join("input.yaml");
        fs::write(&file, input).expect("a file can be written");
        let file = fs::File::open(&file).expect("a file can be read");
        command.stdin(Stdio::from(file));
        let ran = tokio::task::spawn_blocking(move || command.output());
        let ran = ran.await.expect("the task does not panic");
        let ran = ran.unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let output = text(&ran.stdout) + &text(&ran.stderr);
        self.record(arguments, &output);
        CommandOutput {
            succeeded: ran.status.success(),
            output,
        }
    }

    fn record(&mut self, arguments: &str, output: &str) {
        let _ = writeln!(self.transcript, "$ kubectl {arguments}");
        let output = output.replace(&self.namespace, "<namespace>");
        let (object, events) = output.split_at(output.find("\nEvents:").unwrap_or(output.len()));
        let object = INTERNAL.replace_all(object, "$1 <internal>");
        for line in object.lines() {
            let _ = writeln!(self.transcript, "{}", redacted(line));
        }
        // The columns of events are as wide as their ages, and events of the same second come in any order.
        let mut events: Vec<_> = events
            .lines()
            .skip(1)
            .map(|line| redacted(&GAP.replace_all(line, "$1  ")))
            .collect();
        if let [_title, _header, _line, events @ ..] = &mut events[..] {
            events.sort();
        }
        for line in events {
            let _ = writeln!(self.transcript, "{line}");
        }
        self.transcript.push('\n');
    }

    /// Compares the transcript with the recorded one; `INSTA_UPDATE=always` records it.
    pub fn assert_recorded(&self, name: &str) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded/sessions");
        let path = directory.join(format!("{name}.txt"));
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            fs::create_dir_all(&directory).expect("a directory can be made");
            fs::write(&path, &self.transcript).expect("a file can be written");
        }
        let recorded = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            recorded == self.transcript,
            "{} differs; read the new transcript and record it (INSTA_UPDATE=always)\n{}",
            path.display(),
            self.transcript
        );
    }
}

/// Splits a command at spaces, except within single quotes.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    // Every second part is quoted.
    for (number, part) in arguments.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// A line of output without what differs between two runs.
fn redacted(line: &str) -> String {
    let mut line = line.to_owned();
    for (pattern, text) in &*REDACTED {
        line = pattern.replace_all(&line, *text).into_owned();
    }
    AGE.replace(&line, "$1<age>  $2").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_has_no_ages_and_keeps_columns() {
        for (line, kept) in [
            ("web    6         1s    6", "web    6         <age>  6"),
            ("web    6         12s   6", "web    6         <age>  6"),
            ("web    6         1m2s   6", "web    6         <age>  6"),
            (
                "web    6         12s       6",
                "web    6         <age>      6",
            ),
            ("web    6         1s", "web    6         <age>"),
            (
                "  Normal  Created  3s (x2 over 5s)  fedrs  a: 2",
                "  Normal  Created  <age>  fedrs  a: 2",
            ),
            ("a   True   v1.36.4+sim   3", "a   True   <version>  3"),
            ("  Resource Version:  149", "  Resource Version:  <number>"),
        ] {
            assert_eq!(redacted(line), kept);
        }
    }
}
