//! What the name in a DNS query asks for.
//!
//! ```text
//! endpoints.DOMAIN                               the zone
//! SET.NAMESPACE.endpoints.DOMAIN                 a set: A, AAAA, SRV of all its ports
//! _PORT._tcp.SET.NAMESPACE.endpoints.DOMAIN      one port of a set: SRV
//! POD.CLUSTER.SET.NAMESPACE.endpoints.DOMAIN     one endpoint: A, AAAA
//! ```

use crate::set::SetKey;

/// What a name below the zone is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The zone itself.
    Zone,
    /// All endpoints of a set.
    Set(SetKey),
    /// A port of a set.
    Port {
        set: SetKey,
        /// The name of the port.
        port: String,
    },
    /// An endpoint of a set.
    Endpoint {
        set: SetKey,
        cluster: String,
        /// The name of the pod.
        pod: String,
    },
    /// Nothing, but there may be names below it.
    Between,
    /// Nothing, here and below.
    Nothing,
}

/// The question of the labels below the zone, from left to right and in lower case.
pub(super) fn question(labels: &[&str]) -> Question {
    let set = |name: &str, namespace: &str| SetKey::new(namespace, name);
    match labels {
        [] => Question::Zone,
        [_] => Question::Between,
        [name, namespace] if !name.starts_with('_') => Question::Set(set(name, namespace)),
        [protocol, _, _] if is_protocol(protocol) => Question::Between,
        [port, protocol, name, namespace] if is_protocol(protocol) => {
            match port.strip_prefix('_') {
                Some(port) => Question::Port {
                    set: set(name, namespace),
                    port: port.to_owned(),
                },
                None => Question::Nothing,
            }
        }
        [_cluster, _, _] => Question::Between,
        [pod @ .., cluster, name, namespace] => Question::Endpoint {
            set: set(name, namespace),
            cluster: (*cluster).to_owned(),
            // Names of pods may have dots.
            pod: pod.join("."),
        },
        _ => Question::Nothing,
    }
}

fn is_protocol(label: &str) -> bool {
    matches!(label, "_tcp" | "_udp")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn web() -> SetKey {
        SetKey::new("default", "web")
    }

    #[rstest]
    #[case::the_zone("", Question::Zone)]
    #[case::a_namespace("default", Question::Between)]
    #[case::a_set("web.default", Question::Set(web()))]
    #[case::a_port("_http._tcp.web.default", Question::Port { set: web(), port: "http".into() })]
    #[case::ports("_tcp.web.default", Question::Between)]
    #[case::a_cluster("eu.web.default", Question::Between)]
    #[case::an_endpoint(
        "web-1.eu.web.default",
        Question::Endpoint { set: web(), cluster: "eu".into(), pod: "web-1".into() }
    )]
    #[case::an_endpoint_with_dots(
        "a.b.eu.web.default",
        Question::Endpoint { set: web(), cluster: "eu".into(), pod: "a.b".into() }
    )]
    #[case::a_port_without_underscore("http._tcp.web.default", Question::Nothing)]
    #[case::a_protocol_without_a_set("_tcp.default", Question::Nothing)]
    fn d1_a_name_asks_for_a_set_a_port_or_an_endpoint(
        #[case] name: &str,
        #[case] expected: Question,
    ) {
        let labels: Vec<_> = name.split_terminator('.').collect();
        assert_eq!(question(&labels), expected);
    }
}
