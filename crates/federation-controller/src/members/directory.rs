//! Watches a directory of kubeconfigs, one for each member and named after it, and sends [`MemberEvent`]s.
//!
//! Reads the directory every second and compares the content: file notifications do not show how mounted Secrets change. A
//! directory that can't be read, or whose files are removed all at once, removes no member: that is more likely a mistake than
//! the removal of every member (F33, F36).

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use super::kubeconfig::harden;
use super::{
    MemberEvent,
    kubeconfig::{Kubeconfig, KubeconfigError, read_file},
};

/// The interval between two reads of the directory.
const PERIOD: Duration = Duration::from_secs(1);

/// The file of each member.
type Members = BTreeMap<String, File>;

/// The file of a member.
#[derive(PartialEq, Eq)]
struct File {
    path: PathBuf,
    /// Its content, or why it can't be read.
    content: Result<String, KubeconfigError>,
}

/// The files that were found by one read of the directory.
#[derive(Default)]
struct Found {
    members: Members,
    /// Names of kubeconfigs that are not valid names of members.
    ignored: Vec<String>,
}

/// Watches `directory` until `cancel`.
pub async fn watch(
    directory: PathBuf,
    events: mpsc::Sender<MemberEvent>,
    cancel: CancellationToken,
) {
    let mut known = Found::default();
    let mut has_reported = false;
    let (mut complete, mut emptied) = (false, false);
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while cancel.run_until_cancelled(ticks.tick()).await.is_some() {
        let found = match read(&directory).await {
            Ok(found) if found.members.is_empty() && !known.members.is_empty() => {
                if !std::mem::replace(&mut emptied, true) {
                    let directory = directory.display();
                    tracing::warn!(%directory, "the --members directory is empty; members without a Secret keep their last kubeconfig");
                    if events.send(MemberEvent::Emptied).await.is_err() {
                        return;
                    }
                }
                continue;
            }
            Ok(found) => found,
            Err(error) => {
                report_failure(&mut has_reported, &directory, &error.to_string());
                continue;
            }
        };
        has_reported = false;
        if found.ignored != known.ignored {
            for name in &found.ignored {
                let directory = directory.display();
                tracing::warn!(%directory, file = name, "file ignored: the name of a member is a DNS label of at most 63 characters");
            }
        }
        let was_emptied = std::mem::take(&mut emptied);
        for event in changes(&directory, &known.members, &found.members, was_emptied) {
            if events.send(event).await.is_err() {
                return;
            }
        }
        if !complete && events.send(MemberEvent::Complete).await.is_err() {
            return;
        }
        complete = true;
        known = found;
    }
}

fn report_failure(has_reported: &mut bool, directory: &Path, message: &str) {
    if !std::mem::replace(has_reported, true) {
        tracing::warn!(directory = %directory.display(), "failed to read the --members directory: {message}");
    }
}

/// All kubeconfigs of `directory`, by member name.
async fn read(directory: &Path) -> io::Result<Found> {
    let (mut members, mut ignored) = (Members::new(), Vec::new());
    let mut entries = tokio::fs::read_dir(directory).await?;
    while let Some(entry) = entries.next_entry().await? {
        let path = entry.path();
        let Some(name) = member_name(&path) else {
            continue;
        };
        if !fedrs_api::is_dns_label(&name) {
            ignored.push(name);
            continue;
        }
        let content = read_text(&path).await;
        let file = File { path, content };
        if let Some(other) = members.insert(name.clone(), file) {
            members.insert(name, two_files(&other.path));
        }
    }
    ignored.sort();
    Ok(Found { members, ignored })
}

/// Two files with the name of one member are an error: the choice between them would be arbitrary.
fn two_files(one: &Path) -> File {
    File {
        path: one.with_extension("*"),
        content: Err(KubeconfigError::TwoFiles),
    }
}

/// The member that a file is for: its name without `.yaml`, `.yml` or `.kubeconfig`. `None` for hidden files.
fn member_name(path: &Path) -> Option<String> {
    let extension = path.extension()?.to_str()?;
    let name = path.file_stem()?.to_str()?;
    let known = matches!(extension, "yaml" | "yml" | "kubeconfig");
    (known && !name.starts_with('.')).then(|| name.to_owned())
}

async fn read_text(path: &Path) -> Result<String, KubeconfigError> {
    let content = read_file(path)
        .await
        .map_err(|error| KubeconfigError::Unreadable {
            path: path.display().to_string(),
            why: error.to_string(),
        })?;
    String::from_utf8(content).map_err(|_| KubeconfigError::NotText)
}

/// The events of the members whose files changed between two reads; of all members that have a file, if `all`.
fn changes(directory: &Path, known: &Members, found: &Members, all: bool) -> Vec<MemberEvent> {
    let mut events = Vec::new();
    for (name, file) in found {
        if all || known.get(name) != Some(file) {
            events.push(file_event(directory, name, file));
        }
    }
    for name in known.keys().filter(|name| !found.contains_key(*name)) {
        events.push(MemberEvent::Gone { name: name.clone() });
    }
    events
}

fn file_event(directory: &Path, name: &str, File { path, content }: &File) -> MemberEvent {
    let read = |text: &String| Ok(Kubeconfig::read(text)?.in_directory(directory));
    MemberEvent::Kubeconfig {
        name: name.to_owned(),
        place: format!("file {}", path.display()),
        kubeconfig: content.as_ref().map_err(Clone::clone).and_then(read),
    }
}
