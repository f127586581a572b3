//! The name of a FederatedReplicaSet or FederatedDeployment on the command line.

use anyhow::bail;

/// How such a name is written.
pub(crate) const SET_NAME: &str = "[NAMESPACE/]NAME";

/// The names of the kind, without the API group.
const DEPLOYMENT_KINDS: [&str; 3] = ["fdeploy", "federateddeployment", "federateddeployments"];

/// As [`parse`], for a FederatedDeployment: also `fdeploy/web`. A namespace that is named like the kind needs the option.
pub(crate) fn parse_deployment<'a>(
    text: &'a str,
    option: Option<&'a str>,
) -> anyhow::Result<(Option<&'a str>, &'a str)> {
    let is_kind = |prefix: &str| {
        let prefix = prefix.strip_suffix(".fedrs.dev").unwrap_or(prefix);
        DEPLOYMENT_KINDS.contains(&prefix)
    };
    match text.split_once('/') {
        Some((kind, rest)) if is_kind(kind) => parse(rest, option),
        _ => parse(text, option),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_named_as_for_kubectl() {
        for (text, option, expected) in [
            ("web", None, Ok((None, "web"))),
            ("web", Some("shop"), Ok((Some("shop"), "web"))),
            ("shop/web", None, Ok((Some("shop"), "web"))),
            ("fdeploy/web", None, Ok((None, "web"))),
            ("fdeploy/web", Some("shop"), Ok((Some("shop"), "web"))),
            (
                "federateddeployments.fedrs.dev/web",
                None,
                Ok((None, "web")),
            ),
            ("fdeploy/shop/web", None, Ok((Some("shop"), "web"))),
            (
                "fdeploy/",
                None,
                Err("invalid name \"\": must be [NAMESPACE/]NAME"),
            ),
            (
                "a/b/c",
                None,
                Err("invalid name \"a/b/c\": must be [NAMESPACE/]NAME"),
            ),
            (
                "shop/web",
                Some("blog"),
                Err("conflicting namespaces \"shop\" and \"blog\""),
            ),
        ] {
            let parsed = parse_deployment(text, option).map_err(|error| error.to_string());
            assert_eq!(parsed, expected.map_err(str::to_owned), "{text} {option:?}");
        }
    }
}
