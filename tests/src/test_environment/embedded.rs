//! An environment of embedded clusters, with the controller in this process, on paused time.

use std::collections::{BTreeMap, BTreeSet};

use control_plane::ProxyMode;
use kube::Client;

use super::spec::TestEnvironmentSpec;
use crate::{SimFederation, SimFederationSpec};

/// A federation of embedded clusters.
pub(super) struct Embedded {
    federation: SimFederation,
    /// The members that the controller knows.
    known: BTreeSet<String>,
}

impl Embedded {
    pub(super) async fn start(spec: &TestEnvironmentSpec) -> Self {
        let federation = SimFederation::start_clusters(SimFederationSpec {
            config: spec.config.clone(),
            ..SimFederationSpec::default()
        });
        let federation = federation.await;
        Self {
            federation,
            known: spec
                .members
                .iter()
                .map(|member| (*member).to_owned())
                .collect(),
        }
    }

    pub(super) fn federation(&self) -> &SimFederation {
        &self.federation
    }

    pub(super) fn clients(&self) -> (Client, BTreeMap<String, Client>) {
        let direct =
            |cluster: &sim_cluster::SimCluster| Client::new(cluster.direct_service(), "default");
        let members = self.federation.member_names().into_iter();
        let members = members.map(|name| {
            let client = direct(self.federation.member(&name));
            (name, client)
        });
        (direct(self.federation.host()), members.collect())
    }

    pub(super) async fn start_controller(&mut self) {
        self.federation
            .start_controller_of(self.known.iter().map(String::as_str), None)
            .await;
    }

    pub(super) async fn kill_controller(&mut self) {
        self.federation.kill_controller().await;
    }

    pub(super) async fn add_member(&mut self, member: &str) {
        self.known.insert(member.to_owned());
        self.federation.add_member(member).await;
    }

    pub(super) async fn remove_member(&mut self, member: &str) {
        self.known.remove(member);
        self.federation.remove_member(member).await;
    }

    pub(super) fn set_network(&mut self, member: &str, mode: ProxyMode) {
        let faults = self.federation.member(member).faults();
        match mode {
            ProxyMode::Forward(latency) => {
                faults.set_unreachable(false);
                faults.set_latency(latency);
            }
            ProxyMode::Blackhole
            | ProxyMode::BlackholeRequests
            | ProxyMode::BlackholeResponses
            | ProxyMode::Reset => faults.set_unreachable(true),
        }
    }

    pub(super) fn hang(&mut self, member: &str, is_hanging: bool) {
        self.federation
            .member(member)
            .faults()
            .set_hanging(is_hanging);
    }

    pub(super) fn lose_node(&mut self, member: &str, number: u32, is_lost: bool) {
        let cluster = self.federation.member(member);
        let node = format!("{member}-node-{number}");
        if is_lost {
            cluster.fail_node(&node);
        } else {
            cluster.recover_node(&node);
        }
    }

    pub(super) fn compact_history(&mut self, member: &str) {
        let faults = self.federation.member(member).faults();
        faults.compact();
        faults.cut_watches();
    }
}
