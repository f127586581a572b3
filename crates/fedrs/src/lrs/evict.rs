//! `fedrs lrs evict`: asks for the eviction of pods (L18).

use clap::{ArgGroup, Args};
use membership::{
    cluster_client::ClusterClient,
    eviction::{EvictionRequest, request_of_node, request_of_pod},
};

use crate::{
    output::{print_error, print_line},
    set_name::{NAME_OF_KIND, parse_of_kind},
};

/// What may be before the name of a pod.
const KINDS: [&str; 3] = ["po", "pod", "pods"];

/// Ask for the eviction of a pod, or of the pods of a node, within the budget
///
/// The controller replaces the pods by ones with other names, before it begins updates. It reads the annotation fedrs.dev/evict of
/// a pod of a LocalReplicaSet, or the label fedrs.dev/evict of a node, for the pods of all LocalReplicaSets and native ReplicaSets on it. The command does
/// not wait.
#[derive(Args)]
#[command(
    group = ArgGroup::new("evicted").required(true),
    after_help = "Examples:
  # Replace the pod web-0a1b2
  fedrs lrs evict web-0a1b2

  # Move all pods of LocalReplicaSets off the node n1
  kubectl cordon n1
  fedrs lrs evict --node n1

  # Pods may stay on the node n1 again
  fedrs lrs evict --node n1 --cancel"
)]
pub(super) struct EvictArgs {
    /// The pod
    #[arg(value_name = NAME_OF_KIND, group = "evicted")]
    pod: Option<String>,
    /// The node whose pods are evicted
    #[arg(long, value_name = "NODE", group = "evicted")]
    node: Option<String>,
    /// Cancel the request. An eviction that has begun is completed
    #[arg(long)]
    cancel: bool,
}

pub(super) async fn run(
    cluster: &ClusterClient,
    namespace: Option<&str>,
    args: &EvictArgs,
) -> anyhow::Result<()> {
    let (request, done) = if args.cancel {
        (EvictionRequest::Cancel, "eviction canceled")
    } else {
        (EvictionRequest::Evict, "eviction requested")
    };
    if let Some(pod) = &args.pod {
        let (namespace, name) = parse_of_kind(pod, namespace, &KINDS)?;
        let namespace = namespace.unwrap_or(cluster.namespace());
        request_of_pod(cluster, (namespace, name), request).await?;
        print_line(format_args!("pod/{name} {done}"));
    }
    if let Some(node) = &args.node {
        let is_cordoned = request_of_node(cluster, node, request).await?;
        print_line(format_args!("node/{node} {done}"));
        if !is_cordoned && !args.cancel {
            let hint = "is not cordoned: new pods may be scheduled to it, and are evicted again";
            print_error(format_args!(
                "node/{node} {hint}: run `kubectl cordon {node}`"
            ));
        }
    }
    Ok(())
}
