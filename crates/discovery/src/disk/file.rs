//! One file: a first line with its format and hash, and what it has.
//!
//! ```text
//! fedrs-discovery-snapshot 1 SHA-256\n
//! {"cluster": ...}
//! ```

use std::{
    fmt::Write as _,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use sha2::{Digest, Sha256};

/// The beginning of each file. Another format has another number.
const FORMAT: &str = "fedrs-discovery-snapshot 1 ";
/// The longest first line: what follows the format is a hash in hexadecimal digits.
const HEADER_LENGTH: usize = FORMAT.len() + 64 + 1;
/// The most bytes of a file: 5,000,000 pods. A larger one is neither written nor read.
const MAX_BYTES: usize = 512 << 20;
/// How all file names end.
const SUFFIX: &str = ".snapshot";
/// The longest name of a member that is part of a file name; for a longer one its hash is.
const MAX_NAME: usize = 200;

/// The permissions of all but the owner.
const OTHERS: u32 = 0o077;

/// The name of the file of the host.
pub(super) const HOST: &str = "host.snapshot";

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("failed to {0}: {1}")]
    Io(&'static str, #[source] io::Error),
    #[error("larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("not a snapshot of a format that this version reads")]
    Format,
    #[error("damaged: the content does not have the hash that the file begins with")]
    Hash,
    #[error("invalid content: {0}")]
    Content(#[from] serde_json::Error),
    #[error("invalid content: {0}")]
    Invalid(&'static str),
    #[error(
        "others than its owner can use the directory: choose one in it that does not exist yet"
    )]
    Shared,
}

/// The name of the file of a member. No two members have the same.
pub(super) fn member_file(member: &str) -> String {
    let mut safe = String::new();
    for byte in member.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => safe.push(char::from(byte)),
            _ => _ = write!(safe, "%{byte:02X}"),
        }
    }
    if safe.len() > MAX_NAME {
        safe = format!("%%{}", hash(member.as_bytes()));
    }
    format!("member-{safe}{SUFFIX}")
}

/// Whether a file of this name may be that of a member.
pub(super) fn is_member_file(name: &str) -> bool {
    name.starts_with("member-") && name.ends_with(SUFFIX)
}

/// The SHA-256 of `bytes`, in hexadecimal digits.
fn hash(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// The bytes of a file with this content.
pub(super) fn seal(content: &[u8]) -> Result<Vec<u8>, FileError> {
    if HEADER_LENGTH + content.len() > MAX_BYTES {
        return Err(FileError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(HEADER_LENGTH + content.len());
    bytes.extend_from_slice(FORMAT.as_bytes());
    bytes.extend_from_slice(hash(content).as_bytes());
    bytes.push(b'\n');
    bytes.extend_from_slice(content);
    Ok(bytes)
}

/// The content of a file with these bytes.
pub(super) fn open(bytes: &[u8]) -> Result<&[u8], FileError> {
    let rest = bytes.strip_prefix(FORMAT.as_bytes());
    let rest = rest.ok_or(FileError::Format)?;
    let (header, content) = rest
        .split_at_checked(HEADER_LENGTH - FORMAT.len())
        .ok_or(FileError::Hash)?;
    let is_whole = header.strip_suffix(b"\n") == Some(hash(content).as_bytes());
    is_whole.then_some(content).ok_or(FileError::Hash)
}

/// Reads a file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| FileError::Io("open it", error))?,
    };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_BYTES {
        return Err(FileError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(length);
    // It may grow meanwhile.
    let read = file.take(MAX_BYTES as u64).read_to_end(&mut bytes);
    read.map_err(|error| FileError::Io("read it", error))?;
    Ok(Some(bytes))
}

/// Puts `bytes` in the place of the file `name`: whoever reads it, also after a crash, finds the old content, or the new one.
pub(super) fn replace(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), FileError> {
    let unfinished = directory.join(format!("{name}.tmp"));
    let written = write(&unfinished, bytes).and_then(|()| {
        let renamed = fs::rename(&unfinished, directory.join(name));
        renamed.map_err(|error| FileError::Io("rename it", error))
    });
    if written.is_err() {
        // A full disk has its space back. The next one replaces what can't be removed.
        let _ = fs::remove_file(&unfinished);
    }
    written?;
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| FileError::Io("sync its directory", error))
}

/// Writes a new file for its owner, and waits until the disk has it.
fn write(path: &PathBuf, bytes: &[u8]) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(FileError::Io("remove an unfinished one", error));
        }
        _ => {}
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(|error| FileError::Io("create it", error))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| FileError::Io("write it", error))
}

/// Creates the directory, for its owner, unless it exists.
pub(super) fn create_directory(path: &Path) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(path);
    created.map_err(|error| FileError::Io("create the directory", error))
}

/// Makes sure that only this process's user can use the directory: another one could say which endpoints there are. Withdraws
/// the permissions of others.
///
/// # Errors
/// If it is another user's, or does not exist.
pub(super) fn restrict_directory(path: &Path) -> Result<(), FileError> {
    let metadata = fs::metadata(path);
    let metadata = metadata.map_err(|error| FileError::Io("open the directory", error))?;
    let mut permissions = metadata.permissions();
    if metadata.uid() != geteuid().as_raw() {
        return Err(FileError::Shared);
    }
    if permissions.mode() & OTHERS == 0 {
        return Ok(());
    }
    permissions.set_mode(0o700);
    fs::set_permissions(path, permissions).map_err(|_| FileError::Shared)
}
