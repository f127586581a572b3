//! The names of resources: `SET.NAMESPACE` or `SET.NAMESPACE:PORT`, the same for listeners, routes, clusters and endpoints.

use crate::set::SetKey;

/// What a name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResourceName<'a> {
    pub(super) key: SetKey,
    /// The name that the set gives the port; the first port, if absent.
    pub(super) port: Option<&'a str>,
}

impl<'a> ResourceName<'a> {
    /// `None` if it is no name of a resource. Neither names of sets nor those of namespaces have dots.
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        let (set, port) = match name.split_once(':') {
            Some((set, port)) => (set, Some(port)),
            None => (name, None),
        };
        let (name, namespace) = set.split_once('.')?;
        let is_valid = !name.is_empty() && !namespace.is_empty() && !namespace.contains('.');
        is_valid.then(|| Self {
            key: SetKey::new(namespace, name),
            port,
        })
    }
}

/// The name of the first port of a set.
pub(super) fn of_set(key: &SetKey) -> String {
    format!("{}.{}", key.name, key.namespace)
}

/// The name of a port of a set.
pub(super) fn of_port(key: &SetKey, port: &str) -> String {
    format!("{}.{}:{port}", key.name, key.namespace)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("web.shop", Some(("shop", "web", None)))]
    #[case("web.shop:http", Some(("shop", "web", Some("http"))))]
    #[case("web.shop:", Some(("shop", "web", Some(""))))]
    #[case("web", None)]
    #[case("", None)]
    #[case(".shop", None)]
    #[case("web.", None)]
    #[case("web.shop.svc", None)]
    fn d1_a_name_is_of_a_set_or_of_a_port(
        #[case] name: &str,
        #[case] expected: Option<(&str, &str, Option<&str>)>,
    ) {
        let parsed = ResourceName::parse(name);
        let expected = expected.map(|(namespace, name, port)| ResourceName {
            key: SetKey::new(namespace, name),
            port,
        });
        assert_eq!(parsed, expected);
        if let Some(parsed) = parsed {
            let again = match parsed.port {
                None => of_set(&parsed.key),
                Some(port) => of_port(&parsed.key, port),
            };
            assert_eq!(again, name);
        }
    }
}
