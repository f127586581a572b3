//! The names of FederatedReplicaSets, FederatedDeployments, LocalReplicaSets and their pods on the command line.

use anyhow::bail;
use fedrs_api::SetKind;
use membership::{SetRef, cluster_client::ClusterClient};

/// How such a name is written.
pub(crate) const SET_NAME: &str = "[KIND/][NAMESPACE/]NAME";
/// How the name is written where only one kind has a meaning.
pub(crate) const NAME_OF_KIND: &str = "[NAMESPACE/]NAME";

/// The names of the kinds, without the API group, as `kubectl` takes them.
const KINDS: [(SetKind, [&str; 3]); 2] = [
    (
        SetKind::FederatedReplicaSet,
        ["frs", "federatedreplicaset", "federatedreplicasets"],
    ),
    (
        SetKind::FederatedDeployment,
        ["fdeploy", "federateddeployment", "federateddeployments"],
    ),
];

/// What a user says of a set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SetName<'a> {
    pub(crate) kind: Option<SetKind>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl SetName<'_> {
    /// The set on `host`, by default in the namespace of its context.
    pub(crate) fn on(&self, host: &ClusterClient) -> SetRef {
        SetRef {
            kind: self.kind,
            namespace: self.namespace.unwrap_or(host.namespace()).to_owned(),
            name: self.name.to_owned(),
        }
    }
}

/// Reads `text`. `option` is the namespace of the option. A namespace that is named like a kind needs the option, or the kind
/// before it.
pub(crate) fn parse<'a>(text: &'a str, option: Option<&'a str>) -> anyhow::Result<SetName<'a>> {
    let of_kind = text.split_once('/');
    let of_kind = of_kind.and_then(|(prefix, rest)| Some((kind(prefix)?, rest)));
    let (kind, rest) = match of_kind {
        Some((kind, rest)) => (Some(kind), rest),
        None => (None, text),
    };
    let (namespace, name) = split(text, rest, option, SET_NAME)?;
    Ok(SetName {
        kind,
        namespace,
        name,
    })
}

/// Reads the `[NAMESPACE/]NAME` that `text` ends with. `form` is how `text` is written.
fn split<'a>(
    text: &str,
    rest: &'a str,
    option: Option<&'a str>,
    form: &str,
) -> anyhow::Result<(Option<&'a str>, &'a str)> {
    let (prefix, name) = match rest.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, rest),
    };
    if name.is_empty() || name.contains('/') || prefix == Some("") {
        bail!("invalid name {text:?}: must be {form}");
    }
    let namespace = match (prefix, option) {
        (Some(prefix), Some(option)) if prefix != option => {
            bail!("conflicting namespaces {prefix:?} and {option:?}")
        }
        (prefix, option) => prefix.or(option),
    };
    Ok((namespace, name))
}

/// Reads the name of a LocalReplicaSet or a pod: its namespace, if it has one, and the name. The kind may be before it, by one of
/// the names `kinds`.
pub(crate) fn parse_of_kind<'a>(
    text: &'a str,
    option: Option<&'a str>,
    kinds: &[&str],
) -> anyhow::Result<(Option<&'a str>, &'a str)> {
    let of_kind = text.split_once('/');
    let rest = of_kind.filter(|_| is_of_kind(text, kinds));
    split(
        text,
        rest.map_or(text, |(_, rest)| rest),
        option,
        NAME_OF_KIND,
    )
}

/// Whether a kind with one of the names `kinds` is before the name.
pub(crate) fn is_of_kind(text: &str, kinds: &[&str]) -> bool {
    let of_kind = text.split_once('/');
    of_kind.is_some_and(|(prefix, _)| kinds.contains(&without_group(prefix)))
}

/// As [`parse`], where only a FederatedDeployment has a meaning.
pub(crate) fn parse_deployment<'a>(
    text: &'a str,
    option: Option<&'a str>,
) -> anyhow::Result<SetName<'a>> {
    let set = parse(text, option)?;
    if set.kind == Some(SetKind::FederatedReplicaSet) {
        bail!("{text:?} is no FederatedDeployment: a FederatedReplicaSet has no rollouts");
    }
    Ok(SetName {
        kind: Some(SetKind::FederatedDeployment),
        ..set
    })
}

/// The kind of this name.
fn kind(name: &str) -> Option<SetKind> {
    let name = without_group(name);
    let mut kinds = KINDS.iter();
    let (kind, _) = kinds.find(|(_, names)| names.contains(&name))?;
    Some(*kind)
}

fn without_group(kind: &str) -> &str {
    kind.strip_suffix(".fedrs.dev").unwrap_or(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_named_as_for_kubectl() {
        let (frs, fdeploy) = (
            Some(SetKind::FederatedReplicaSet),
            Some(SetKind::FederatedDeployment),
        );
        for (text, option, kind, namespace, name) in [
            ("web", None, None, None, "web"),
            ("web", Some("shop"), None, Some("shop"), "web"),
            ("shop/web", None, None, Some("shop"), "web"),
            ("shop/web", Some("shop"), None, Some("shop"), "web"),
            ("frs/web", None, frs, None, "web"),
            ("fdeploy/web", Some("shop"), fdeploy, Some("shop"), "web"),
            ("fdeploy/shop/web", None, fdeploy, Some("shop"), "web"),
            ("frs/frs/web", None, frs, Some("frs"), "web"),
            ("federateddeployment/web", None, fdeploy, None, "web"),
            ("federatedreplicasets.fedrs.dev/web", None, frs, None, "web"),
        ] {
            let expected = SetName {
                kind,
                namespace,
                name,
            };
            assert_eq!(parse(text, option).unwrap(), expected, "{text} {option:?}");
        }
    }

    #[test]
    fn a_wrong_name_is_shown() {
        for (text, option, expected) in [
            (
                "",
                None,
                "invalid name \"\": must be [KIND/][NAMESPACE/]NAME",
            ),
            ("a/b/c", None, "invalid name \"a/b/c\""),
            ("/web", None, "invalid name \"/web\""),
            ("fdeploy/", None, "invalid name \"fdeploy/\""),
            (
                "shop/web",
                Some("blog"),
                "conflicting namespaces \"shop\" and \"blog\"",
            ),
        ] {
            let error = parse(text, option).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = parse_of_kind("frs/web/x", None, &["lrs"]);
        let error = error.unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid name \"frs/web/x\": must be [NAMESPACE/]NAME"
        );
        let error = parse_deployment("frs/web", None).unwrap_err().to_string();
        assert!(error.contains("has no rollouts"), "{error}");
        let named = parse_deployment("web", None).unwrap();
        assert_eq!(named, parse("fdeploy/web", None).unwrap());
    }
    #[test]
    fn a_kind_is_optional_where_only_one_has_a_meaning() {
        for (text, namespace) in [
            ("web", None),
            ("shop/web", Some("shop")),
            ("lrs/web", None),
            ("lrs.fedrs.dev/shop/web", Some("shop")),
            ("pod/web", Some("pod")),
        ] {
            let named = parse_of_kind(text, None, &["lrs"]).unwrap();
            assert_eq!(named, (namespace, "web"), "{text}");
        }
    }
}
