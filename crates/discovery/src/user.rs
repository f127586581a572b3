//! Users: who clients are, as the API server of the host knows them.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The group of everybody who is known, which the API server adds, too.
const AUTHENTICATED: &str = "system:authenticated";

/// A user, with what authorizers may look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// The user of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateUser {
    pub(crate) user: Arc<User>,
    /// The end of the certificate: nobody is this user by it from then on.
    pub(crate) expires: Timestamp,
}

/// A certificate names no user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidCertificate {
    #[error("it is no X.509 certificate")]
    NoCertificate,
    #[error("its subject has no common name")]
    NoCommonName,
}

impl CertificateUser {
    /// As the API server does it: the common name is the user, the organizations are its groups.
    ///
    /// # Errors
    /// If the certificate has no common name.
    pub(crate) fn of(der: &[u8]) -> Result<Self, InvalidCertificate> {
        let parsed = X509Certificate::from_der(der);
        let (_, certificate) = parsed.map_err(|_| InvalidCertificate::NoCertificate)?;
        let subject = certificate.subject();
        let names = subject.iter_common_name();
        let name = names.last().and_then(|name| name.as_str().ok());
        let name = name.filter(|name| !name.is_empty());
        let groups = subject.iter_organization();
        let groups = groups.filter_map(|group| group.as_str().ok());
        let expires = certificate.validity().not_after.timestamp();
        Ok(Self {
            user: Arc::new(User {
                name: name.ok_or(InvalidCertificate::NoCommonName)?.to_owned(),
                groups: groups.chain([AUTHENTICATED]).map(str::to_owned).collect(),
                ..User::default()
            }),
            expires: Timestamp::from_second(expires).unwrap_or(Timestamp::MIN),
        })
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};
    use rstest::rstest;

    use super::*;

    fn certificate(subject: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.not_after = rcgen::date_time_ymd(2030, 1, 2);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        certificate.der().to_vec()
    }

    #[test]
    fn a_certificate_names_a_user_and_its_groups() {
        let der = certificate(&[
            (DnType::CommonName, "checkout"),
            (DnType::OrganizationName, "shop"),
        ]);
        let found = CertificateUser::of(&der).unwrap();
        assert_eq!(found.user.name, "checkout");
        assert_eq!(found.user.groups, ["shop", "system:authenticated"]);
        assert_eq!(found.expires.to_string(), "2030-01-02T00:00:00Z");
    }

    #[rstest]
    #[case::no_bytes(vec![], InvalidCertificate::NoCertificate)]
    #[case::text(b"certificate".to_vec(), InvalidCertificate::NoCertificate)]
    #[case::no_name(certificate(&[(DnType::OrganizationName, "shop")]), InvalidCertificate::NoCommonName)]
    #[case::empty_name(certificate(&[(DnType::CommonName, "")]), InvalidCertificate::NoCommonName)]
    fn a_certificate_without_a_name_is_nobody(
        #[case] der: Vec<u8>,
        #[case] error: InvalidCertificate,
    ) {
        assert_eq!(CertificateUser::of(&der).unwrap_err(), error);
    }
}
