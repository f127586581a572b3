//! The configuration file of a controller.

use std::path::Path;

use anyhow::Context;
use controller_base::ConfigError;
use federation_controller::config::Config;

/// The configuration of the federated controller in `path`; the defaults without one.
pub(crate) fn read(path: Option<&Path>) -> anyhow::Result<Config> {
    read_as(path, Config::parse)
}

/// The configuration in `path`, as `parse` reads it; the defaults without one.
pub(crate) fn read_as<T: Default>(
    path: Option<&Path>,
    parse: fn(&str) -> Result<T, ConfigError>,
) -> anyhow::Result<T> {
    let Some(path) = path else {
        return Ok(T::default());
    };
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {file}"))?;
    parse(&text).with_context(|| format!("{file}"))
}
