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

impl ConfigError {
    /// Of `fields`, each with whether it is 0, the first that is.
    pub fn require_positive(
        fields: impl IntoIterator<Item = (&'static str, bool)>,
    ) -> Result<(), Self> {
        let zero = fields.into_iter().find(|(_, is_zero)| *is_zero);
        zero.map_or(Ok(()), |(field, _)| {
            let message = "must be more than 0";
            Err(Self::Value { field, message })
        })
    }
}
