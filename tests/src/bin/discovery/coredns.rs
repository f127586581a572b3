//! CoreDNS as a process of its own, with the names and addresses that discovery has: what discovery is measured beside.
//!
//! Its plugins are `file`, `bind` and `errors` alone. It rotates no addresses, has no metrics, and never reads the file again.

use std::{fmt::Write as _, fs, net::SocketAddr, path::Path, process::Command};

use anyhow::ensure;
use control_plane::{Program, Programs};
use fedrs_tests::{free_ports, generated_members::until, measured_process::MeasuredProcess};
use tempfile::TempDir;

use crate::{
    dns,
    members::{Shape, address},
};

const ZONE: &str = "endpoints.fedrs.internal";
/// The file of the zone.
const ZONE_FILE: &str = "zone";

/// A running CoreDNS; killed when dropped.
pub(crate) struct CoreDns {
    process: MeasuredProcess,
    address: SocketAddr,
    _directory: TempDir,
}

impl CoreDns {
    /// Builds the program, if it is missing.
    pub(crate) fn build() -> anyhow::Result<Programs> {
        let programs = Programs::pinned()?;
        programs.build_one(Program::CoreDns, |module| {
            println!("building {module} ...");
        })?;
        Ok(programs)
    }

    /// Starts the program, and waits until it answers.
    pub(crate) async fn start(programs: &Programs, shape: Shape) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let [address] = free_ports()?;
        let file = |name: &str| directory.path().join(name);
        fs::write(file(ZONE_FILE), zone(shape))?;
        fs::write(file("Corefile"), corefile(address, &file(ZONE_FILE)))?;
        let mut command = Command::new(programs.path(Program::CoreDns));
        // As many threads as by default.
        command
            .env_remove("GOMAXPROCS")
            .arg("-conf")
            .arg(file("Corefile"));
        let log = file("coredns.log");
        let mut process = MeasuredProcess::start(&mut command, &log)?;
        let mut is_running = true;
        until("CoreDNS answers", async || {
            is_running = process.is_running();
            !is_running || dns::addresses(address, 0).await.is_ok()
        })
        .await?;
        ensure!(is_running, "CoreDNS ended: {}", fs::read_to_string(log)?);
        Ok(Self {
            process,
            address,
            _directory: directory,
        })
    }

    pub(crate) fn process(&self) -> &MeasuredProcess {
        &self.process
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn corefile(address: SocketAddr, zone: &Path) -> String {
    let (ip, port, zone) = (address.ip(), address.port(), zone.display());
    format!("{ZONE}:{port} {{\n  bind {ip}\n  errors\n  file {zone} {{\n    reload 0\n  }}\n}}\n")
}

/// The zone with the addresses of all endpoints, which clients may keep for as long as those of discovery.
fn zone(shape: Shape) -> String {
    let mut zone = format!(
        "$ORIGIN {ZONE}.\n$TTL 5\n@ IN SOA {ZONE}. hostmaster 1 3600 600 86400 5\n@ IN NS {ZONE}.\n"
    );
    for number in 0..shape.all() {
        let (set, address) = (number / shape.endpoints, address(number));
        let _ = writeln!(zone, "set-{set}.default IN A {address}");
    }
    zone
}
