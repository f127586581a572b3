//! Real control planes for tests: built if needed, started in a temporary folder, stopped with this process.

use control_plane::{Environment, EnvironmentSpec, Programs, Run, RunRegistry};

/// Starts control planes that stop when the returned value is dropped, or with this process.
pub async fn start(spec: &EnvironmentSpec) -> control_plane::Result<Environment> {
    // kube uses the provider that the process installs as its default.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let programs = Programs::pinned()?;
    programs.build(|module| eprintln!("building {module} ..."))?;
    let runs = RunRegistry::of_user()?;
    let folder = std::env::temp_dir().join(format!("fedrs-suite-{}", std::process::id()));
    let run = Run {
        programs: &programs,
        runs: &runs,
        is_owned: true,
    };
    Environment::start(spec, &folder, &run).await
}
