//! Real control planes for tests: built if they aren't yet, started in a folder of their own, ended with the process.

use control_plane::{Fleet, FleetSpec, Ledger, Programs, Run};

/// Starts control planes that end when the answer is dropped, or with this process.
pub async fn start(spec: &FleetSpec) -> control_plane::Result<Fleet> {
    // Kube finds it as the process's default.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let programs = Programs::pinned()?;
    programs.build(|module| eprintln!("building {module} ..."))?;
    let ledger = Ledger::of_user()?;
    let folder = std::env::temp_dir().join(format!("fedrs-suite-{}", std::process::id()));
    let run = Run {
        programs: &programs,
        ledger: &ledger,
        is_owned: true,
    };
    Fleet::start(spec, &folder, &run).await
}
