//! Why a configuration is invalid.

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not YAML, an unknown field, a wrong type.
    #[error("failed to parse the configuration: {0}")]
    Parse(String),
    /// A value out of its range.
    #[error("{field}: {message}")]
    Value {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        message: &'static str,
    },
}
