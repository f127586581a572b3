//! The kstatus library: how Flux, kpt and other tools read the status of an object.
//!
//! ```text
//! objects --JSON, one a line--> tests/control-plane/kstatus (Go) --JSON, one a line--> statuses
//! ```

use std::{
    io::Write,
    process::{Command, Stdio},
};

use control_plane::{Program, Programs};
use serde_json::Value;

/// The status of an object, as the library computes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// `Current`, `InProgress`, `Failed`, `Terminating` or `Unknown`.
    pub status: String,
    /// Why.
    pub message: String,
}

/// The status of each of these objects, in their order.
pub fn compute(objects: &[Value]) -> Vec<Computed> {
    let programs = Programs::pinned().expect("the pins can be read");
    let mut child = Command::new(programs.path(Program::Kstatus))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the program was built before");
    let lines: Vec<_> = objects.iter().map(Value::to_string).collect();
    let mut input = child.stdin.take().expect("the stream is piped");
    input
        .write_all(lines.join("\n").as_bytes())
        .expect("the program reads all objects");
    drop(input);
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", output.status);
    let computed = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let computed = computed.map(|line| {
        let line = line.expect("the program writes JSON");
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        Computed {
            status: text("status"),
            message: text("message"),
        }
    });
    computed.collect()
}
