//! What an answer looks like: for people, for programs, and as configuration of balancers.
//!
//! Balancers get the endpoints that new requests may be sent to, with one cluster, upstream or backend for each port, by the name
//! `NAMESPACE/SET/PORT` (nginx, haproxy: with `_` in the place of `/`).

use std::{collections::BTreeMap, fmt::Write as _, net::IpAddr};

use clap::ValueEnum;
use discovery::{Answer, AnswerEndpoint};
use serde_json::{Value, json};

use crate::output::{self, Format};

/// The formats of `fedrs resolve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// A table
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Envoy's endpoints, for a `path_config_source` of EDS
    Envoy,
    /// An `upstream` of nginx for each port
    Nginx,
    /// A `backend` of haproxy for each port
    Haproxy,
}

/// The answer as text, with a newline at the end.
pub(super) fn render(answer: &Answer, output: Output) -> String {
    match output {
        Output::Table => table(answer),
        Output::Json => Format::Json.serialize(answer),
        Output::Yaml => Format::Yaml.serialize(answer),
        Output::Envoy => Format::Json.serialize(&envoy(answer)),
        Output::Nginx => nginx(answer),
        Output::Haproxy => haproxy(answer),
    }
}

fn table(answer: &Answer) -> String {
    let header = ["CLUSTER", "ZONE", "NAME", "ADDRESSES", "PORTS", "STATE"];
    let or_none = |text: Option<&str>| text.unwrap_or("<none>").to_owned();
    let listed = |items: Vec<String>| {
        let items = Some(items.join(",")).filter(|items| !items.is_empty());
        or_none(items.as_deref())
    };
    let rows = answer.endpoints.iter().map(|endpoint| {
        let addresses = endpoint.addresses.iter().map(ToString::to_string);
        let ports = endpoint.ports.iter();
        let ports = ports.map(|(name, number)| format!("{name}:{number}"));
        vec![
            endpoint.cluster.clone(),
            or_none(endpoint.zone.as_deref()),
            endpoint.name.clone(),
            listed(addresses.collect()),
            listed(ports.collect()),
            state(endpoint).to_owned(),
        ]
    });
    let mut text = output::table(&header, 0..0, rows.collect());
    for member in &answer.stale_members {
        let _ = match member.seconds {
            Some(seconds) => writeln!(
                text,
                "{}: changes of the last {seconds} s may be missing",
                member.name
            ),
            None => writeln!(text, "{}: its pods are not known", member.name),
        };
    }
    text
}

fn state(endpoint: &AnswerEndpoint) -> &'static str {
    match (endpoint.terminating, endpoint.serving) {
        (true, true) => "Terminating",
        (true, false) => "Terminating, not ready",
        (false, true) => "Ready",
        (false, false) => "Not ready",
    }
}

/// The endpoints that new requests may be sent to, by port: each with its address.
fn by_port(answer: &Answer) -> BTreeMap<&str, Vec<(&AnswerEndpoint, IpAddr, u16)>> {
    let mut ports = BTreeMap::<_, Vec<_>>::new();
    for endpoint in &answer.endpoints {
        let Some(&address) = endpoint.addresses.first() else {
            continue;
        };
        for (name, &port) in &endpoint.ports {
            let of_port = ports.entry(name.as_str()).or_default();
            if endpoint.ready {
                of_port.push((endpoint, address, port));
            }
        }
    }
    ports
}

fn envoy(answer: &Answer) -> Value {
    let resources = by_port(answer).into_iter().map(|(port, endpoints)| {
        let mut places = BTreeMap::<_, Vec<_>>::new();
        for (endpoint, address, port) in endpoints {
            let place = (
                &endpoint.cluster,
                endpoint.zone.as_deref().unwrap_or_default(),
            );
            places.entry(place).or_default().push(json!({
                "endpoint": { "address": { "socket_address": {
                    "address": address, "port_value": port,
                } } },
            }));
        }
        let places = places.into_iter().map(|((cluster, zone), endpoints)| {
            json!({
                "locality": { "region": cluster, "zone": zone },
                "load_balancing_weight": endpoints.len(),
                "lb_endpoints": endpoints,
            })
        });
        json!({
            "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            "cluster_name": format!("{}/{}/{port}", answer.namespace, answer.name),
            "endpoints": places.collect::<Vec<_>>(),
        })
    });
    json!({ "version_info": answer.version.to_string(), "resources": resources.collect::<Vec<_>>() })
}

fn nginx(answer: &Answer) -> String {
    let mut text = String::new();
    for (port, endpoints) in by_port(answer) {
        let _ = writeln!(
            text,
            "upstream {}_{}_{port} {{",
            answer.namespace, answer.name
        );
        for (endpoint, address, port) in &endpoints {
            let address = std::net::SocketAddr::new(*address, *port);
            let (cluster, name) = (&endpoint.cluster, &endpoint.name);
            let _ = writeln!(text, "    server {address}; # {cluster}/{name}");
        }
        if endpoints.is_empty() {
            // nginx does not start with an upstream without servers.
            let _ = writeln!(text, "    server 127.0.0.1:1 down;");
        }
        text.push_str("}\n");
    }
    text
}

fn haproxy(answer: &Answer) -> String {
    let mut text = String::new();
    for (port, endpoints) in by_port(answer) {
        let _ = writeln!(text, "backend {}_{}_{port}", answer.namespace, answer.name);
        for (endpoint, address, port) in endpoints {
            let address = std::net::SocketAddr::new(address, port);
            let (cluster, name) = (&endpoint.cluster, &endpoint.name);
            let _ = writeln!(text, "    server {cluster}_{name} {address} check");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        serde_json::from_value(json!({
            "namespace": "default", "name": "web", "version": 7,
            "endpoints": [
                { "name": "web-1", "cluster": "eu", "zone": "eu-1", "node": "n1", "addresses": ["10.0.0.1", "fd00::1"],
                  "ports": { "http": 8080, "metrics": 9090 }, "ready": true, "serving": true, "terminating": false },
                { "name": "web-2", "cluster": "eu", "addresses": ["fd00::2"], "ports": { "http": 8080 },
                  "ready": true, "serving": true, "terminating": false },
                { "name": "web-3", "cluster": "us", "addresses": ["10.0.0.3"], "ports": { "http": 8080, "metrics": 9090 },
                  "ready": false, "serving": true, "terminating": true },
                { "name": "web-4", "cluster": "us", "addresses": [], "ready": false, "serving": false, "terminating": false },
            ],
            "staleMembers": [{ "name": "us", "seconds": 12 }, { "name": "ap" }],
        }))
        .expect("it is an answer")
    }

    #[test]
    fn an_answer_is_shown_in_each_format() {
        let formats = [Output::Table, Output::Envoy, Output::Nginx, Output::Haproxy];
        let texts = formats.map(|output| render(&answer(), output));
        insta::assert_snapshot!(texts.join("----\n"));
    }

    #[test]
    fn a_port_without_ready_endpoints_keeps_its_upstream() {
        let mut answer = answer();
        answer.endpoints.retain(|endpoint| endpoint.name == "web-3");
        let text = render(&answer, Output::Nginx);
        assert_eq!(
            text.matches("server 127.0.0.1:1 down;").count(),
            2,
            "{text}"
        );
    }
}
