//! The CRDs in `config/crd`: a file for each, named after it.

use std::{fs, path::PathBuf};

use anyhow::{Context, ensure};
use fedrs_api::crd;

/// The first line of each file.
const HEAD: &str = "# Generated from crates/api by `cargo xtask crds`: change the types there.\n";

/// Writes all files.
pub(crate) fn write() -> anyhow::Result<()> {
    for (path, text) in files() {
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

/// Fails if a file is missing or not current.
pub(crate) fn check() -> anyhow::Result<()> {
    for (path, text) in files() {
        let found = fs::read_to_string(&path)
            .with_context(|| format!("failed to read {}", path.display()))?;
        ensure!(
            found == text,
            "{} is not current: run `cargo xtask crds`",
            path.display()
        );
    }
    Ok(())
}

/// Each file with what should be in it.
fn files() -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/crd"));
    let file = |crd| {
        (
            folder.join(format!("{}.yaml", file_name(&crd))),
            format!("{HEAD}{}", crd::as_yaml(&crd)),
        )
    };
    crd::all().into_iter().map(file).collect()
}

/// `fedrs.dev_federatedreplicasets`, as other generators name them.
fn file_name(crd: &crd::CustomResourceDefinition) -> String {
    format!("{}_{}", crd.spec.group, crd.spec.names.plural)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_crds_in_config_are_current() {
        super::check().expect("cargo xtask crds brings them up to date");
    }
}
