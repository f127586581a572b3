//! The programs of a control plane: found in `KUBEBUILDER_ASSETS`, or built from pinned Go modules into a cache directory.
//!
//! ```text
//! tests/control-plane/MODULE/{go.mod, go.sum, *.go} --go build tool--> CACHE/control-plane/MODULE-KEY/PROGRAM
//! ```

use std::{
    collections::BTreeMap,
    env,
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Result, paths, with_path};

/// The Go modules that pin the programs, by directory, and the programs that are built from each.
const MODULES: [(&str, &[Program]); 6] = [
    (
        "kubernetes",
        &[
            Program::Etcd,
            Program::ApiServer,
            Program::ControllerManager,
            Program::Scheduler,
            Program::Kubectl,
        ],
    ),
    ("kwok", &[Program::Kwok]),
    ("helm", &[Program::Helm]),
    ("kstatus", &[Program::Kstatus]),
    ("xds-client", &[Program::XdsClient]),
    ("coredns", &[Program::CoreDns]),
];

/// The programs of a cluster, one process each, in the order of their start.
pub(crate) const COMPONENTS: [Program; 5] = [
    Program::Etcd,
    Program::ApiServer,
    Program::ControllerManager,
    Program::Scheduler,
    Program::Kwok,
];

/// One of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// The store of a cluster.
    Etcd,
    /// `kube-apiserver`
    ApiServer,
    /// `kube-controller-manager`
    ControllerManager,
    /// `kube-scheduler`
    Scheduler,
    /// The client; not a part of a control plane.
    Kubectl,
    /// Nodes without kubelets.
    Kwok,
    /// Renders charts; not a part of a control plane.
    Helm,
    /// Computes the status of objects as Flux does; not a part of a control plane.
    Kstatus,
    /// gRPC's own client of xDS; not a part of a control plane.
    XdsClient,
    /// A DNS server; not a part of a control plane, and of benchmarks only.
    CoreDns,
}

impl Program {
    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Helm => "helm",
            Self::Kstatus => "kstatus",
            Self::XdsClient => "xds-client",
            Self::CoreDns => "coredns",
        }
    }

    /// Whether tests need it, and not only a benchmark.
    fn is_of_tests(self) -> bool {
        self != Self::CoreDns
    }

    /// The name that Go gives to what it builds: the last element of the package's path.
    fn built_name(self) -> &'static str {
        match self {
            // The package is go.etcd.io/etcd/server/v3.
            Self::Etcd => "server",
            other => other.name(),
        }
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The directory of all programs that are built here.
    directory: PathBuf,
    /// The directory of each program that is built here: one for each module, named after the module's pins, so that a
    /// change of one module builds no other.
    built: BTreeMap<Program, PathBuf>,
    /// The directory of provided programs, which take precedence.
    assets: Option<PathBuf>,
    /// The directory of the Go modules.
    modules: PathBuf,
}

impl Programs {
    /// The programs that this repository pins, built or not, in a directory of the user's cache.
    pub fn pinned() -> Result<Self> {
        Self::new(&paths::modules(), &paths::cache()?)
    }

    /// The programs pinned by the Go modules below `modules`, in directories of `cache` that are named after the pins. Those
    /// in `KUBEBUILDER_ASSETS` take precedence.
    fn new(modules: &Path, cache: &Path) -> Result<Self> {
        let assets = env::var_os("KUBEBUILDER_ASSETS")
            .filter(|assets| !assets.is_empty())
            .map(PathBuf::from);
        let directory = cache.join("control-plane");
        let mut built = BTreeMap::new();
        for (module, programs) in MODULES {
            let key = key(modules, module)?;
            let path = directory.join(format!("{module}-{key:016x}"));
            built.extend(programs.iter().map(|program| (*program, path.clone())));
        }
        Ok(Self {
            directory,
            built,
            assets,
            modules: modules.to_owned(),
        })
    }

    /// The file of `program`, whether it exists or not.
    pub fn path(&self, program: Program) -> PathBuf {
        let mut provided = self.assets.iter().map(|assets| assets.join(program.name()));
        provided
            .find(|path| path.is_file())
            .unwrap_or_else(|| self.built[&program].join(program.name()))
    }

    /// The directory of the programs that are built here.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The programs that tests need and that are neither provided nor built yet.
    pub fn missing(&self) -> Vec<Program> {
        let all = MODULES.iter().flat_map(|(_, programs)| *programs);
        all.copied()
            .filter(|program| program.is_of_tests() && self.is_missing(*program))
            .collect()
    }

    fn is_missing(&self, program: Program) -> bool {
        !self.path(program).is_file()
    }

    /// Builds the programs that tests need and that are missing; calls `progress` with each module before building it. The first
    /// time takes minutes.
    pub fn build(&self, progress: impl FnMut(&str)) -> Result<()> {
        self.build_all(&self.missing(), progress)
    }

    /// Builds `program`, if it is missing, as [`build`](Self::build) does.
    pub fn build_one(&self, program: Program, progress: impl FnMut(&str)) -> Result<()> {
        let missing: &[_] = if self.is_missing(program) {
            &[program]
        } else {
            &[]
        };
        self.build_all(missing, progress)
    }

