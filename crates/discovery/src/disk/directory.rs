//! The directory of the snapshots of one replica.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{
    contents::{decode_host, decode_member, encode_host, encode_member},
    file::{
        self, FileError, HOST, create_directory, is_member_file, member_file, restrict_directory,
    },
};
use crate::kept::{KeptHost, KeptMember, LoadedSnapshots};

/// The directory of the snapshots of one replica. No other process may use it.
#[derive(Clone, Debug)]
pub struct SnapshotDirectory(PathBuf);

/// A failure, with its file.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {error}")]
pub(super) struct SnapshotError {
    file: String,
    error: FileError,
}

impl SnapshotDirectory {
    /// The snapshots in `path`, which is created, for its owner only, when there is something to write.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Reads all snapshots. Those that can't be used are ignored, with a warning. Blocks, for a second per 1,000,000 pods.
    #[must_use]
    pub fn load(&self) -> LoadedSnapshots {
        let mut loaded = LoadedSnapshots::default();
        match self.files() {
            Ok(files) => {
                for name in files {
                    if let Err(error) = self.load_file(&name, &mut loaded) {
                        warn(&self.0.join(name), &error);
                    }
                }
            }
            Err(error) => warn(&self.0, &error),
        }
        loaded
    }

    /// The names of the files, in order; none if there is no directory.
    fn files(&self) -> Result<Vec<String>, FileError> {
        match restrict_directory(&self.0) {
            Err(FileError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            restricted => restricted?,
        }
        let entries = fs::read_dir(&self.0);
        let entries = entries.map_err(|error| FileError::Io("list the directory", error))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names
            .filter(|name| name == HOST || is_member_file(name))
            .collect();
        names.sort();
        Ok(names)
    }

    fn load_file(&self, name: &str, loaded: &mut LoadedSnapshots) -> Result<(), FileError> {
        let Some(bytes) = file::read(&self.0.join(name))? else {
            return Ok(());
        };
        let now = Timestamp::now();
        if name == HOST {
            loaded.put_host(decode_host(&bytes, now)?);
            return Ok(());
        }
        let (member, version) = decode_member(&bytes, now, &mut loaded.shared)?;
        if member_file(&member.name) != name {
            return Err(FileError::Invalid("it is of another member"));
        }
        loaded.put_member((member, version));
        Ok(())
    }

    /// Creates the directory, unless it exists and only its owner can use it.
    pub(super) fn prepare(&self) -> Result<(), SnapshotError> {
        let prepared = create_directory(&self.0).and_then(|()| restrict_directory(&self.0));
        prepared.map_err(|error| self.error("", error))
    }

    /// Writes the snapshot of the host.
    pub(super) fn write_host(&self, host: &KeptHost, version: u64) -> Result<(), SnapshotError> {
        let bytes = encode_host(host, version);
        let written = bytes.and_then(|bytes| file::replace(&self.0, HOST, &bytes));
        written.map_err(|error| self.error(HOST, error))
    }

    /// Writes the snapshot of a member.
    pub(super) fn write_member(
        &self,
        member: &KeptMember,
        version: u64,
    ) -> Result<(), SnapshotError> {
        let name = member_file(&member.name);
        let bytes = encode_member(member, version);
        let written = bytes.and_then(|bytes| file::replace(&self.0, &name, &bytes));
        written.map_err(|error| self.error(&name, error))
    }

    fn error(&self, name: &str, error: FileError) -> SnapshotError {
        let file = self.0.join(name).display().to_string();
        SnapshotError { file, error }
    }
}

fn warn(file: &Path, error: &FileError) {
    tracing::warn!(file = %file.display(), %error, "ignored a snapshot: answers wait for a list instead");
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
