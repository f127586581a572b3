//! Tasks complete without an error when nobody reads their output.

use std::process::{Command, Stdio};

#[test]
fn a_closed_pipe_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe can be created");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["control-plane", "status"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("xtask runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
}
