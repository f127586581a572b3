//! Clusters that outlive a scenario, with the `fedrs` program as the controller.

use std::{collections::BTreeMap, fs, time::Duration};

use control_plane::ProxyMode;
use kube::Client;
use tempfile::TempDir;

use super::{
    StageSpec,
    clusters::{Shared, client},
    program::{self, Program},
};

/// One scenario's use of shared clusters.
pub(super) struct Real {
    pub(super) shared: &'static Shared,
    /// What the controller is given, and its log.
    folder: TempDir,
    controller: Option<Program>,
}

impl Real {
    pub(super) fn new(shared: &'static Shared, spec: &StageSpec) -> Self {
        let folder = TempDir::with_prefix("fedrs-scenario-").expect("a temporary folder");
        fs::create_dir(folder.path().join("members")).expect("a folder can be made");
        fs::write(folder.path().join("host.yaml"), &shared.host).expect("a file can be written");
        let config = serde_json::to_string(&spec.config).expect("plain data");
        fs::write(folder.path().join("controller.yaml"), config).expect("a file can be written");
        let mut real = Self {
            shared,
            folder,
            controller: None,
        };
        for member in &spec.members {
            real.add_member(member);
        }
        real
    }

    pub(super) async fn clients(&self) -> (Client, BTreeMap<String, Client>) {
        let mut members = BTreeMap::new();
        for (name, route) in &self.shared.members {
            members.insert((*name).to_owned(), client(&route.direct).await);
        }
        (client(&self.shared.host).await, members)
    }

    pub(super) fn start_controller(&mut self) {
        assert!(self.controller.is_none(), "one controller at a time");
        self.controller = Some(Program::start(self.folder.path()));
    }

    pub(super) fn kill_controller(&mut self) {
        self.controller = None;
    }

    pub(super) fn add_member(&mut self, member: &str) {
        let kubeconfig = &self.shared.members[member].controlled;
        let file = self.folder.path().join(format!("members/{member}.yaml"));
        fs::write(file, kubeconfig).expect("a file can be written");
    }

    pub(super) fn remove_member(&mut self, member: &str) {
        let file = self.folder.path().join(format!("members/{member}.yaml"));
        fs::remove_file(file).expect("a file can be removed");
    }

    pub(super) fn cut_off(&mut self, member: &str, is_cut_off: bool) {
        let proxy = self.shared.members[member].proxy.as_ref();
        proxy.expect("the kind offers it").set(if is_cut_off {
            ProxyMode::Blackhole
        } else {
            ProxyMode::Pass(Duration::ZERO)
        });
    }

    pub(super) async fn lose_node(&mut self, member: &str, number: u32, is_lost: bool) {
        let local = self.shared.local.as_ref().expect("the kind offers it");
        let mut fleet = local.lock().await;
        let cluster = fleet.as_mut().and_then(|it| it.member(member));
        let cluster = cluster.expect("the fleet has this member");
        let node = cluster.node_name(number);
        cluster
            .lose_node(&node, is_lost)
            .await
            .expect("a node can be changed");
    }

    pub(super) async fn forget_history(&mut self, member: &str) {
        let local = self.shared.local.as_ref().expect("the kind offers it");
        let mut fleet = local.lock().await;
        let cluster = fleet.as_mut().and_then(|it| it.member(member));
        let cluster = cluster.expect("the fleet has this member");
        cluster.compact().await.expect("it starts again");
    }

    pub(super) fn log(&self) -> String {
        program::log(self.folder.path())
    }
}
