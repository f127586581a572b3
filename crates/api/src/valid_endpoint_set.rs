//! A valid EndpointSet.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString};

use crate::{
    EndpointAddresses, FieldError, IncludedPods,
    dns::{IS_NO_LABEL, is_label, is_label_key},
    endpoint_set::{
        EndpointPort, EndpointSetSpec, EndpointSource, MAX_LABELS, MAX_PORTS, NEEDS_SERVICE,
    },
    field::Errors,
    object_key::SetKind,
    selector,
};

/// An EndpointSet whose fields are valid.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidEndpointSet {
    /// Whose pods it has.
    pub source: ValidEndpointSource,
    /// What the endpoints are: load balancers only with a Service as the source.
    pub addresses: EndpointAddresses,
    /// The ports of each endpoint, by name.
    pub ports: Vec<NamedPort>,
    /// Which of the pods it has.
    pub include: IncludedPods,
    /// Whether pods that are not ready count as ready.
    pub publish_not_ready: bool,
    /// The keys of the labels that travel along, in order.
    pub labels: BTreeSet<String>,
    /// The clusters whose pods it has; all if absent.
    pub clusters: Option<BTreeSet<String>>,
}

/// Whose pods an EndpointSet has.
#[derive(Clone, Debug, PartialEq)]
pub enum ValidEndpointSource {
    /// Those of a federated set of its namespace, by kind and name.
    Set(SetKind, String),
    /// Those that the Service of this name selects, in each member by its own selector.
    Service(String),
    /// Those that match.
    Selector(LabelSelector),
}

/// A port of each endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPort {
    /// The name by which clients know it.
    pub name: Arc<str>,
    /// Which port of the pod it is.
    pub port: PodPort,
}

/// A port of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodPort {
    /// By its number.
    Number(u16),
    /// By the name that a container gives it.
    Name(String),
}

impl ValidEndpointSet {
    /// Validates all fields.
    ///
    /// # Errors
    /// Every error at its field: what an API server with the CRD rejects, and selectors that match nothing or everything.
    pub fn check(spec: &EndpointSetSpec) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let source = check_source(&spec.source, &mut errors);
        let ports = check_ports(&spec.ports, &mut errors);
        let is_short = spec.labels.len() <= MAX_LABELS;
        errors.require(is_short, "spec.labels", "has more than 32 keys");
        for (index, key) in spec.labels.iter().enumerate().take(MAX_LABELS) {
            let field = format!("spec.labels[{index}]");
            errors.require(is_label_key(key), &field, "is not a valid label key");
        }
        for (index, name) in spec.clusters.iter().flatten().enumerate() {
            let field = format!("spec.clusters[{index}]");
            errors.require(is_label(name), &field, IS_NO_LABEL);
        }
        let needs_service = spec.addresses == EndpointAddresses::LoadBalancers;
        let has_service = spec.source.service.is_some();
        let is_possible = !needs_service || has_service;
        errors.require(is_possible, "spec.addresses", NEEDS_SERVICE);
        let Some(source) = source else {
            return Err(errors.into_list());
        };
        errors.or(Self {
            source,
            addresses: spec.addresses,
            ports,
            include: spec.include,
            publish_not_ready: spec.publish_not_ready,
            labels: spec.labels.iter().cloned().collect(),
            clusters: spec
                .clusters
                .as_ref()
                .map(|names| names.iter().cloned().collect()),
        })
    }
}

/// The source, unless it is invalid.
fn check_source(source: &EndpointSource, errors: &mut Errors) -> Option<ValidEndpointSource> {
    const FIELD: &str = "spec.source";
    let EndpointSource {
        federated_replica_set,
        federated_deployment,
        service,
        selector,
    } = source;
    let set = |kind, name: &String| ValidEndpointSource::Set(kind, name.clone());
    let sources = [
        (federated_replica_set.as_ref()).map(|name| set(SetKind::FederatedReplicaSet, name)),
        (federated_deployment.as_ref()).map(|name| set(SetKind::FederatedDeployment, name)),
        (service.clone()).map(ValidEndpointSource::Service),
        (selector.clone()).map(ValidEndpointSource::Selector),
    ];
    let mut sources = sources.into_iter().flatten();
    let (Some(source), None) = (sources.next(), sources.next()) else {
        errors.add(
            FIELD,
            "exactly one of federatedReplicaSet, federatedDeployment, service and selector must be set",
        );
        return None;
    };
    if let ValidEndpointSource::Selector(selector) = &source
        && let Err(found) = selector::check(selector, "spec.source.selector")
    {
        errors.extend(found);
        return None;
    }
    Some(source)
}

/// Whether a container can give a port this name.
fn is_port_name(name: &str) -> bool {
    is_label(name) && name.len() <= 15
}

fn check_ports(ports: &[EndpointPort], errors: &mut Errors) -> Vec<NamedPort> {
    let is_short = ports.len() <= MAX_PORTS;
    errors.require(is_short, "spec.ports", "has more than 100 ports");
    let mut names = BTreeSet::new();
    let mut valid = Vec::new();
    for (index, EndpointPort { name, port }) in ports.iter().enumerate().take(MAX_PORTS) {
        let field = format!("spec.ports[{index}]");
        errors.require(is_label(name), &format!("{field}.name"), IS_NO_LABEL);
        let is_new = names.insert(name);
        errors.require(
            is_new,
            &format!("{field}.name"),
            "is the name of another port",
        );
        let port = match port {
            IntOrString::Int(number) => u16::try_from(*number)
                .ok()
                .filter(|number| *number > 0)
                .map(PodPort::Number),
            IntOrString::String(name) => is_port_name(name).then(|| PodPort::Name(name.clone())),
        };
        match port {
            Some(port) => valid.push(NamedPort {
                name: name.as_str().into(),
                port,
            }),
            None => errors.add(
                format!("{field}.port"),
                "must be a number from 1 to 65535, or the name of a container's port",
            ),
        }
    }
    valid
}
