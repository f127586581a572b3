//! A host and its members, started together, with kubeconfigs in `DIR/host.yaml` and `DIR/members/NAME.yaml`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use futures::future::try_join_all;

use crate::{
    ControlPlane, ControlPlaneSpec, Error, NodeResources, Programs, Result, RunRegistry, Subnet,
    pki::private_file, with_path,
};

/// The host's kubeconfig, in the directory of an environment.
const HOST: &str = "host.yaml";
/// The members' kubeconfigs.
const MEMBERS: &str = "members";
/// The host and the members have addresses below the first proxy's.
const MAX_MEMBERS: u8 = 98;
/// Logs and data of each cluster; created first, so that it distinguishes an environment's directory from others.
const CLUSTERS: &str = "clusters";

/// The clusters of an environment.
#[derive(Clone, Debug)]
pub struct EnvironmentSpec {
    /// The members.
    pub members: Vec<ControlPlaneSpec>,
    /// Whether the API servers log each request, without bodies, to `audit.log`.
    pub audit: bool,
}

impl Default for EnvironmentSpec {
    fn default() -> Self {
        let member = |name: &str| ControlPlaneSpec {
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

/// How to run an environment.
pub struct Run<'a> {
    /// The programs of the control planes.
    pub programs: &'a Programs,
    /// Where to register the run.
    pub runs: &'a RunRegistry,
    /// Whether the run ends, and its directory is deleted, with this process.
    pub is_owned: bool,
}

/// Running clusters. Dropping them ends them, unless they are [detached](Self::detach).
pub struct Environment {
    /// The host cluster. It has no nodes.
    pub host: ControlPlane,
    /// The members, in the order of the spec.
    pub members: Vec<ControlPlane>,
    subnet: Subnet,
    directory: PathBuf,
    /// Where its end is registered; `None` once it is detached.
    runs: Option<RunRegistry>,
    /// Whether its directory is deleted at its end.
    is_owned: bool,
}

impl Environment {
    /// Ends an earlier run in `directory`, and the processes that crashed runs left. Then starts all clusters there, and waits
    /// until they are ready.
    ///
    /// # Errors
    /// Also if the directory has kubeconfigs of another origin, which would be overwritten or taken for members.
    pub async fn start(spec: &EnvironmentSpec, directory: &Path, run: &Run<'_>) -> Result<Self> {
        with_path(directory, fs::create_dir_all(directory))?;
        let directory = &with_path(directory, fs::canonicalize(directory))?;
        run.runs.end_orphans()?;
        run.runs.end(directory)?;
        clear(directory)?;
        let reserved = Subnet::reserve()?;
        let subnet = reserved.subnet;
        let start = |number: usize, cluster: ControlPlaneSpec| {
            let number = u8::try_from(number)
                .ok()
                .filter(|number| *number <= MAX_MEMBERS);
            let number = number.ok_or(Error::TooManyMembers { most: MAX_MEMBERS })?;
            let place = directory.join(CLUSTERS).join(&cluster.name);
            let (address, proxy) = (subnet.cluster(number), subnet.proxy(number));
            ControlPlane::start(cluster, spec.audit, &place, address, &[proxy], run.programs)
        };
        run.runs.write(directory, run.is_owned, 0)?;
        let host = ControlPlaneSpec {
            name: "host".to_owned(),
            nodes: 0,
            resources: NodeResources::default(),
        };
        let mut environment = Self {
            host: start(0, host)?,
            members: Vec::new(),
            subnet,
            directory: directory.clone(),
            runs: Some(run.runs.clone()),
            is_owned: run.is_owned,
        };
        for (number, member) in (1..).zip(&spec.members) {
            environment.members.push(start(number, member.clone())?);
        }
        environment.ready().await?;
        environment.write_kubeconfigs()?;
        let processes = environment.clusters().map(ControlPlane::processes).sum();
        run.runs.write(directory, run.is_owned, processes)?;
        Ok(environment)
    }

    /// Starts all clusters for a test, in a temporary directory: they end with the returned value or with this process.
    /// Builds missing programs first, and makes aws-lc-rs the process's TLS provider, which kube requires.
    ///
    /// # Errors
    /// If a program can't be built, or a cluster does not start.
    pub async fn start_temporary(spec: &EnvironmentSpec) -> Result<Self> {
        // An error means that the process has a provider.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let programs = Programs::pinned()?;
        programs.build(|module| eprintln!("building {module} ..."))?;
        let directory = std::env::temp_dir().join(format!("control-planes-{}", std::process::id()));
        let run = Run {
            programs: &programs,
            runs: &RunRegistry::of_user()?,
            is_owned: true,
        };
        Self::start(spec, &directory, &run).await
    }

    /// Waits until all clusters are ready.
    async fn ready(&mut self) -> Result<()> {
        let clusters = std::iter::once(&mut self.host).chain(&mut self.members);
        try_join_all(clusters.map(ControlPlane::ready)).await?;
        Ok(())
    }

    /// The member `name`.
    pub fn member(&mut self, name: &str) -> Option<&mut ControlPlane> {
        self.members.iter_mut().find(|member| member.name() == name)
    }

    /// The addresses of the clusters.
    pub fn subnet(&self) -> Subnet {
        self.subnet
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Leaves all processes running, until [`RunRegistry::end`].
    pub fn detach(mut self) {
        self.runs = None;
        self.host.detach();
        self.members.iter_mut().for_each(ControlPlane::detach);
    }

    fn clusters(&self) -> impl Iterator<Item = &ControlPlane> {
        std::iter::once(&self.host).chain(&self.members)
    }

    fn write_kubeconfigs(&self) -> Result<()> {
        let members = self.directory.join(MEMBERS);
        with_path(&members, fs::create_dir_all(&members))?;
        private_file(&self.directory.join(HOST), self.host.kubeconfig())?;
        for member in &self.members {
            let file = members.join(format!("{}.yaml", member.name()));
            private_file(&file, member.kubeconfig())?;
        }
        Ok(())
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if let Some(runs) = &self.runs {
            self.host.end();
            self.members.iter_mut().for_each(ControlPlane::end);
            if let Err(error) = runs.end(&self.directory) {
                tracing::warn!(%error, "failed to end control planes");
            }
            if self.is_owned {
                let removed = with_path(&self.directory, fs::remove_dir_all(&self.directory));
                if let Err(error) = removed {
                    tracing::warn!(%error, "failed to remove a directory");
                }
            }
        }
    }
}

/// Removes the files of an earlier environment, which may have had other members, and marks the directory as one.
fn clear(directory: &Path) -> Result<()> {
    let [host, members, clusters] = [HOST, MEMBERS, CLUSTERS].map(|name| directory.join(name));
    if !clusters.is_dir() && (host.exists() || members.exists()) {
        let error = "the directory has kubeconfigs of another origin: choose another one";
        return with_path(directory, Err(std::io::Error::other(error)));
    }
    for (path, removed) in [
        (&host, fs::remove_file(&host)),
        (&members, fs::remove_dir_all(&members)),
        // Last: as long as it exists, the other files are known to be an environment's.
        (&clusters, fs::remove_dir_all(&clusters)),
    ] {
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => with_path(path, removed)?,
        }
    }
    with_path(&clusters, fs::create_dir(&clusters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_an_earlier_environment_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        clear(directory.path()).unwrap();
        for file in [HOST, "members/d.yaml", "clusters/d/etcd.log"] {
            fs::create_dir_all(path(file).parent().unwrap()).unwrap();
            fs::write(path(file), "").unwrap();
        }
        clear(directory.path()).unwrap();
        assert!(!path(HOST).exists() && !path(MEMBERS).exists());
        assert!(!path("clusters/d").exists());
        clear(directory.path()).expect("an environment that failed early can start again");
    }

    #[test]
    fn other_kubeconfigs_are_not_touched() {
        for file in [HOST, "members/mine.yaml"] {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            let error = clear(directory.path()).unwrap_err().to_string();
            assert!(error.contains("another origin"), "{error}");
            assert!(file.exists());
        }
    }
}
