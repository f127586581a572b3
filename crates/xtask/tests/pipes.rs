//! Tasks whose reader has gone end quietly, and have done their work.

use std::process::{Command, Stdio};

#[test]
fn nobody_reads() {
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["control-plane", "status"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("it can be run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{told}");
}
