//! Snapshots on disk: what a replica last knew, for its next start.
//!
//! ```text
//! start: files --decoded--> Loaded --> State, stale since they were last current; the first lists replace it
//! then:  State --shared pods--> Kept --encoded--> file.tmp --fsync, rename--> file
//! ```
//!
//! One file for the host, and one for each member. A file that is lost, damaged or foreign is as none: answers wait for a
//! list instead. Nothing here ends the service, or holds up its watches for longer than it takes to copy pointers.

mod bytes;
mod contents;
mod directory;
mod file;
mod writer;

pub use bytes::SnapshotBytes;
pub use directory::SnapshotDirectory;
pub use writer::write_snapshots;
