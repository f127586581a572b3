//! The two protocols: the state of the world, and what has changed.

use xds_proto::{
    envoy::service::discovery::v3::{
        DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
        Resource as Message,
    },
    google::rpc::Status as Rejection,
};

use crate::xds::{
    client::{Ask, Client, Response, Wants},
    resource::{Resource, ResourceType},
};

/// How requests and responses are written.
pub(super) trait Protocol {
    type Request: Send + 'static;
    type Response: Send + 'static;

    /// Whether responses of all types say what is gone, and not only those that have all resources.
    const SAYS_REMOVED: bool;

    /// What is asked for; `None` if it is a type that there are no resources of: it never gets a response.
    fn ask(request: Self::Request) -> Option<Ask>;

    /// The message for a response to `client`.
    fn response(client: &Client, response: Response) -> Self::Response;
}

/// Each response has the state of the world: of some types all that there is, of the others what has changed.
#[derive(Debug)]
pub(super) enum StateOfTheWorld {}

/// Each response has what has changed.
#[derive(Debug)]
pub(super) enum Delta {}

/// Why a client does not use a response, in one line.
fn text(rejection: Option<Rejection>) -> Option<String> {
    rejection.map(|rejection| reflector::printable(&rejection.message))
}

impl Protocol for StateOfTheWorld {
    type Request = DiscoveryRequest;
    type Response = DiscoveryResponse;

    const SAYS_REMOVED: bool = false;

    fn ask(request: DiscoveryRequest) -> Option<Ask> {
        Some(Ask {
            kind: ResourceType::of(&request.type_url)?,
            node: request.node.map(|node| node.id),
            nonce: request.response_nonce,
            rejection: text(request.error_detail),
            wants: Wants::These(request.resource_names.into_iter().collect()),
        })
    }

    fn response(client: &Client, response: Response) -> DiscoveryResponse {
        let Response { kind, nonce, news } = response;
        let latest = news.updated.iter().map(|resource| resource.version).max();
        let subscription = client.subscription(kind);
        let resources: Vec<_> = if kind.is_whole() {
            let held = subscription.into_iter();
            let held = held.flat_map(|subscription| subscription.held(kind));
            held.map(|resource| resource.encode()).collect()
        } else {
            news.updated.iter().map(Resource::encode).collect()
        };
        // What has all resources of a type changes with each of them.
        let version = latest.filter(|_| !kind.is_whole()).unwrap_or(nonce);
        DiscoveryResponse {
            version_info: version.to_string(),
            resources,
            type_url: kind.type_url().to_owned(),
            nonce: nonce.to_string(),
        }
    }
}

impl Protocol for Delta {
    type Request = DeltaDiscoveryRequest;
    type Response = DeltaDiscoveryResponse;

    const SAYS_REMOVED: bool = true;

    fn ask(request: DeltaDiscoveryRequest) -> Option<Ask> {
        Some(Ask {
            kind: ResourceType::of(&request.type_url)?,
            node: request.node.map(|node| node.id),
            nonce: request.response_nonce,
            rejection: text(request.error_detail),
            wants: Wants::Changes {
                subscribe: request.resource_names_subscribe,
                unsubscribe: request.resource_names_unsubscribe,
                has: request.initial_resource_versions,
            },
        })
    }

    fn response(_: &Client, response: Response) -> DeltaDiscoveryResponse {
        let Response { kind, nonce, news } = response;
        let latest = news.updated.iter().map(|resource| resource.version).max();
        let message = |resource: &Resource| Message {
            version: resource.version.to_string(),
            resource: Some(resource.encode()),
            name: resource.name.clone(),
        };
        DeltaDiscoveryResponse {
            system_version_info: latest.unwrap_or(nonce).to_string(),
            resources: news.updated.iter().map(message).collect(),
            type_url: kind.type_url().to_owned(),
            nonce: nonce.to_string(),
            removed_resources: news.removed,
        }
    }
}
