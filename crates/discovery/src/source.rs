//! What EndpointSets name as their sources: federated sets of the host and Services of members, as far as they say whose pods
//! these are, and where the pods are believed to be gone.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use fedrs_api::{ClusterState, ObjectKey, SetKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use reflector::{
    Versioned,
    partial::{Text, for_each_item, name, null_as_default},
};
use serde::{Deserialize, Deserializer};

use crate::{
    balancer::LoadBalancer,
    pod::{PortNames, add_port, addresses},
    services::{Service, ServiceKey},
};

/// What endpoints need of a federated set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Source {
    pub(crate) selector: LabelSelector,
    /// Clusters that the controller of the set believes to be gone: replicas run elsewhere in place of those that they had.
    pub(crate) lost: BTreeSet<Arc<str>>,
}

/// The fields of a federated set that endpoints need.
#[derive(Debug, Deserialize)]
pub(crate) struct SourceObject {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: Spec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(deserialize_with = "name")]
    namespace: Box<str>,
    #[serde(deserialize_with = "name")]
    name: Box<str>,
    #[serde(deserialize_with = "name")]
    resource_version: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    #[serde(default, deserialize_with = "null_as_default")]
    selector: LabelSelector,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default, rename = "clusters", deserialize_with = "lost_clusters")]
    lost: BTreeSet<Arc<str>>,
}

/// The names of those that are lost. A state that is not known, of a later version, is another one.
fn lost_clusters<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeSet<Arc<str>>, D::Error> {
    #[derive(Deserialize)]
    struct Cluster<'a> {
        #[serde(borrow)]
        name: Text<'a>,
        #[serde(borrow)]
        state: Option<Text<'a>>,
    }
    let mut lost = BTreeSet::new();
    for_each_item(deserializer, |cluster: Cluster<'_>| {
        if (cluster.state).is_some_and(|state| *state.0 == *ClusterState::Lost.as_str()) {
            lost.insert(Arc::from(&*cluster.name.0));
        }
    })?;
    Ok(lost)
}

/// The fields of a Service that endpoints need.
#[derive(Debug, Deserialize)]
pub(crate) struct ServiceObject {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: ServiceSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: ServiceStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServiceSpec {
    #[serde(deserialize_with = "null_as_default")]
    r#type: String,
    #[serde(deserialize_with = "null_as_default")]
    selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "named_ports")]
    ports: PortNames,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceStatus {
    #[serde(deserialize_with = "null_as_default")]
    load_balancer: LoadBalancerStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LoadBalancerStatus {
    /// Some load balancers have a host name, and no address.
    #[serde(deserialize_with = "addresses")]
    ingress: (Option<Ipv4Addr>, Option<Ipv6Addr>),
}

fn named_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PortNames, D::Error> {
    #[derive(Deserialize)]
    struct Port<'a> {
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        port: i64,
    }
    let mut names = PortNames::new();
    for_each_item(deserializer, |port: Port<'_>| {
        add_port(&mut names, port.name, port.port);
    })?;
    Ok(names)
}

impl Versioned for ServiceObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl ServiceObject {
    pub(crate) fn key(&self) -> ServiceKey {
        ServiceKey::new(&*self.metadata.namespace, &*self.metadata.name)
    }

    /// What it says of its endpoints; `None` if others say which it has.
    pub(crate) fn into_service(self) -> Option<Service> {
        let ServiceSpec {
            r#type,
            selector,
            ports,
        } = self.spec;
        let selects = !selector.is_empty() && r#type != "ExternalName";
        let (v4, v6) = self.status.load_balancer.ingress;
        let is_balanced = r#type == "LoadBalancer" && (v4.is_some() || v6.is_some());
        selects.then(|| Service {
            selector: LabelSelector {
                match_labels: Some(selector),
                ..LabelSelector::default()
            },
            balancer: is_balanced.then_some(LoadBalancer { v4, v6, ports }),
        })
    }
}

impl Versioned for SourceObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl SourceObject {
    pub(crate) fn key(&self, kind: SetKind) -> ObjectKey {
        let namespace: Arc<str> = (&*self.metadata.namespace).into();
        ObjectKey::of_kind(kind, namespace, &*self.metadata.name)
    }

    pub(crate) fn into_source(self) -> Source {
        Source {
            selector: self.spec.selector,
            lost: self.status.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lost(status: &Value) -> Vec<String> {
        let object = json!({
            "metadata": { "namespace": "shop", "name": "web", "resourceVersion": "1" },
            "spec": { "selector": { "matchLabels": { "app": "web" } } },
            "status": status,
        });
        let object: SourceObject = serde_json::from_str(&object.to_string()).unwrap();
        let lost = object.into_source().lost;
        lost.iter().map(|name| (**name).to_owned()).collect()
    }

    #[test]
    fn d2_the_status_of_a_set_says_where_it_is_lost() {
        let cluster = |name: &str, state: Value| json!({ "name": name, "state": state });
        for (status, expected) in [
            (Value::Null, &[][..]),
            (json!({ "clusters": null }), &[]),
            (
                json!({ "clusters": [cluster("a", "Eligible".into())] }),
                &[],
            ),
            (
                json!({ "clusters": [cluster("a", Value::Null), { "name": "b" }] }),
                &[],
            ),
            (
                json!({ "clusters": [cluster("a", "Unknown".into()), cluster("b", "Lost".into())] }),
                &["b"],
            ),
            (
                json!({ "clusters": [cluster("a", "OfALaterVersion".into())] }),
                &[],
            ),
        ] {
            assert_eq!(lost(&status), expected, "{status}");
        }
    }
}
