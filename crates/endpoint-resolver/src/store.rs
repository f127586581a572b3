//! The files of the last good answers: reads one at the start, and writes it when the answer changes.
//!
//! ```text
//! Endpoints --changed, at most once per second--> a temporary file --fsync, rename--> NAMESPACE.NAME.json
//! ```

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    endpoints::Endpoints,
    file::Saved,
    held,
    name::SetName,
    resolved::{Age, Confirmation, Resolved, View},
};

/// The least time between two writes of a set.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// How old the time in a file may be while the service confirms the answer.
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// The largest file that is read, in bytes: some 200,000 endpoints.
const MAX_FILE: u64 = 64 << 20;
/// Files that are written at the same time: many sets change together when a cluster is lost.
const MAX_WRITES: usize = 4;

/// The directory of the files.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    /// Distinguishes the temporary files of processes that share the directory.
    unique: u64,
    writes: Semaphore,
}

impl Store {
    /// The files in `directory`, which is created if there is none.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            unique: rand::random(),
            writes: Semaphore::new(MAX_WRITES),
        })
    }

    /// What the file of the set says. Blocks while it reads. A file that can't be used is as good as none: the next answer
    /// replaces it.
    pub(crate) fn read(&self, set: &SetName) -> View {
        let path = self.path(set);
        let content = match read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return View::Unknown(None),
            Err(error) => {
                tracing::warn!(%set, path = %path.display(), %error, "failed to read the last answer");
                return View::Unknown(None);
            }
        };
        match Saved::decode(set, &content) {
            Ok(saved) => View::Known(Arc::new(resolved(saved, Timestamp::now()))),
            Err(error) => {
                tracing::warn!(%set, path = %path.display(), %error, "ignored the file of the last answer");
                View::Unknown(None)
            }
        }
    }

    /// Writes the answers of the set until its resolver is dropped.
    pub(crate) async fn keep(self: Arc<Self>, mut endpoints: Endpoints) {
        let mut writer = Writer::default();
        loop {
            let is_open = tokio::select! {
                changed = endpoints.changed() => changed.is_ok(),
                () = tokio::time::sleep(REFRESH) => true,
            };
            if let Some(current) = endpoints.current()
                && writer.needs(&current, Instant::now())
            {
                let written = self.write(endpoints.name(), &current).await;
                writer.wrote(endpoints.name(), current, &written);
            }
            if !is_open {
                return;
            }
            tokio::time::sleep(MIN_INTERVAL).await;
        }
    }

    async fn write(self: &Arc<Self>, set: &SetName, answer: &Arc<Resolved>) -> io::Result<()> {
        let _permit = self
            .writes
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let (store, set, answer) = (Arc::clone(self), set.clone(), Arc::clone(answer));
        let written = tokio::task::spawn_blocking(move || store.replace(&set, &answer));
        written
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Replaces the file in one step: readers see the old or the new content, also if the machine fails.
    fn replace(&self, set: &SetName, answer: &Resolved) -> io::Result<()> {
        let confirmed_at = Timestamp::now().saturating_sub(answer.age());
        let confirmed_at = confirmed_at.map_err(io::Error::other)?;
        let endpoints: Vec<_> = answer.endpoints.iter().map(Arc::as_ref).collect();
        let content = Saved::new(set, (answer.version, endpoints), confirmed_at).encode();
        let path = self.path(set);
        let temporary = self
            .directory
            .join(format!(".{}.{:x}.tmp", file_name(set), self.unique));
        let written =
            write_synced(&temporary, &content).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            // It may not exist; the error that matters is the first.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn path(&self, set: &SetName) -> PathBuf {
        self.directory.join(file_name(set))
    }
}

/// What was last written of a set, and whether it went well.
#[derive(Debug, Default)]
struct Writer {
    last: Option<(Arc<Resolved>, Instant)>,
    has_failed: bool,
}

impl Writer {
    /// Whether the file has to be written for `current`.
    fn needs(&self, current: &Arc<Resolved>, now: Instant) -> bool {
        match &self.last {
            // What came from the file, and was never confirmed, is in the file.
            None => current.is_from_service,
            Some((last, at)) => {
                let is_other = last.version != current.version
                    || !Arc::ptr_eq(&last.endpoints, &current.endpoints);
                // The file has the exact time when the confirmation ends, and an older one before.
                let has_ended = !current.is_live() && last.confirmation != current.confirmation;
                let is_old = current.is_live() && now.duration_since(*at) >= REFRESH;
                is_other || has_ended || is_old
            }
        }
    }

    /// Notes the result; the log has the first failure of several.
    fn wrote(&mut self, set: &SetName, answer: Arc<Resolved>, result: &io::Result<()>) {
        if let Err(error) = result
            && !self.has_failed
        {
            tracing::warn!(%set, %error, "failed to write the last answer to disk");
        }
        self.has_failed = result.is_err();
        // After a failure the next change, or the next refresh, tries again.
        self.last = Some((answer, Instant::now()));
    }
}

/// Namespaces have no dots: the name is of one set only.
fn file_name(set: &SetName) -> String {
    format!("{}.{}.json", set.namespace(), set.name())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = File::open(path)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut content)?;
    if read as u64 > MAX_FILE {
        return Err(io::Error::other(format!(
            "it is larger than {MAX_FILE} bytes"
        )));
    }
    Ok(content)
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The answer of a file that is read at `now`.
fn resolved(saved: Saved, now: Timestamp) -> Resolved {
    // A clock that was set back makes an answer no younger than new.
    let age = now.duration_since(saved.confirmed_at);
    Resolved {
        version: saved.version,
        endpoints: held::sorted(saved.endpoints),
        stale_members: Vec::new(),
        problem: None,
        confirmation: Confirmation::Past(Age {
            then: Duration::try_from(age).unwrap_or_default(),
            at: Instant::now(),
        }),
        is_from_service: false,
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