    fn build_all(&self, missing: &[Program], mut progress: impl FnMut(&str)) -> Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        if go().arg("version").output().is_err() {
            let missing: Vec<_> = missing.iter().map(|program| program.name()).collect();
            return Err(Error::NoGo {
                missing: missing.join(", "),
            });
        }
        for (module, programs) in MODULES {
            if programs.iter().any(|program| missing.contains(program)) {
                progress(module);
                self.build_module(module, programs)?;
            }
        }
        Ok(())
    }

    fn build_module(&self, module: &str, programs: &[Program]) -> Result<()> {
        let source = self.modules.join(module);
        // Moved into place once it is complete, so that an interrupted build leaves no partial program.
        let unfinished = self
            .directory
            .join(format!(".{module}-{}", std::process::id()));
        with_path(&unfinished, fs::create_dir_all(&unfinished))?;
        let flags = link_flags(&kubernetes_version(&self.modules)?);
        let output = go()
            .args(["build", "-trimpath", "-mod=readonly", "-ldflags", &flags])
            .arg("-o")
            .arg(&unfinished)
            .arg("tool")
            .current_dir(&source)
            .env("CGO_ENABLED", "0")
            .stdin(Stdio::null())
            .output();
        let output = with_path(&source, output)?;
        if !output.status.success() {
            return Err(Error::Program {
                program: format!("go build ({module})"),
                message: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        for program in programs {
            let from = unfinished.join(program.built_name());
            let directory = &self.built[program];
            with_path(directory, fs::create_dir_all(directory))?;
            with_path(&from, fs::rename(&from, directory.join(program.name())))?;
        }
        with_path(&unfinished, fs::remove_dir_all(&unfinished))
    }
}

fn go() -> Command {
    Command::new("go")
}

/// What the programs of a module are built from: pins, checksums, sources, platform, and linker flags. Not the compiler: its
/// version changes nothing that tests rely on, and would cost each update of Go a build of minutes.
fn key(modules: &Path, module: &str) -> Result<u64> {
    let mut text = link_flags(&kubernetes_version(modules)?);
    for path in sources(&modules.join(module))? {
        text.push_str(&with_path(&path, fs::read_to_string(&path))?);
    }
    text.push_str(env::consts::ARCH);
    text.push_str(env::consts::OS);
    Ok(xxh3_64(text.as_bytes()))
}

/// The files of a module, in order.
fn sources(module: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in with_path(module, fs::read_dir(module))? {
        files.push(with_path(module, entry)?.path());
    }
    files.sort();
    Ok(files)
}

/// The version of Kubernetes that is pinned, such as `v1.36.4`.
fn kubernetes_version(modules: &Path) -> Result<String> {
    let path = modules.join("kubernetes/go.mod");
    let text = with_path(&path, fs::read_to_string(&path))?;
    let mut words = text.lines().map(str::split_whitespace);
    let version = words.find_map(|mut line| {
        let module = line.find(|word| *word != "require")?;
        (module == "k8s.io/kubernetes").then(|| line.next().map(str::to_owned))?
    });
    version.ok_or_else(|| Error::File {
        path: path.display().to_string(),
        error: std::io::Error::other("k8s.io/kubernetes is not required"),
    })
}

/// The linker sets the version that Kubernetes' programs report.
fn link_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    let packages = [
        "k8s.io/component-base/version",
        "k8s.io/client-go/pkg/version",
    ];
    let versions = packages.map(|package| {
        format!(
            "-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        )
    });
    format!("-s -w {}", versions.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_version_is_linked_in() {
        let version = kubernetes_version(&paths::modules()).unwrap();
        assert!(version.starts_with("v1."), "{version}");
        let flags = link_flags("v1.36.4");
        assert!(flags.contains("-X k8s.io/component-base/version.gitMinor=36"));
        assert!(flags.contains("-X k8s.io/client-go/pkg/version.gitVersion=v1.36.4"));
    }

    #[test]
    fn programs_of_benchmarks_are_built_for_no_test() {
        let cache = tempfile::tempdir().unwrap();
        let programs = Programs::new(&paths::modules(), cache.path()).unwrap();
        assert!(programs.is_missing(Program::CoreDns));
        assert!(!programs.missing().contains(&Program::CoreDns));
    }

    #[test]
    fn a_module_with_other_pins_is_built_elsewhere_and_no_other_module() {
        let cache = tempfile::tempdir().unwrap();
        let programs = Programs::new(&paths::modules(), cache.path()).unwrap();
        let copy = tempfile::tempdir().unwrap();
        for (module, _) in MODULES {
            fs::create_dir(copy.path().join(module)).unwrap();
            for file in sources(&paths::modules().join(module)).unwrap() {
                let mut text = fs::read_to_string(&file).unwrap();
                if module == "kwok" {
                    text = text.replace("0.8.0", "0.8.1");
                }
                fs::write(
                    copy.path().join(module).join(file.file_name().unwrap()),
                    text,
                )
                .unwrap();
            }
        }
        let others = Programs::new(copy.path(), cache.path()).unwrap();
        let moved = |program| programs.path(program) != others.path(program);
        assert!(moved(Program::Kwok));
        assert!(!moved(Program::Etcd) && !moved(Program::Helm));
    }
}
