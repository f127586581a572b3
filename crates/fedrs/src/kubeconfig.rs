//! Kubeconfigs as users give them: a file or the usual places, and one context of it. Everything kube supports.

use std::path::PathBuf;

use anyhow::Context;
use kube::{
    Config,
    config::{Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// Which context of which kubeconfig.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// The file; without one $KUBECONFIG, or ~/.kube/config.
    pub(crate) file: Option<PathBuf>,
    /// The context; without one the current context.
    pub(crate) context: Option<String>,
}

impl Source {
    /// Reads it.
    pub(crate) fn read(&self) -> anyhow::Result<Kubeconfig> {
        match &self.file {
            Some(path) => Kubeconfig::read_from(path).with_context(|| {
                format!("{} is not a kubeconfig that can be used", path.display())
            }),
            None => Kubeconfig::read().context("no kubeconfig that can be used"),
        }
    }

    /// How to reach the cluster of the context in `kubeconfig`.
    pub(crate) async fn config(&self, kubeconfig: Kubeconfig) -> anyhow::Result<Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .with_context(|| self.to_string())
    }

    /// The cluster of the context in `kubeconfig`.
    pub(crate) fn cluster(&self, kubeconfig: &Kubeconfig) -> anyhow::Result<Cluster> {
        cluster_of(kubeconfig, self.context.as_deref()).with_context(|| self.to_string())
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.file {
            Some(path) => write!(f, "{}", path.display()),
            None => f.write_str("the kubeconfig"),
        }
    }
}

/// The cluster of a context, or of the current one.
fn cluster_of(kubeconfig: &Kubeconfig, context: Option<&str>) -> Result<Cluster, KubeconfigError> {
    let context = context
        .or(kubeconfig.current_context.as_deref())
        .ok_or(KubeconfigError::CurrentContextNotSet)?;
    let contexts = kubeconfig.contexts.iter();
    let name = contexts
        .filter(|it| it.name == context)
        .find_map(|it| it.context.as_ref())
        .map(|it| &it.cluster)
        .ok_or_else(|| KubeconfigError::LoadContext(context.to_owned()))?;
    let clusters = kubeconfig.clusters.iter();
    clusters
        .filter(|it| it.name == *name)
        .find_map(|it| it.cluster.clone())
        .ok_or_else(|| KubeconfigError::LoadClusterOfContext(name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "
current-context: one
contexts:
- {name: one, context: {cluster: first, user: someone}}
- {name: two, context: {cluster: second, user: someone}}
- {name: lost, context: {cluster: nowhere, user: someone}}
clusters:
- {name: first, cluster: {server: 'https://first'}}
- {name: second, cluster: {server: 'https://second'}}
";

    #[test]
    fn the_cluster_is_that_of_the_context() {
        let kubeconfig = Kubeconfig::from_yaml(TWO).unwrap();
        let server = |context| cluster_of(&kubeconfig, context).unwrap().server.unwrap();
        assert_eq!(server(None), "https://first");
        assert_eq!(server(Some("two")), "https://second");
        for wrong in ["lost", "unknown"] {
            assert!(cluster_of(&kubeconfig, Some(wrong)).is_err(), "{wrong}");
        }
        let empty = Kubeconfig::from_yaml("contexts: []").unwrap();
        assert!(cluster_of(&empty, None).is_err());
    }
}
