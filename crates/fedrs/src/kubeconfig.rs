//! Kubeconfigs as users give them: a file or the usual places, and one context of it. Everything kube supports.

use std::path::PathBuf;

use anyhow::anyhow;
use cluster_informer::chain;
use federation_controller::members::kubeconfig;
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
        let read = match &self.file {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        read.map_err(|error| self.cannot_be_used(&words(&error)))
    }

    /// How to reach the cluster of the context in `kubeconfig`.
    pub(crate) async fn config(&self, kubeconfig: Kubeconfig) -> anyhow::Result<Config> {
        let cluster = self.cluster(&kubeconfig)?;
        let config = config(kubeconfig, &cluster, self.context.clone()).await;
        config.map_err(|why| self.cannot_be_used(&why))
    }

    /// The cluster of the context in `kubeconfig`.
    pub(crate) fn cluster(&self, kubeconfig: &Kubeconfig) -> anyhow::Result<Cluster> {
        let cluster = cluster_of(kubeconfig, self.context.as_deref());
        cluster.map_err(|error| self.cannot_be_used(&words(&error)))
    }

    fn cannot_be_used(&self, why: &str) -> anyhow::Error {
        let name = match &self.file {
            Some(path) => path.display().to_string(),
            None => "the kubeconfig".to_owned(),
        };
        anyhow!("{name} can't be used: {why}")
    }
}

/// How to reach `cluster`, which is that of `context`, or of the current one. An error is in words.
pub(crate) async fn config(
    kubeconfig: Kubeconfig,
    cluster: &Cluster,
    context: Option<String>,
) -> Result<Config, String> {
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| words(&error))?;
    let server = cluster.server.as_deref().unwrap_or_default();
    let proxy = kubeconfig::proxy(cluster.proxy_url.as_deref(), server);
    config.proxy_url = proxy.map_err(|error| error.to_string())?;
    Ok(config)
}

/// In our words: a parser's may quote what it read, and that may be a token.
fn words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!(
                "it is no kubeconfig: line {}, column {}",
                at.line(),
                at.column()
            ),
            None => "it is no kubeconfig".to_owned(),
        },
        error => chain(error),
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
