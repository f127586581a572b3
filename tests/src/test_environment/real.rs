//! Shared clusters, with `fedrs` programs as the controllers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use control_plane::ProxyMode;
use federation_controller::config::Config;
use fedrs_api::names::CONTROLLER;
use kube::Client;
use tempfile::TempDir;

use super::{
    client::client,
    clusters::Shared,
    program::{self, Program},
    service_account,
    spec::TestEnvironmentSpec,
};

/// One scenario's use of shared clusters.
pub(super) struct Real {
    pub(super) shared: &'static Shared,
    config: Config,
    /// The members that the controllers know.
    known: BTreeSet<String>,
    /// The controller, and its standbys if there are any.
    pub(super) controllers: Vec<Controller>,
}

/// One controller.
pub(super) struct Controller {
    /// Its kubeconfigs, its configuration and its log.
    directory: TempDir,
    pub(super) program: Option<Program>,
}

impl Real {
    pub(super) async fn new(shared: &'static Shared, spec: &TestEnvironmentSpec) -> Self {
        let mut real = Self {
            shared,
            config: spec.config.clone(),
            known: spec
                .members
                .iter()
                .map(|&member| member.to_owned())
                .collect(),
            controllers: Vec::new(),
        };
        real.add_controller().await;
        real
    }

    /// Prepares one more controller, with its own credentials.
    pub(super) async fn add_controller(&mut self) {
        let directory = TempDir::with_prefix("fedrs-scenario-").expect("a temporary directory");
        fs::create_dir(directory.path().join("members")).expect("a directory can be made");
        let host = self.credentials(&self.shared.host, &self.shared.host).await;
        fs::write(directory.path().join("host.yaml"), host).expect("a file can be written");
        let config = serde_json::to_string(&self.config).expect("plain data");
        fs::write(directory.path().join("controller.yaml"), config).expect("a file can be written");
        let controller = Controller {
            directory,
            program: None,
        };
        for member in &self.known {
            self.put_member(&controller, member).await;
        }
        self.controllers.push(controller);
    }

    pub(super) async fn clients(&self) -> (Client, BTreeMap<String, Client>) {
        let mut members = BTreeMap::new();
        for (name, route) in &self.shared.members {
            members.insert((*name).to_owned(), client(&route.direct).await);
        }
        (client(&self.shared.host).await, members)
    }

    pub(super) fn start_controller(&mut self) {
        self.controllers[0].start();
    }

    /// Kills all controllers.
    pub(super) fn kill_controller(&mut self) {
        for controller in &mut self.controllers {
            controller.program = None;
        }
    }

    pub(super) async fn add_member(&mut self, member: &str) {
        self.known.insert(member.to_owned());
        for controller in &self.controllers {
            self.put_member(controller, member).await;
        }
    }

    async fn put_member(&self, controller: &Controller, member: &str) {
        let route = &self.shared.members[member];
        let kubeconfig = self.credentials(&route.direct, &route.controlled).await;
        let file = controller
            .directory
            .path()
            .join(format!("members/{member}.yaml"));
        fs::write(file, kubeconfig).expect("a file can be written");
    }

    /// The controller's own account on clusters that the tests started, otherwise the given kubeconfig.
    async fn credentials(&self, direct: &str, route: &str) -> String {
        if self.shared.local.is_some() {
            service_account::kubeconfig(CONTROLLER, direct, route).await
        } else {
            route.to_owned()
        }
    }

    pub(super) fn remove_member(&mut self, member: &str) {
        self.known.remove(member);
        for controller in &self.controllers {
            let file = controller
                .directory
                .path()
                .join(format!("members/{member}.yaml"));
            fs::remove_file(file).expect("a file can be removed");
        }
    }

    pub(super) fn set_network(&self, member: &str, mode: ProxyMode) {
        let proxy = self.shared.members[member].proxy.as_ref();
        proxy
            .expect("the kind of clusters has this capability")
            .set(mode);
    }

    pub(super) async fn hang(&self, member: &str, is_hanging: bool) {
        let mut control_planes = self.shared.control_planes().await;
        let cluster = control_planes.member(member).expect("it is a member");
        if is_hanging {
            cluster.pause(control_plane::Program::ApiServer);
        } else {
            cluster.resume(control_plane::Program::ApiServer);
        }
    }

    pub(super) async fn lose_node(&self, member: &str, number: u32, is_lost: bool) {
        let mut control_planes = self.shared.control_planes().await;
        let cluster = control_planes.member(member).expect("it is a member");
        let node = cluster.node_name(number);
        let changed = cluster.set_node_lost(&node, is_lost).await;
        changed.expect("a node can be changed");
    }

    pub(super) async fn compact_history(&self, member: &str) {
        let mut control_planes = self.shared.control_planes().await;
        let cluster = control_planes.member(member).expect("it is a member");
        cluster.compact().await.expect("the API server restarts");
    }

    /// Reverts all faults of clusters that the tests started: members cut off, hanging or without some of their processes,
    /// nodes failed or cordoned.
    pub(super) async fn revert_faults(&mut self) {
        if self.shared.local.is_none() {
            return;
        }
        for route in self.shared.members.values() {
            let proxy = route.proxy.as_ref().expect("each member has one");
            proxy.set(ProxyMode::Forward(Duration::ZERO));
        }
        for member in &mut self.shared.control_planes().await.members {
            member.resume(control_plane::Program::ApiServer);
            member.repair().await.expect("what was killed starts again");
            member.restore_nodes().await.expect("nodes can be changed");
        }
    }

    pub(super) fn log(&self) -> String {
        let logs = self.controllers.iter().map(Controller::log);
        logs.collect::<Vec<_>>().join("\n---\n")
    }
}

impl Controller {
    pub(super) fn start(&mut self) {
        assert!(self.program.is_none(), "the controller does not run yet");
        self.program = Some(Program::start(self.directory.path()));
    }

    pub(super) fn log(&self) -> String {
        program::log(self.directory.path())
    }

    /// The IDs of the controller's tokens, as in audit logs.
    pub(super) fn credentials(&self) -> BTreeSet<String> {
        let directory = self.directory.path();
        let members = fs::read_dir(directory.join("members")).expect("a directory can be read");
        let files = members.map(|entry| entry.expect("a directory can be read").path());
        std::iter::once(directory.join("host.yaml"))
            .chain(files)
            .map(|file| {
                service_account::credential(&fs::read_to_string(file).expect("a file can be read"))
            })
            .collect()
    }
}
