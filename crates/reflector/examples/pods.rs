//! Prints the pods of the current kubeconfig context as they come and go.
//!
//! ```console
//! $ cargo run -p reflector --example pods
//! ```

use kube::{Client, Config};
use reflector::{Collection, Error, EventHandler, InvalidObject, Reflector, Versioned};
use serde::Deserialize;

/// The fields of a pod that are printed.
#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    resource_version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

impl Versioned for Pod {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

struct Printer;

impl EventHandler<Pod> for Printer {
    fn on_init(&mut self) {
        println!("listing");
    }

    fn on_apply(&mut self, pod: Pod) {
        let Metadata {
            namespace, name, ..
        } = pod.metadata;
        println!("{namespace}/{name} {}", pod.status.phase);
    }

    fn on_delete(&mut self, pod: Pod) {
        println!("{}/{} deleted", pod.metadata.namespace, pod.metadata.name);
    }

    fn on_init_done(&mut self, resource_version: &str) {
        println!("watching from {resource_version}");
    }

    fn on_error(&mut self, error: &Error) {
        eprintln!("{error}");
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        eprintln!("{object}");
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut config = Config::infer().await?;
    config.default_retry = false;
    let client = Client::try_from(config)?;
    let reflector = Reflector::new(client, Collection::all("/api/v1/pods"));
    reflector.run::<Pod, _>(Printer).await;
    Ok(())
}
