//! Which Kubernetes this is.

/// What the server and the kubelets say they are. The suffix says that it is no build of Kubernetes.
pub(crate) const VERSION: &str = "v1.36.4+sim";
