//! The zone that the service answers for.

use hickory_proto::rr::{
    Name, RData, Record, RecordType,
    rdata::{NS, SOA},
};

use crate::{set::SetKey, snapshot::Endpoint};

/// The label above the namespaces.
const ZONE: &str = "endpoints";
/// How long secondary servers would wait, in seconds. There are none: the zone can't be transferred.
const REFRESH: i32 = 3600;
const RETRY: i32 = 600;
const EXPIRE: i32 = 86_400;

/// The zone `endpoints.DOMAIN`.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) name: Name,
    /// For how long clients may keep an answer, in seconds; also that a name does not exist.
    pub(super) ttl: u32,
}

/// The domain is no valid DNS name.
#[derive(Debug, thiserror::Error)]
#[error("the domain {domain:?} is not valid: {message}")]
pub struct InvalidDomain {
    domain: String,
    message: String,
}

impl Zone {
    pub(super) fn new(domain: &str, ttl: u32) -> Result<Self, InvalidDomain> {
        let invalid = |message: String| InvalidDomain {
            domain: domain.to_owned(),
            message,
        };
        let is_empty = domain.trim_end_matches('.').is_empty();
        let mut name = match Name::from_ascii(format!("{ZONE}.{domain}")) {
            Ok(_) if is_empty => return Err(invalid("it is empty".to_owned())),
            Ok(name) => name.to_lowercase(),
            Err(error) => return Err(invalid(error.to_string())),
        };
        name.set_fqdn(true);
        Ok(Self { name, ttl })
    }

    /// The labels of `name` below the zone, from left to right and in lower case. None if it is not in the zone, or a label is no text.
    pub(super) fn labels_of(&self, name: &Name) -> Option<Vec<String>> {
        if !self.name.zone_of(name) {
            return None;
        }
        let below = name.iter().count() - self.name.iter().count();
        let labels = name.iter().take(below);
        labels
            .map(|label| Some(std::str::from_utf8(label).ok()?.to_ascii_lowercase()))
            .collect()
    }

    /// The name of an endpoint.
    pub(super) fn endpoint_name(&self, key: &SetKey, endpoint: &Endpoint) -> Option<Name> {
        let labels = endpoint.name().split('.');
        let labels = labels.chain([endpoint.cluster(), &*key.name, &*key.namespace]);
        let name = Name::from_labels(labels.map(str::as_bytes)).ok()?;
        name.append_domain(&self.name).ok()
    }

    /// Says for how long clients may keep that a name, or a record, does not exist.
    pub(super) fn soa(&self) -> Record {
        let mailbox = self.name.prepend_label("hostmaster");
        let mailbox = mailbox.unwrap_or_else(|_| self.name.clone());
        let ttl = self.ttl;
        let data = SOA::new(self.name.clone(), mailbox, 1, REFRESH, RETRY, EXPIRE, ttl);
        Record::from_rdata(self.name.clone(), ttl, RData::SOA(data))
    }

    /// The records of the zone itself.
    pub(super) fn own_records(&self, kind: RecordType) -> Vec<Record> {
        let ns = || RData::NS(NS(self.name.clone()));
        match kind {
            RecordType::SOA => vec![self.soa()],
            RecordType::NS => vec![Record::from_rdata(self.name.clone(), self.ttl, ns())],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_checked_and_compared_without_case() {
        let zone = Zone::new("Fleet.example", 5).expect("it is valid");
        let name = |text: &str| Name::from_ascii(text).expect("it is a name");
        let labels = zone.labels_of(&name("Web.Default.Endpoints.FLEET.example."));
        assert_eq!(labels, Some(vec!["web".to_owned(), "default".to_owned()]));
        assert_eq!(zone.labels_of(&name("web.default.fleet.example.")), None);
        for wrong in ["", ".", "a..b", &"a".repeat(64)] {
            let error = Zone::new(wrong, 5).expect_err("it is invalid").to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
