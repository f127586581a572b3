//! The code of gRPC messages and services in `crates/discovery-proto` and `crates/xds-proto`, generated from `proto/`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use prost::Message;

/// Our own protocol, below `proto/`.
const DISCOVERY: &str = "fedrs/discovery/v1alpha1/discovery.proto";
/// Its package, which names the file that is generated.
const DISCOVERY_PACKAGE: &str = "fedrs.discovery.v1alpha1";

/// What is served of xDS, below `proto/xds`; includes the other files there.
const XDS: [&str; 5] = [
    "envoy/service/discovery/v3/discovery.proto",
    "envoy/config/cluster/v3/cluster.proto",
    "envoy/config/endpoint/v3/endpoint.proto",
    "envoy/config/listener/v3/listener.proto",
    "envoy/config/route/v3/route.proto",
];
/// Messages of extensions, in messages of the former.
const XDS_EXTENSIONS: [&str; 2] = [
    "envoy/extensions/filters/http/router/v3/router.proto",
    "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto",
];
/// The file that has the modules of all packages.
const MODULES: &str = "mod.rs";

/// Paths below the repository, and contents.
type Files = Vec<(PathBuf, Vec<u8>)>;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Path and contents of each generated file.
fn generated() -> anyhow::Result<Files> {
    let mut files = discovery()?;
    files.extend(xds()?);
    Ok(files)
}

fn discovery() -> anyhow::Result<Files> {
    let includes = [root().join("proto")];
    let protocol = protox::compile([DISCOVERY], includes).context("failed to compile discovery")?;
    let sources = root().join("crates/discovery-proto/src");
    let descriptors = (sources.join("descriptors.bin"), protocol.encode_to_vec());
    let out = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(out.path())
        .compile_fds(protocol)
        .context("failed to generate code of discovery")?;
    let code = fs::read(out.path().join(format!("{DISCOVERY_PACKAGE}.rs")))?;
    Ok(vec![(sources.join("generated.rs"), code), descriptors])
}

fn xds() -> anyhow::Result<Files> {
    let includes = [root().join("proto/xds")];
    let protocol = protox::compile(XDS.into_iter().chain(XDS_EXTENSIONS), includes)
        .context("failed to compile xDS")?;
    let out = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .build_transport(false)
        .include_file(MODULES)
        .out_dir(out.path())
        .compile_fds(protocol)
        .context("failed to generate code of xDS")?;
    files_in(out.path(), &root().join("crates/xds-proto/src/generated"))
}

/// The files of a directory, as those of another one.
fn files_in(directory: &Path, target: &Path) -> anyhow::Result<Files> {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((target.join(entry.file_name()), fs::read(entry.path())?))
    };
    fs::read_dir(directory)?.map(read).collect()
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
            let (found, path) = (fs::read(&path).unwrap_or_default(), path.display());
            assert!(
                found == contents,
                "{path} is out of date: run `cargo xtask proto`"
            );
        }
    }
}
