//! `cargo xtask simulate`: `fedrs simulate`, built to be fast.

use std::process::{Command, ExitCode};

/// The profile: optimized, with the checks of a development build.
const PROFILE: &str = "simulation";

/// Builds and runs `fedrs simulate`. Returns its exit code.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let select = [
        "--quiet",
        "--locked",
        "--profile",
        PROFILE,
        "--package",
        "fedrs",
    ];
    let features = ["--features", "fedrs/plantable"];
    let arguments = if arguments.is_empty() {
        vec!["--help".to_owned()]
    } else {
        arguments.to_vec()
    };
    let ended = Command::new(cargo)
        .arg("run")
        .args(select)
        .args(features)
        .args(["--", "simulate"])
        .args(arguments)
        .status()?;
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
