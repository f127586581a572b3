//! The status of an EndpointSet. Pure.

use controller_base::{field_errors, short_list::short_list};
use fedrs_api::{
    EndpointConditionType as Type, EndpointReason as Reason, EndpointSetCluster, EndpointSetStatus,
    NewCondition, SetKind, ValidEndpointSource, pluralize,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::report::{ClusterReport, Counts, SetReport};

type EndpointCondition = NewCondition<Type, Reason>;

impl SetReport {
    /// The status at `now` of the set with this `generation`, whose endpoints are published with this `version`.
    pub(crate) fn status(
        &self,
        (version, generation): (u64, Option<i64>),
        previous: &EndpointSetStatus,
        now: Timestamp,
    ) -> EndpointSetStatus {
        let conditions = [
            Some(self.accepted()),
            Some(self.ready()),
            self.stale(),
            self.omitted(),
        ];
        let conditions = conditions
            .into_iter()
            .flatten()
            .map(|condition| condition.into_condition(&previous.conditions, generation, now));
        let clusters = self.clusters.iter();
        let shown = clusters.filter(|cluster| {
            cluster.counts != Counts::default()
                || cluster.stale_since.is_some()
                || !cluster.is_known
        });
        EndpointSetStatus {
            observed_generation: generation,
            version: i64::try_from(version).unwrap_or(i64::MAX),
            endpoints: count(self.sum(|counts| counts.endpoints)),
            ready_endpoints: count(self.ready_endpoints()),
            conditions: conditions.collect(),
            clusters: shown.map(ClusterReport::status).collect(),
        }
    }

    fn ready_endpoints(&self) -> usize {
        self.sum(|counts| counts.ready)
    }

    fn sum(&self, of: impl Fn(&Counts) -> usize) -> usize {
        let clusters = self.clusters.iter();
        clusters.map(|cluster| of(&cluster.counts)).sum()
    }

    fn accepted(&self) -> EndpointCondition {
        match &self.set {
            Ok(_) => NewCondition::new(Type::Accepted, true, Reason::Valid, "the spec is valid"),
            Err(errors) => {
                let message = field_errors::message(errors);
                NewCondition::new(Type::Accepted, false, Reason::InvalidSpec, message)
            }
        }
    }

    fn ready(&self) -> EndpointCondition {
        let (reason, message) = self.readiness();
        NewCondition::new(
            Type::Ready,
            reason == Reason::EndpointsReady,
            reason,
            message,
        )
    }

    /// Why new requests find an endpoint with each port, or not.
    fn readiness(&self) -> (Reason, String) {
        let set = match &self.set {
            Ok(set) => set,
            Err(errors) => return (Reason::InvalidSpec, field_errors::message(errors)),
        };
        let unknown = self.clusters.iter().filter(|cluster| !cluster.is_known);
        let unknown = short_list(unknown.map(|cluster| cluster.name.to_string()), ", ");
        let ready = self.ready_endpoints();
        match (&set.source, unknown) {
            (ValidEndpointSource::Set(kind, name), _) if !self.has_source => {
                let field = match kind {
                    SetKind::FederatedReplicaSet => "federatedReplicaSet",
                    SetKind::FederatedDeployment => "federatedDeployment",
                };
                let message = format!("spec.source.{field}: {name:?} does not exist");
                (Reason::SourceNotFound, message)
            }
            (ValidEndpointSource::Service(name), None) if !self.has_source => {
                let message = format!(
                    "spec.source.service: no cluster has a Service {name:?} with a selector"
                );
                (Reason::SourceNotFound, message)
            }
            (source, Some(unknown)) if ready == 0 => {
                let kinds = match source {
                    ValidEndpointSource::Service(_) => "pods or Services",
                    ValidEndpointSource::Set(..) | ValidEndpointSource::Selector(_) => "pods",
                };
                let message = format!("the {kinds} of {unknown} have not been listed yet");
                (Reason::WaitingForMembers, message)
            }
            _ if self.pods == 0 => (Reason::NoPods, "spec.source: has no pods".to_owned()),
            (ValidEndpointSource::Service(name), _) if self.balancers == Some(0) => {
                let message = format!(
                    "spec.addresses: no cluster has a Service {name:?} of type LoadBalancer with an IP address"
                );
                (Reason::LoadBalancerNotFound, message)
            }
            _ if !self.missing_ports.is_empty() => (Reason::PortNotFound, self.missing()),
            _ if ready == 0 && self.sum(|counts| counts.omitted) > 0 => {
                let message = "endpoints are left out, and no other one is ready";
                (Reason::NoReadyEndpoints, message.to_owned())
            }
            _ if ready == 0 => {
                let pods = pluralize(self.pods as u64, "pod");
                (
                    Reason::NoReadyEndpoints,
                    format!("{pods}, of which none is ready"),
                )
            }
            _ => {
                let endpoints = pluralize(ready as u64, "endpoint");
                (Reason::EndpointsReady, format!("{endpoints} ready"))
            }
        }
    }

    fn missing(&self) -> String {
        let port = match self.balancers {
            None => "pod has a container port",
            Some(_) => "Service has a port",
        };
        let missing = self
            .missing_ports
            .iter()
            .map(|(index, name)| format!("spec.ports[{index}].port: no {port} named {name:?}"));
        short_list(missing, "; ").unwrap_or_default()
    }

    fn stale(&self) -> Option<EndpointCondition> {
        let since = |cluster: &ClusterReport| {
            let since = whole_seconds(cluster.stale_since?);
            Some(format!("{} since {since}", cluster.name))
        };
        let stale = short_list(self.clusters.iter().filter_map(since), ", ")?;
        let message = format!("changes may be missing: {stale}");
        Some(NewCondition::new(
            Type::MembersStale,
            true,
            Reason::WatchDown,
            message,
        ))
    }

    /// Which endpoints answers leave out, and why.
    fn omitted(&self) -> Option<EndpointCondition> {
        let omitted = self.clusters.iter().filter_map(|cluster| {
            let omitted = cluster.counts.omitted as u64;
            (omitted > 0).then(|| format!("{} in {}", pluralize(omitted, "endpoint"), cluster.name))
        });
        let omitted = short_list(omitted, ", ")?;
        let message = format!(
            "replicas run in other clusters in place of those in clusters that are lost; answers leave out {omitted}"
        );
        Some(NewCondition::new(
            Type::EndpointsOmitted,
            true,
            Reason::ClusterLost,
            message,
        ))
    }
}

impl ClusterReport {
    fn status(&self) -> EndpointSetCluster {
        EndpointSetCluster {
            name: self.name.to_string(),
            endpoints: count(self.counts.endpoints),
            ready_endpoints: count(self.counts.ready),
            omitted_endpoints: count(self.counts.omitted),
            stale_since: self.stale_since.map(|since| Time(whole_seconds(since))),
            unknown: !self.is_known,
        }
    }
}

/// The host keeps no fractions of seconds.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
