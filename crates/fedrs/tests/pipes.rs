//! Commands whose reader has gone (`fedrs ... | head -1`) end quietly.

use std::process::{Command, Stdio};

#[test]
fn nobody_reads() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let dir = directory.path().join("clusters").display().to_string();
    let cases = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../cases/seed-scenarios.json"
    );
    for arguments in [
        &["crds"][..],
        &["rbac", "host"],
        &["completions", "bash"],
        &["plan", cases],
        &["sim", "--dir", &dir],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_fedrs"))
            .args(["--log", "error"])
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("it can be run");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_quiet = output.status.success() && stderr.is_empty();
        assert!(is_quiet, "{arguments:?}: {}\n{stderr}", output.status);
    }
}
