//! The code of gRPC messages and services in `crates/discovery-proto`, generated from `proto/`.

use std::{fs, path::PathBuf};

use anyhow::Context;
use prost::Message;

/// The protocol, below `proto/`.
const FILE: &str = "fedrs/discovery/v1alpha1/discovery.proto";
/// Its package, which names the file that is generated.
const PACKAGE: &str = "fedrs.discovery.v1alpha1";

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Path and contents of each generated file.
fn generated() -> anyhow::Result<[(PathBuf, Vec<u8>); 2]> {
    let includes = [root().join("proto")];
    let protocol = protox::compile([FILE], includes).context("failed to compile the protocol")?;
    let descriptors = protocol.encode_to_vec();
    let out = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(out.path())
        .compile_fds(protocol)
        .context("failed to generate code")?;
    let code = fs::read(out.path().join(format!("{PACKAGE}.rs")))?;
    let sources = root().join("crates/discovery-proto/src");
    Ok([
        (sources.join("generated.rs"), code),
        (sources.join("descriptors.bin"), descriptors),
    ])
}

/// Writes the files.
pub(crate) fn write() -> anyhow::Result<()> {
    for (path, contents) in generated()? {
        fs::write(&path, contents)
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_code_is_current() {
        for (path, contents) in generated().unwrap() {
            let (found, path) = (fs::read(&path).unwrap(), path.display());
            assert!(
                found == contents,
                "{path} is out of date: run `cargo xtask proto`"
            );
        }
    }
}
