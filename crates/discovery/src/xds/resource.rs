//! Resources: what a port of an EndpointSet is as listener, route, cluster and endpoints.
//!
//! ```text
//! Listener (what a client resolves) --> RouteConfiguration --> Cluster --> ClusterLoadAssignment (the endpoints)
//! ```
//!
//! All have the name that the client resolves. The first three follow from it; only the endpoints change.

use std::sync::Arc;

use prost::Message;
use prost_types::Any;
use xds_proto::envoy::{
    config::{
        cluster::v3 as cluster, core::v3 as core, listener::v3 as listener, route::v3 as route,
    },
    extensions::filters::{
        http::router::v3::Router, network::http_connection_manager::v3 as manager,
    },
};

use super::endpoints::load_assignment;
use crate::snapshot::EndpointSnapshot;

/// A type of resources, in the order in which they are sent: what others refer to comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ResourceType {
    Cluster,
    Endpoints,
    Listener,
    Route,
}

impl ResourceType {
    pub(super) const ALL: [Self; 4] = [Self::Cluster, Self::Endpoints, Self::Listener, Self::Route];

    /// `None` if there are none of that type.
    pub(super) fn of(type_url: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.type_url() == type_url)
    }

    /// The name of its messages.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Endpoints => "ClusterLoadAssignment",
            Self::Listener => "Listener",
            Self::Route => "RouteConfiguration",
        }
    }

    pub(super) const fn type_url(self) -> &'static str {
        match self {
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Endpoints => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Route => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        }
    }

    /// Whether a response with the state of the world has all resources, so that those that it lacks are gone; and whether a
    /// client may ask for all that there are.
    pub(super) const fn is_whole(self) -> bool {
        matches!(self, Self::Cluster | Self::Listener)
    }
}

/// A resource at one version.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) name: String,
    pub(super) version: u64,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    OfName(ResourceType),
    Endpoints(Arc<EndpointSnapshot>, String),
}

/// The version of what follows from the name.
const OF_NAME: u64 = 1;

impl Resource {
    /// A resource that follows from its name: any but endpoints.
    pub(super) fn of_name(kind: ResourceType, name: String) -> Self {
        Self {
            name,
            version: OF_NAME,
            body: Body::OfName(kind),
        }
    }

    /// The endpoints of a port.
    pub(super) fn endpoints(name: String, snapshot: Arc<EndpointSnapshot>, port: &str) -> Self {
        Self {
            name,
            version: snapshot.version,
            body: Body::Endpoints(snapshot, port.to_owned()),
        }
    }

    pub(super) fn encode(&self) -> Any {
        let name = &self.name;
        let (kind, value) = match &self.body {
            Body::Endpoints(snapshot, port) => {
                let endpoints = load_assignment(name, snapshot, port);
                (ResourceType::Endpoints, endpoints.encode_to_vec())
            }
            Body::OfName(kind @ ResourceType::Listener) => (*kind, listener(name).encode_to_vec()),
            Body::OfName(kind @ ResourceType::Route) => (*kind, route(name).encode_to_vec()),
            Body::OfName(_) => (ResourceType::Cluster, cluster(name).encode_to_vec()),
        };
        any(kind.type_url(), value)
    }
}

fn any(type_url: &str, value: Vec<u8>) -> Any {
    Any {
        type_url: type_url.to_owned(),
        value,
    }
}

/// The stream by which the client gets what refers to it.
#[expect(clippy::unnecessary_wraps, reason = "messages are optional fields")]
fn this_stream() -> Option<core::ConfigSource> {
    use core::config_source::ConfigSourceSpecifier::Ads;
    Some(core::ConfigSource {
        resource_api_version: core::ApiVersion::V3.into(),
        config_source_specifier: Some(Ads(core::AggregatedConfigSource {})),
    })
}

fn listener(name: &str) -> listener::Listener {
    const MANAGER: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    const ROUTER: &str = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
    use manager::{http_connection_manager::RouteSpecifier, http_filter::ConfigType};
    let router = manager::HttpFilter {
        name: "router".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(
            ROUTER,
            Router {}.encode_to_vec(),
        ))),
    };
    let manager = manager::HttpConnectionManager {
        http_filters: vec![router],
        route_specifier: Some(RouteSpecifier::Rds(manager::Rds {
            config_source: this_stream(),
            route_config_name: name.to_owned(),
        })),
    };
    listener::Listener {
        name: name.to_owned(),
        api_listener: Some(listener::ApiListener {
            api_listener: Some(any(MANAGER, manager.encode_to_vec())),
        }),
    }
}

fn route(name: &str) -> route::RouteConfiguration {
    use route::{route::Action, route_action::ClusterSpecifier, route_match::PathSpecifier};
    let to_cluster = route::RouteAction {
        cluster_specifier: Some(ClusterSpecifier::Cluster(name.to_owned())),
    };
    let all = route::Route {
        r#match: Some(route::RouteMatch {
            path_specifier: Some(PathSpecifier::Prefix(String::new())),
        }),
        action: Some(Action::Route(to_cluster)),
    };
    route::RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: vec![route::VirtualHost {
            name: name.to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![all],
        }],
    }
}

fn cluster(name: &str) -> cluster::Cluster {
    use cluster::cluster::{
        ClusterDiscoveryType, CommonLbConfig, DiscoveryType, EdsClusterConfig, LbPolicy,
        common_lb_config::{
            LocalityConfigSpecifier::LocalityWeightedLbConfig as ByWeight, LocalityWeightedLbConfig,
        },
    };
    cluster::Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig {
            eds_config: this_stream(),
            service_name: name.to_owned(),
        }),
        lb_policy: LbPolicy::RoundRobin.into(),
        common_lb_config: Some(CommonLbConfig {
            locality_config_specifier: Some(ByWeight(LocalityWeightedLbConfig {})),
        }),
    }
}
