//! The file of a set: its last good answer, with a checksum. Pure.
//!
//! ```text
//! sha256:64 HEX DIGITS OF ALL THAT FOLLOWS THIS LINE
//! {"format":1,"set":"NAMESPACE/NAME","version":N,"confirmedAt":"2026-01-01T00:00:00Z","endpoints":[...]}
//! ```
//!
//! Clients in other languages read and write the same files.

use std::fmt::Write;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{endpoint::Endpoint, name::SetName};

/// The only format so far.
const FORMAT: u32 = 1;
const PREFIX: &[u8] = b"sha256:";
/// Before the JSON: the prefix, the digits, the end of the line.
const HEADER: usize = PREFIX.len() + 64 + 1;

/// An answer in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Saved<E = Vec<Endpoint>> {
    format: u32,
    set: String,
    pub(crate) version: u64,
    /// When the service last said that the answer is right. Whole seconds.
    pub(crate) confirmed_at: Timestamp,
    pub(crate) endpoints: E,
}

/// Why the content of a file is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidFile {
    #[error("it does not begin with a checksum")]
    NoChecksum,
    #[error("its content does not have its checksum")]
    Checksum,
    #[error("its content is not as expected: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it has the format {0}, which this version does not know")]
    Format(u32),
    #[error("it is of the set {0}")]
    Set(String),
}

impl<E: Serialize> Saved<E> {
    pub(crate) fn new(
        set: &SetName,
        (version, endpoints): (u64, E),
        confirmed_at: Timestamp,
    ) -> Self {
        let seconds = Timestamp::from_second(confirmed_at.as_second());
        Self {
            format: FORMAT,
            set: set.to_string(),
            version,
            confirmed_at: seconds.expect("a second of a timestamp is one"),
            endpoints,
        }
    }

    /// The content of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(self).expect("the answer has only keys that are texts");
        let mut content = [PREFIX, digest(&json).as_bytes(), b"\n"].concat();
        content.append(&mut json);
        content
    }
}

impl Saved {
    /// The answer for `set` in the content of a file.
    pub(crate) fn decode(set: &SetName, content: &[u8]) -> Result<Self, InvalidFile> {
        let (header, json) = content
            .split_at_checked(HEADER)
            .ok_or(InvalidFile::NoChecksum)?;
        let expected = header
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix(b"\n"));
        let expected = expected.ok_or(InvalidFile::NoChecksum)?;
        if digest(json).as_bytes() != expected {
            return Err(InvalidFile::Checksum);
        }
        let Format { format } = serde_json::from_slice(json)?;
        if format != FORMAT {
            return Err(InvalidFile::Format(format));
        }
        let saved: Self = serde_json::from_slice(json)?;
        if saved.set != set.to_string() {
            return Err(InvalidFile::Set(saved.set));
        }
        Ok(saved)
    }
}

/// The field that says how to read the others.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// SHA-256 as lower hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        write!(digits, "{byte:02x}").expect("a text takes all that is written to it");
    }
    digits
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
