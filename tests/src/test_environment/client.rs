//! Clients from kubeconfigs.

use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
};

/// A client of the cluster that a kubeconfig's current context selects.
pub(super) async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .expect("a kubeconfig that can be used");
    config.default_retry = false;
    Client::try_from(config).expect("a client can be made")
}
