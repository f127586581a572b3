//! `fedrs plan`: what would happen if, with no cluster at all.
//!
//! ```text
//! file or - -> cases (checked strictly: input)      -.
//! FRS and flags -> one case (set)                    -+-> federated-scheduler -> answer -> table, JSON or YAML
//! ```
//!
//! Nothing is printed unless all of the input is valid.

mod answer;
mod case;
mod fields;
mod set;
mod table;

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use answer::Answer;
use case::{Case, Cases};
use clap::ValueEnum;

/// Exit status of invalid input, the same as of invalid arguments.
const INVALID_INPUT: u8 = 2;

/// What `fedrs plan --help` teaches.
const HELP: &str = r#"Show how replicas would be laid out, and why, without any cluster

Give it cases from a file (JSON or YAML; - reads standard input):

    fedrs plan - <<EOF
    name: web
    replicas: 50
    preferences:
      rebalance: true
      clusters: {"*": {weight: 1}, C: {weight: 1, maxReplicas: 20}}
    clusters: [A, B, C]
    current: {A: 20}     # replicas that are present; none by default
    capacity: {B: 6}     # the most a cluster can run; no limit by default
    EOF

or a FederatedReplicaSet and the clusters it would meet:

    fedrs plan -f web.yaml --clusters eu,us,asia --current eu=20 --capacity asia=6

A file holds one case, a list of cases, or an object with a list under "cases".
Without preferences replicas spread evenly. "key" decides ties between clusters,
as namespace and name of a FederatedReplicaSet do: default/NAME if it isn't given.
What is given for clusters that are not listed is ignored, with a note. "layout",
"unplaced" and "ties" may be there, as in a file of expected layouts, and are not read.

Invalid input ends with status 2, with a message for each wrong field and nothing
on standard output."#;

/// Show how replicas would be laid out, and why, without any cluster
#[derive(clap::Args)]
#[command(long_about = HELP)]
pub(crate) struct Arguments {
    /// File with cases, JSON or YAML; - for standard input
    #[arg(
        value_name = "CASES",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    cases: Option<PathBuf>,
    /// File with a FederatedReplicaSet, JSON or YAML; - for standard input
    #[arg(short, long, value_name = "FRS", requires = "clusters")]
    file: Option<PathBuf>,
    /// The clusters that can be used, with --file
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "file"
    )]
    clusters: Vec<String>,
    /// Replicas that are present in a cluster, with --file
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', requires = "file", value_parser = count_of)]
    current: Vec<(String, u64)>,
    /// The most replicas a cluster can run, with --file
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', requires = "file", value_parser = count_of)]
    capacity: Vec<(String, u64)>,
    /// How to print the layouts
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// How layouts are printed.
#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// A table for each case, for people
    Table,
    /// An object, or a list where the cases are one
    Json,
    /// The same as YAML
    Yaml,
}

/// `NAME=N` of a flag.
fn count_of(text: &str) -> Result<(String, u64), String> {
    let (name, count) = text.rsplit_once('=').ok_or("must be NAME=N")?;
    let count: i64 = count
        .parse()
        .map_err(|_| format!("{count:?} is no whole number"))?;
    let count = u64::try_from(count).map_err(|_| "must not be negative".to_owned())?;
    Ok((name.to_owned(), count))
}

/// Reads, plans and prints.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let cases = match read(arguments) {
        Ok(cases) => cases,
        Err(errors) => {
            for error in errors {
                eprintln!("error: {error}");
            }
            return ExitCode::from(INVALID_INPUT);
        }
    };
    for note in cases.list.iter().flat_map(Case::notes) {
        eprintln!("note: {note}");
    }
    let answers: Vec<Answer<'_>> = cases.list.iter().map(Answer::new).collect();
    let text = print(&answers, cases.is_list, arguments.output);
    crate::print::text(&text)
}

/// The cases of the arguments, or what is wrong with them.
fn read(arguments: &Arguments) -> Result<Cases, Vec<String>> {
    if let Some(path) = &arguments.file {
        let circumstances = set::Circumstances {
            clusters: &arguments.clusters,
            current: &arguments.current,
            capacity: &arguments.capacity,
        };
        let case = set::case(&text_of(path)?, &circumstances).map_err(|errors| {
            errors
                .iter()
                .map(|error| format!("{}: {error}", path.display()))
                .collect::<Vec<_>>()
        })?;
        return Ok(Cases {
            list: vec![case],
            is_list: false,
        });
    }
    let path = arguments.cases.as_deref().unwrap_or(Path::new("-"));
    Cases::parse(&text_of(path)?)
}

/// The text of a file, or of standard input.
fn text_of(path: &Path) -> Result<String, Vec<String>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    text.map_err(|error| vec![format!("failed to read {}: {error}", path.display())])
}

/// The answers as text, with a newline at the end.
fn print(answers: &[Answer<'_>], is_list: bool, output: Output) -> String {
    const SERIALIZABLE: &str = "answers are made of strings and numbers";
    match (output, answers) {
        (Output::Table, _) => table::print(answers),
        (Output::Json, [answer]) if !is_list => {
            serde_json::to_string_pretty(answer).expect(SERIALIZABLE) + "\n"
        }
        (Output::Json, _) => serde_json::to_string_pretty(answers).expect(SERIALIZABLE) + "\n",
        (Output::Yaml, [answer]) if !is_list => {
            serde_saphyr::to_string(answer).expect(SERIALIZABLE)
        }
        (Output::Yaml, _) => serde_saphyr::to_string(&answers).expect(SERIALIZABLE) + "\n",
    }
}
