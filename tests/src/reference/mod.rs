//! Compares embedded clusters with a reference: the same requests are sent to a real Kubernetes cluster and to an embedded
//! one, and the responses are compared.
//!
//! ```text
//! RequestScript --runner--> real control plane --records--> normalize --.
//!      \----------runner--> embedded cluster ---records--> normalize ---+--compare--> unexpected differences
//! ```

pub mod cluster_pair;
pub mod compare;
pub mod harness;
pub mod known_differences;
pub mod kubectl;
pub mod normalize;
pub mod runner;
pub mod script;
