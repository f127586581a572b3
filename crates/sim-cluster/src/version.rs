//! The version of Kubernetes.

/// The version of the server and the kubelets. The suffix shows that this is no build of Kubernetes.
pub(crate) const VERSION: &str = "v1.36.4+sim";
