//! What discovery answers, compared with what was true of each pod (D1 to D3).
//!
//! ```text
//! committed changes of all clusters --> Truth: each pod, and each source, over time --.
//! faults, restarts, lists of discovery --> Currency: how old may what it knows be? ---+--an answer--> Violation?
//! ```
//!
//! One rule covers all: what is published of a pod was true of it at a time as old as what is known of its cluster may be.

mod answers;
mod currency;
mod truth;

pub(crate) use answers::{Answer, AnswerOfSet, Answers};
pub(crate) use currency::{Hindrance, SNAPSHOT_INTERVAL};
pub(crate) use truth::Serves;
