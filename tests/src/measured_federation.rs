//! Real control planes with a controller that is measured on them.

use std::path::PathBuf;

use control_plane::{ControlPlaneSpec, Environment, EnvironmentSpec, NodeResources};
use kube::Client;
use simulation::install_crds;

use crate::controller_process::{Controller, Program};

/// The names of the members.
pub const MEMBERS: [&str; 3] = ["a", "b", "c"];

/// A host, its members, and the controller as a process of its own. All end when it is dropped.
pub struct MeasuredFederation {
    /// A user's client of the host.
    pub host: Client,
    /// Those of the members.
    pub members: Vec<Client>,
    controller: Controller,
    _environment: Environment,
}

impl MeasuredFederation {
    /// Starts the controller `program`, and members whose three nodes can have so many `pods` each.
    pub async fn start(program: PathBuf, pods: usize) -> anyhow::Result<Self> {
        let member = |name: &str| ControlPlaneSpec {
            name: name.to_owned(),
            nodes: 3,
            resources: NodeResources {
                pods: u32::try_from(pods).unwrap_or(u32::MAX),
                ..NodeResources::default()
            },
        };
        let spec = EnvironmentSpec {
            members: MEMBERS.map(member).into(),
            audit: false,
        };
        let environment = Environment::start_temporary(&spec).await?;
        let mut members = Vec::new();
        for member in &environment.members {
            members.push(member.client().await?);
        }
        let host = environment.host.client().await?;
        install_crds(&host).await;
        let program = Program::of_federation(program, environment.directory());
        let controller = program.start_until_ready().await?;
        Ok(Self {
            host,
            members,
            controller,
            _environment: environment,
        })
    }

    /// Prints the memory that the controller takes.
    pub fn print_memory(&self) -> anyhow::Result<()> {
        let (resident, _) = self.controller.memory()?;
        println!("resident memory of the controller: {} kB", resident / 1024);
        Ok(())
    }
}
