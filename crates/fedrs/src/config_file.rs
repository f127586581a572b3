//! The controller's configuration file.

use std::path::Path;

use anyhow::Context;
use federation_controller::config::Config;

/// The configuration in `path`; the defaults without one.
pub(crate) fn read(path: Option<&Path>) -> anyhow::Result<Config> {
    let Some(path) = path else {
        return Ok(Config::default());
    };
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {file}"))?;
    Config::parse(&text).with_context(|| format!("{file}"))
}
