//! Compares embedded clusters with a reference: the same requests are sent to a real Kubernetes cluster and to an embedded
//! one, and the responses are compared.
//!
//! ```text
//! RequestScript --runner--> real control plane --records--> normalize --.
//!      \----------runner--> embedded cluster ---records--> normalize ---+--compare--> unexpected differences
//! ```

pub(crate) mod cluster_pair;
pub(crate) mod compare;
pub(crate) mod known_differences;
pub(crate) mod normalize;
pub(crate) mod runner;
pub(crate) mod script;
