//! `FRS_TO_CHECK` and the work queue behind it (F21 to F25), over any key. The names are those of client-go's `workqueue`.
//!
//! ```text
//! add_after(key, delay) --> DelayingQueue --due--> WorkQueue --get()--> one worker per key
//!   the shorter               by due time,           dirty / queue /      dropping the WorkItem
//!   delay wins                then by key            processing sets      marks it as done
//! ```
//!
//! Both hold keys and no state: a worker reads the newest state of its key by itself, so that merging two additions loses
//! nothing. The work queue keeps with each key the kind of work that it needs. Neither queue knows the meaning of a key, or
//! how long a check takes.

mod delaying_queue;
mod metrics;
mod work_queue;

#[cfg(test)]
mod one_worker_per_key_tests;

pub use delaying_queue::DelayingQueue;
pub use metrics::{DelayingQueueMetrics, OldestAge, WorkQueueMetrics};
pub use work_queue::{WorkItem, WorkQueue};
