//! The name of a FederatedReplicaSet on the command line.

use anyhow::bail;

/// How such a name is written.
pub(crate) const SET_NAME: &str = "[NAMESPACE/]NAME";

/// The namespace, if `text` or the option names one, and the name.
pub(crate) fn parse<'a>(
    text: &'a str,
    option: Option<&'a str>,
) -> anyhow::Result<(Option<&'a str>, &'a str)> {
    let (prefix, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    if name.is_empty() || name.contains('/') || prefix == Some("") {
        bail!("invalid name {text:?}: must be {SET_NAME}");
    }
    let namespace = match (prefix, option) {
        (Some(prefix), Some(option)) if prefix != option => {
            bail!("conflicting namespaces {prefix:?} and {option:?}")
        }
        (prefix, option) => prefix.or(option),
    };
    Ok((namespace, name))
}
