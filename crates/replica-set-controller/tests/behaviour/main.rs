//! What a set does over time, in a model of a cluster.

mod interleavings;
mod model;
mod timeline;
