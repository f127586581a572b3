//! Embedded clusters, the controller in this process, paused time.

use std::collections::{BTreeMap, BTreeSet};

use control_plane::ProxyMode;
use kube::Client;

use super::spec::StageSpec;
use crate::{Fleet, FleetSpec};

/// A fleet of embedded clusters.
pub(super) struct Embedded {
    fleet: Fleet,
    /// The members that the controller knows.
    known: BTreeSet<String>,
}

impl Embedded {
    pub(super) async fn start(spec: &StageSpec) -> Self {
        let fleet = Fleet::start_clusters(FleetSpec {
            config: spec.config.clone(),
            ..FleetSpec::default()
        });
        Self {
            fleet: fleet.await,
            known: spec.members.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    pub(super) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    pub(super) fn clients(&self) -> (Client, BTreeMap<String, Client>) {
        let direct = |it: &sim_cluster::SimCluster| Client::new(it.direct_service(), "default");
        let members = self.fleet.member_names().into_iter();
        let members = members.map(|name| {
            let client = direct(self.fleet.member(&name));
            (name, client)
        });
        (direct(self.fleet.host()), members.collect())
    }

    pub(super) async fn start_controller(&mut self) {
        self.fleet
            .start_controller_of(self.known.iter().map(String::as_str), None)
            .await;
    }

    pub(super) async fn kill_controller(&mut self) {
        self.fleet.kill_controller().await;
    }

    pub(super) async fn add_member(&mut self, member: &str) {
        self.known.insert(member.to_owned());
        self.fleet.add_member(member).await;
    }

    pub(super) async fn remove_member(&mut self, member: &str) {
        self.known.remove(member);
        self.fleet.remove_member(member).await;
    }

    pub(super) fn set_link(&mut self, member: &str, mode: ProxyMode) {
        let faults = self.fleet.member(member).faults();
        match mode {
            ProxyMode::Forward(latency) => {
                faults.set_unreachable(false);
                faults.set_latency(latency);
            }
            ProxyMode::Blackhole | ProxyMode::Reset => faults.set_unreachable(true),
        }
    }

    pub(super) fn hang(&mut self, member: &str, is_hanging: bool) {
        self.fleet.member(member).faults().set_hanging(is_hanging);
    }

    pub(super) fn lose_node(&mut self, member: &str, number: u32, is_lost: bool) {
        let cluster = self.fleet.member(member);
        let node = format!("{member}-node-{number}");
        if is_lost {
            cluster.fail_node(&node);
        } else {
            cluster.recover_node(&node);
        }
    }

    pub(super) fn forget_history(&mut self, member: &str) {
        let faults = self.fleet.member(member).faults();
        faults.compact();
        faults.cut_watches();
    }
}
