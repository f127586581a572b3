//! The kstatus library over recorded objects (the suite has live ones): `FEDRS_CLUSTERS=local cargo test --test kstatus`.
//!
//! The library is written in Go: its program is built with the real control planes. Without them each test is skipped by
//! name.

use std::process::ExitCode;

use control_plane::Programs;
use fedrs_tests::{
    kstatus,
    recorded::{ALL, Recorded},
    test_environment::ClusterKind,
};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let is_local = matches!(ClusterKind::from_env(), Ok(ClusterKind::Local));
    if is_local && !arguments.list {
        let built = Programs::pinned()
            .and_then(|programs| programs.build(|module| eprintln!("building {module} ...")));
        if let Err(error) = built {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    let trials = ALL.iter().map(|recorded| {
        let name = format!("recorded::{}", recorded.name);
        if !is_local {
            eprintln!("skipped: {name} needs FEDRS_CLUSTERS=local");
        }
        Trial::test(name, || check(recorded)).with_ignored_flag(!is_local)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn check(recorded: &Recorded) -> Result<(), Failed> {
    let computed = kstatus::compute(&[recorded.object()]);
    match &computed[..] {
        [computed] if computed.status == recorded.kstatus => Ok(()),
        _ => Err(format!("expected {}, computed {computed:?}", recorded.kstatus).into()),
    }
}
