//! What each change sends, by the kind of the set, and what it does in an embedded cluster.

mod deployments;
mod races;
mod rejections;
mod requests;
mod world;
