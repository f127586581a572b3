//! The client: tests/control-plane/xds-client.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    process::Stdio,
    time::Duration,
};

use control_plane::{Program, Programs};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::Instant,
};

/// How many calls are made at once.
const CALLS: u32 = 600;

/// The program, which makes calls when it is asked to. Ends with this.
pub(crate) struct Client {
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// Whom calls have reached.
#[derive(Debug, Deserialize)]
pub(crate) struct Called {
    /// How many calls each server answered.
    pub(crate) servers: BTreeMap<String, u32>,
    pub(crate) errors: Vec<String>,
}

impl Called {
    pub(crate) fn servers(&self) -> BTreeSet<&str> {
        self.servers.keys().map(String::as_str).collect()
    }
}

impl Client {
    /// A client of `target` that asks the service at this address.
    pub(crate) fn start(xds: SocketAddr, target: &str) -> Self {
        let programs = Programs::pinned().expect("the pins can be read");
        let bootstrap = json!({
            "xds_servers": [{
                "server_uri": xds.to_string(),
                "channel_creds": [{ "type": "insecure" }],
                "server_features": ["xds_v3"],
            }],
            "node": { "id": "test" },
        });
        let mut child = Command::new(programs.path(Program::XdsClient))
            .arg(target)
            .env("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program was built before");
        let input = child.stdin.take().expect("the stream is piped");
        let output = child.stdout.take().expect("the stream is piped");
        Self {
            _child: child,
            input,
            output: BufReader::new(output).lines(),
        }
    }

    /// Makes calls.
    pub(crate) async fn call(&mut self) -> Called {
        let line = format!("{CALLS}\n");
        let written = self.input.write_all(line.as_bytes()).await;
        written.expect("the program reads lines");
        let line = self
            .output
            .next_line()
            .await
            .expect("the program writes lines");
        let line = line.expect("the program has not ended");
        serde_json::from_str(&line).expect("the program writes JSON")
    }

    /// Makes calls until they reach whom they should. None may fail.
    pub(crate) async fn call_until(
        &mut self,
        patience: Duration,
        expected: impl Fn(&Called) -> bool,
    ) -> Called {
        let end = Instant::now() + patience;
        loop {
            let called = self.call().await;
            assert!(called.errors.is_empty(), "{called:?}");
            if expected(&called) {
                return called;
            }
            assert!(Instant::now() < end, "in the end: {called:?}");
        }
    }
}
