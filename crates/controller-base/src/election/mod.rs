//! Leader election by a Lease on the host, as client-go does it, and a fence around what a leader sends.
//!
//! ```text
//! standby  every retryPeriod: GET Lease --step()--> follow, or create / take it
//!              | won
//!              v
//! term     every retryPeriod: PUT renewTime ------> Fence: open until the start of that PUT + renewDeadline
//!              | not renewed in time, or another's: fence closed, work cancelled and waited for --> standby
//!              '-- the work has ended: fence closed, Lease released --> a successor takes over at once
//! ```
//!
//! Times of two machines are never compared: a standby counts by its own clock, from when it last saw the Lease change,
//! and the leader by its own, from before it sent the renewal that others see. Others take over no earlier than
//! `leaseDuration` after that; the difference, `leaseDuration - renewDeadline`, is for requests in flight and for clocks
//! that run at different speeds.
//!
//! What a fence can't do: a request that was handed to the kernel before the process was stopped may arrive later, and the
//! clock used (`CLOCK_MONOTONIC`) continues while a process is stopped, but not while the whole machine is suspended. Both
//! are caught by the uid and the resourceVersion that each write carries: it loses against any change since.

mod config;
mod elector;
mod fence;
mod lease;
mod metrics;
mod step;

pub use config::LeaderElectionConfig;
pub use elector::{Elector, LeaderElectorConfig, LeaderState, Term};
pub use fence::{Fence, TermOver};
pub use metrics::ElectionMetrics;
