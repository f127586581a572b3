//! `FRS_TO_CHECK` and the work queue behind it (F21 to F25), over any key.
//!
//! ```text
//! add(key, delay) --> CheckQueue --due--> WorkQueue --next()--> one worker per key
//!   the shorter        by due time,        dirty / queue /        dropping the Work
//!   delay wins         then by key         processing sets        makes room for the next
//! ```
//!
//! Keys only, no payloads: whoever works on a key reads the newest state by itself, so merging two additions
//! loses nothing. Knows neither what a key stands for nor how long a check takes.

mod check_queue;
mod metrics;
mod work_queue;

pub use check_queue::{CheckQueue, MAX_DELAY};
pub use metrics::{Ages, CheckQueueMetrics, WorkQueueMetrics};
pub use work_queue::{Work, WorkQueue};
