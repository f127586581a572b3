//! A host and its members, started side by side, with kubeconfigs in `DIR/host.yaml` and `DIR/members/NAME.yaml`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use futures::future::try_join_all;

use crate::{
    ControlPlane, ControlPlaneSpec, Error, Ledger, NodeResources, Programs, Result, Subnet, at,
    pki::private_file,
};

/// The host's kubeconfig, in the folder of a fleet.
const HOST: &str = "host.yaml";
/// The members' kubeconfigs.
const MEMBERS: &str = "members";
/// Logs and data of each cluster; made first, so that it tells a fleet's folder from others.
const CLUSTERS: &str = "clusters";

/// What a fleet is made of.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// The members.
    pub members: Vec<MemberSpec>,
    /// The API servers write down each request (without bodies) in `audit.log`.
    pub audit: bool,
}

/// One member.
#[derive(Clone, Debug)]
pub struct MemberSpec {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// What each node can give.
    pub resources: NodeResources,
}

impl Default for FleetSpec {
    fn default() -> Self {
        let member = |name: &str| MemberSpec {
            name: name.to_owned(),
            nodes: 3,
            resources: NodeResources::default(),
        };
        Self {
            members: ["a", "b", "c"].map(member).into(),
            audit: false,
        }
    }
}

/// Where a run is written down, and whether it outlives this process.
pub struct Run<'a> {
    /// The programs.
    pub programs: &'a Programs,
    /// Where it is written down.
    pub ledger: &'a Ledger,
    /// It ends with this process, and its folder with it.
    pub is_owned: bool,
}

/// Running clusters. They end when this is dropped, unless they are [left](Self::leave).
pub struct Fleet {
    /// The host: it has no nodes.
    pub host: ControlPlane,
    /// The members, in the order of the spec.
    pub members: Vec<ControlPlane>,
    subnet: Subnet,
    folder: PathBuf,
    /// Where its end is to be written down, if it ends with this.
    ledger: Option<Ledger>,
    /// Its folder ends with it.
    is_owned: bool,
}

impl Fleet {
    /// Starts all clusters in `folder` and waits until they are ready. What ran there before is ended first, and so is
    /// what crashed runs left behind.
    ///
    /// # Errors
    /// Also if the folder has kubeconfigs of something else: they would be overwritten, or taken for members.
    pub async fn start(spec: &FleetSpec, folder: &Path, run: &Run<'_>) -> Result<Self> {
        at(folder, fs::create_dir_all(folder))?;
        let folder = &at(folder, fs::canonicalize(folder))?;
        run.ledger.reap()?;
        run.ledger.end(folder)?;
        clear(folder)?;
        let reserved = Subnet::reserve()?;
        let subnet = reserved.subnet;
        let start = |number: usize, name: &str, nodes, resources: NodeResources| {
            let number = u8::try_from(number).ok().filter(|it| *it < 99);
            let number = number.ok_or_else(too_many)?;
            let spec = ControlPlaneSpec {
                name: name.to_owned(),
                nodes,
                resources,
                audit: spec.audit,
            };
            let place = folder.join(CLUSTERS).join(name);
            let proxy = subnet.proxy(number);
            ControlPlane::start(spec, &place, subnet.cluster(number), &[proxy], run.programs)
        };
        run.ledger.write(folder, run.is_owned, 0)?;
        let host = start(0, "host", 0, NodeResources::default())?;
        let mut fleet = Self {
            host,
            members: Vec::new(),
            subnet,
            folder: folder.clone(),
            ledger: Some(run.ledger.clone()),
            is_owned: run.is_owned,
        };
        for (number, member) in (1..).zip(&spec.members) {
            let member = start(number, &member.name, member.nodes, member.resources.clone())?;
            fleet.members.push(member);
        }
        fleet.ready().await?;
        fleet.write_kubeconfigs()?;
        let processes = fleet.clusters().map(ControlPlane::processes).sum();
        run.ledger.write(folder, run.is_owned, processes)?;
        Ok(fleet)
    }

    /// Waits until all clusters are ready, side by side.
    async fn ready(&mut self) -> Result<()> {
        let clusters = std::iter::once(&mut self.host).chain(&mut self.members);
        try_join_all(clusters.map(ControlPlane::ready)).await?;
        Ok(())
    }

    /// The member `name`.
    pub fn member(&mut self, name: &str) -> Option<&mut ControlPlane> {
        self.members.iter_mut().find(|it| it.name() == name)
    }

    /// The addresses of the fleet.
    pub fn subnet(&self) -> Subnet {
        self.subnet
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Leaves everything running: it ends with [`Ledger::end`].
    pub fn leave(mut self) {
        self.ledger = None;
        self.host.leave();
        self.members.iter_mut().for_each(ControlPlane::leave);
    }

    fn clusters(&self) -> impl Iterator<Item = &ControlPlane> {
        std::iter::once(&self.host).chain(&self.members)
    }

    fn write_kubeconfigs(&self) -> Result<()> {
        let members = self.folder.join(MEMBERS);
        at(&members, fs::create_dir_all(&members))?;
        private_file(&self.folder.join(HOST), self.host.kubeconfig())?;
        for member in &self.members {
            let file = members.join(format!("{}.yaml", member.name()));
            private_file(&file, member.kubeconfig())?;
        }
        Ok(())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            self.host.end();
            self.members.iter_mut().for_each(ControlPlane::end);
            if let Err(error) = ledger.end(&self.folder) {
                tracing::warn!("control planes: {error}");
            }
            if self.is_owned {
                let removed = at(&self.folder, fs::remove_dir_all(&self.folder));
                if let Err(error) = removed {
                    tracing::warn!("control planes: {error}");
                }
            }
        }
    }
}

/// Removes what an earlier fleet had here: it may have had other members. Begins the next one's.
fn clear(folder: &Path) -> Result<()> {
    let [host, members, clusters] = [HOST, MEMBERS, CLUSTERS].map(|it| folder.join(it));
    if !clusters.is_dir() && (host.exists() || members.exists()) {
        let error = "it holds kubeconfigs of something else: give another folder";
        return at(folder, Err(std::io::Error::other(error)));
    }
    for (path, removed) in [
        (&host, fs::remove_file(&host)),
        (&members, fs::remove_dir_all(&members)),
        // Last: while it is there the others are known to be ours.
        (&clusters, fs::remove_dir_all(&clusters)),
    ] {
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => at(path, removed)?,
        }
    }
    at(&clusters, fs::create_dir(&clusters))
}

fn too_many() -> Error {
    Error::Program {
        program: "loopback".to_owned(),
        message: "too many members for the addresses of one run: at most 98".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_an_earlier_fleet_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |it: &str| folder.path().join(it);
        clear(folder.path()).unwrap();
        for file in [HOST, "members/d.yaml", "clusters/d/etcd.log"] {
            fs::create_dir_all(path(file).parent().unwrap()).unwrap();
            fs::write(path(file), "").unwrap();
        }
        clear(folder.path()).unwrap();
        assert!(!path(HOST).exists() && !path(MEMBERS).exists());
        assert!(!path("clusters/d").exists());
        clear(folder.path()).expect("one that never got further can be begun again");
    }

    #[test]
    fn kubeconfigs_of_others_are_left_alone() {
        for file in [HOST, "members/mine.yaml"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            let error = clear(folder.path()).unwrap_err().to_string();
            assert!(error.contains("something else"), "{error}");
            assert!(file.exists());
        }
    }
}
