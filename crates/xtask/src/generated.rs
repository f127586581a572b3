//! Generated files in `config/`, with copies in the Helm chart.

use std::{fs, path::PathBuf};

use anyhow::Context;

/// The files that a task generates.
pub(crate) struct Generated {
    /// The name of the task: `crds`.
    pub(crate) task: &'static str,
    /// The source of the files: `crates/api`.
    pub(crate) source: &'static str,
    /// What a developer changes there: `the types`.
    pub(crate) subject: &'static str,
    /// The path in the repository and the contents of each file.
    pub(crate) files: Vec<(String, String)>,
}

/// The directory of files that the Helm chart loads: Helm reads none from outside a chart.
pub(crate) const CHART: &str = "deploy/helm/fedrs/files";

/// A file of `config/` and its copy in the chart, with their contents.
pub(crate) fn with_copy(config: &str, chart: &str, text: &str) -> [(String, String); 2] {
    let directories = [("config", config), (CHART, chart)];
    directories.map(|(directory, path)| (format!("{directory}/{path}"), text.to_owned()))
}

impl Generated {
    /// Writes all files.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        for (path, text) in self.contents() {
            let directory = path.parent().expect("the files are in directories");
            fs::create_dir_all(directory)
                .and_then(|()| fs::write(&path, text))
                .with_context(|| format!("failed to write {}", path.display()))?;
        }
        Ok(())
    }

    fn contents(&self) -> impl Iterator<Item = (PathBuf, String)> {
        let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let head = format!(
            "# Generated from {} by `cargo xtask {}`: change {} there.\n",
            self.source, self.task, self.subject
        );
        self.files
            .iter()
            .map(move |(path, text)| (directory.join(path), format!("{head}{text}")))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn the_generated_files_are_current() {
        for generated in [crate::crds::generated()].iter().chain(&crate::rbac::all()) {
            for (path, text) in generated.contents() {
                let (path, task) = (path.display(), generated.task);
                let found = fs::read_to_string(path.to_string())
                    .unwrap_or_else(|error| panic!("failed to read {path}: {error}"));
                assert!(
                    found == text,
                    "{path} is out of date: run `cargo xtask {task}`"
                );
            }
        }
    }
}
