//! Answers as messages of gRPC.

use discovery_proto as proto;

use crate::{
    answer::{AnswerEndpoint, StaleMember},
    problem::{Problem, Reason},
    set::SetKey,
    snapshot::{Endpoint, EndpointSnapshot},
};

pub(super) fn set_id(key: &SetKey) -> proto::SetId {
    proto::SetId {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}

/// The endpoint as `snapshot` has it.
pub(super) fn endpoint(endpoint: &Endpoint, snapshot: &EndpointSnapshot) -> proto::Endpoint {
    let AnswerEndpoint {
        zone,
        node,
        addresses,
        ready,
        serving,
        terminating,
        labels,
        ..
    } = AnswerEndpoint::of(endpoint, snapshot);
    let ports = endpoint.ports().iter().map(|port| proto::Port {
        name: port.name.to_string(),
        number: port.number.into(),
    });
    proto::Endpoint {
        key: Some(key_of(endpoint)),
        addresses: addresses.iter().map(ToString::to_string).collect(),
        ports: ports.collect(),
        ready,
        serving,
        terminating,
        zone: zone.unwrap_or_default(),
        node: node.unwrap_or_default(),
        labels: labels.into_iter().collect(),
    }
}

pub(super) fn endpoints(snapshot: &EndpointSnapshot) -> Vec<proto::Endpoint> {
    let endpoints = snapshot.endpoints.iter();
    endpoints.map(|each| endpoint(each, snapshot)).collect()
}

pub(super) fn key_of(endpoint: &Endpoint) -> proto::EndpointKey {
    proto::EndpointKey {
        cluster: endpoint.cluster().to_owned(),
        pod: endpoint.name().to_owned(),
    }
}

pub(super) fn stale_members(stale: Vec<StaleMember>) -> Vec<proto::StaleMember> {
    let message = |StaleMember { name, seconds }| proto::StaleMember {
        cluster: name,
        seconds,
    };
    stale.into_iter().map(message).collect()
}

pub(super) fn problem(problem: &Problem) -> proto::Problem {
    use proto::problem::Reason as R;
    let reason = match problem.reason {
        Reason::NotFound => R::NotFound,
        Reason::Invalid => R::Invalid,
        Reason::Waiting => R::Waiting,
        Reason::Forbidden => R::Forbidden,
    };
    proto::Problem {
        reason: reason.into(),
        message: problem.to_string(),
    }
}

pub(super) fn status(problem: &Problem) -> tonic::Status {
    let code = match problem.reason {
        Reason::NotFound => tonic::Code::NotFound,
        Reason::Invalid => tonic::Code::FailedPrecondition,
        Reason::Waiting => tonic::Code::Unavailable,
        Reason::Forbidden => tonic::Code::PermissionDenied,
    };
    tonic::Status::new(code, problem.to_string())
}
