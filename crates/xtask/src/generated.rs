//! Files that are generated, in `config/` and copied into the Helm chart: written, or checked to be current.

use std::{fs, path::PathBuf};

use anyhow::{Context, ensure};

/// Files that one task generates.
pub(crate) struct Generated {
    /// The task: `crds`.
    pub(crate) task: &'static str,
    /// Where it is generated from: `crates/api`.
    pub(crate) source: &'static str,
    /// What to change there: `the types`.
    pub(crate) subject: &'static str,
    /// Path in the repository, and what should be in it.
    pub(crate) files: Vec<(String, String)>,
}

/// Where the Helm chart has what it can't load from elsewhere.
const CHART: &str = "deploy/helm/fedrs/files";

/// A file of `config/` and its copy in the chart, with what should be in them.
pub(crate) fn with_copy(config: &str, chart: &str, text: &str) -> [(String, String); 2] {
    let folders = [("config", config), (CHART, chart)];
    folders.map(|(folder, path)| (format!("{folder}/{path}"), text.to_owned()))
}

impl Generated {
    /// Writes all files.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        for (path, text) in self.contents() {
            let folder = path.parent().expect("the files are in folders");
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, text))
                .with_context(|| format!("failed to write {}", path.display()))?;
        }
        Ok(())
    }

    /// Fails if a file is missing or not current.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (path, text) in self.contents() {
            let found = fs::read_to_string(&path)
                .with_context(|| format!("failed to read {}", path.display()))?;
            ensure!(
                found == text,
                "{} is not current: run `cargo xtask {}`",
                path.display(),
                self.task
            );
        }
        Ok(())
    }

    fn contents(&self) -> impl Iterator<Item = (PathBuf, String)> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let head = format!(
            "# Generated from {} by `cargo xtask {}`: change {} there.\n",
            self.source, self.task, self.subject
        );
        self.files
            .iter()
            .map(move |(path, text)| (folder.join(path), format!("{head}{text}")))
    }
}
