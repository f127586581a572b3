//! Resolves the source of each member's kubeconfig, from the files of the members directory, MemberClusters and Secrets. Pure;
//! the members' task acts on it.
//!
//! | file | Secret named | |
//! | --- | --- | --- |
//! | yes | no  | the file |
//! | no  | yes | the Secret; without it, or with a bad one, the member is left as it is |
//! | yes | yes | an error that names both; the client in use stays |
//! | no  | no  | the member is removed: lost, after its grace period |

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{MemberClusterSpec, MemberSource};

use super::{
    kubeconfig::{Kubeconfig, KubeconfigError},
    secret::KubeconfigSecret,
    source_error::{SecretsForbidden, SourceError},
};
use crate::config::SecretKubeconfigs;

/// Where a kubeconfig is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The directory.
    File,
    /// The Secret of this name.
    Secret(String),
}

impl Origin {
    /// The source in the status of a MemberCluster.
    pub(super) fn source(&self) -> MemberSource {
        match self {
            Self::File => MemberSource::File,
            Self::Secret(_) => MemberSource::Secret,
        }
    }
}

/// A file or a Secret with a kubeconfig, in one state: another state is another value behind another [`Arc`].
pub(super) struct Source {
    pub(super) origin: Origin,
    /// The origin, for messages.
    pub(super) place: String,
    pub(super) kubeconfig: Result<Kubeconfig, KubeconfigError>,
    /// The Secret; `None` for a file.
    pub(super) secret: Option<KubeconfigSecret>,
}

impl Source {
    /// The name of the Secret and the text of its kubeconfig, if its token is to be renewed.
    pub(super) fn renewed(&self) -> Option<(&str, &str)> {
        match (&self.origin, &self.secret) {
            (Origin::Secret(name), Some(secret)) if secret.renew => {
                Some((name, secret.text.as_deref().ok()?))
            }
            _ => None,
        }
    }

    /// Why the kubeconfig can't be used.
    pub(super) fn invalid(&self, error: &KubeconfigError) -> SourceError {
        SourceError::Invalid {
            place: self.place.clone(),
            error: error.clone(),
        }
    }

    fn resolve(self: &Arc<Self>) -> ResolvedSource {
        match &self.kubeconfig {
            Ok(_) => ResolvedSource::Follow(Arc::clone(self)),
            Err(error) => ResolvedSource::Error(self.invalid(error)),
        }
    }
}

/// All sources.
pub(super) struct Sources {
    /// The namespace of the Secrets.
    namespace: String,
    allowed: SecretKubeconfigs,
    files: BTreeMap<String, Arc<Source>>,
    directory_complete: bool,
    directory_emptied: bool,
    secrets: BTreeMap<String, Arc<Source>>,
    /// Whether the Secrets are listed, or the controller may not read them; `None` before the first list.
    secrets_listed: Option<Result<(), SecretsForbidden>>,
    /// MemberClusters, with the Secrets they name.
    objects: BTreeMap<String, Option<String>>,
    /// The Secrets of discovery that MemberClusters name.
    of_discovery: BTreeMap<String, String>,
    objects_complete: bool,
}

/// The kubeconfig that a member's client is made from, or why there is none.
pub(super) enum ResolvedSource {
    /// Some sources are not read yet.
    Unknown,
    /// The member is reached with this kubeconfig, which is valid.
    Follow(Arc<Source>),
    /// The source can't be used.
    Error(SourceError),
    /// It has no kubeconfig.
    Removed,
    /// Neither a file nor a MemberCluster names it any more.
    Gone,
}

impl Sources {
    pub(super) fn new(namespace: &str, allowed: SecretKubeconfigs) -> Self {
        Self {
            namespace: namespace.to_owned(),
            allowed,
            files: BTreeMap::new(),
            directory_complete: false,
            directory_emptied: false,
            secrets: BTreeMap::new(),
            secrets_listed: None,
            objects: BTreeMap::new(),
            of_discovery: BTreeMap::new(),
            objects_complete: false,
        }
    }

    /// The file at `place` has a kubeconfig for the member `name`, or one that can't be used.
    pub(super) fn put_file(
        &mut self,
        name: &str,
        place: String,
        kubeconfig: Result<Kubeconfig, KubeconfigError>,
    ) {
        self.directory_emptied = false;
        let source = Source {
            origin: Origin::File,
            place,
            kubeconfig,
            secret: None,
        };
        self.files.insert(name.to_owned(), source.into());
    }

    /// The directory has no kubeconfig for the member `name` any more.
    pub(super) fn remove_file(&mut self, name: &str) {
        self.files.remove(name);
    }

    /// All files are gone at once: their kubeconfigs stay in use for members that name no Secret, now or later.
    pub(super) fn empty_directory(&mut self) {
        self.directory_emptied = true;
        let named = |name: &String| matches!(self.objects.get(name), Some(Some(_)));
        self.files.retain(|name, _| !named(name));
    }

    /// All files have been read once.
    pub(super) fn complete_directory(&mut self) {
        self.directory_complete = true;
    }

    /// Stores the spec of the MemberCluster `name`; none if it does not exist. Returns whether that changes its kubeconfigs.
    pub(super) fn put_object(&mut self, name: &str, spec: Option<&MemberClusterSpec>) -> bool {
        let of_discovery = spec.and_then(|spec| spec.discovery_secret_ref.as_ref());
        let of_discovery = of_discovery.map(|secret| secret.name.clone());
        let known_of_discovery = match of_discovery.clone() {
            Some(secret) => self.of_discovery.insert(name.to_owned(), secret),
            None => self.of_discovery.remove(name),
        };
        let Some(spec) = spec else {
            return self.objects.remove(name).is_some();
        };
        let secret = spec.secret_ref.as_ref().map(|secret| secret.name.clone());
        if self.directory_emptied && secret.is_some() {
            self.files.remove(name);
        }
        let known = self.objects.insert(name.to_owned(), secret.clone());
        known != Some(secret) || known_of_discovery != of_discovery
    }

    /// All MemberClusters are listed.
    pub(super) fn complete_objects(&mut self) {
        self.objects_complete = true;
    }

    /// Stores the Secret `name`; none if it does not exist. Returns the members whose kubeconfig it may change.
    pub(super) fn put_secret(
        &mut self,
        name: &str,
        secret: Option<KubeconfigSecret>,
    ) -> Vec<String> {
        let known = self.secrets.get(name);
        if known.and_then(|source| source.secret.as_ref()) == secret.as_ref() {
            return Vec::new();
        }
        if let Some(secret) = secret {
            let source = Source {
                origin: Origin::Secret(name.to_owned()),
                place: self.place(name),
                kubeconfig: secret.kubeconfig(self.allowed),
                secret: Some(secret),
            };
            self.secrets.insert(name.to_owned(), source.into());
        } else {
            self.secrets.remove(name);
        }
        let named = self
            .objects
            .iter()
            .filter_map(|(member, secret)| Some((member, secret.as_ref()?)));
        let members = named
            .chain(&self.of_discovery)
            .filter(|(_, secret)| *secret == name);
        members.map(|(member, _)| member.clone()).collect()
    }

    /// The kubeconfig of discovery for the member `name`, if there is one.
    pub(super) fn of_discovery(&self, name: &str) -> Option<&Arc<Source>> {
        self.secrets.get(self.of_discovery.get(name)?)
    }

    /// All Secrets are listed, or the controller may not read them. Returns whether that has changed.
    pub(super) fn complete_secrets(&mut self, listed: Result<(), SecretsForbidden>) -> bool {
        let listed = Some(listed);
        let has_changed = self.secrets_listed != listed;
        self.secrets_listed = listed;
        has_changed
    }

    /// Whether all sources have been read once.
    pub(super) fn is_complete(&self) -> bool {
        self.directory_complete && self.objects_complete && self.secrets_listed.is_some()
    }

    /// All members that any source names.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .files
            .keys()
            .chain(self.objects.keys())
            .cloned()
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Whether the directory has a file for the member.
    pub(super) fn has_file(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Resolves the source of the member `name`.
    pub(super) fn resolve(&self, name: &str) -> ResolvedSource {
        let object = self.objects.get(name);
        match (self.files.get(name), object.and_then(Option::as_deref)) {
            (Some(file), Some(secret)) => ResolvedSource::Error(SourceError::Duplicate {
                file: file.place.clone(),
                secret: self.place(secret),
            }),
            (Some(file), None) => file.resolve(),
            (None, Some(secret)) => self.resolve_secret(secret),
            // A file may still be found.
            (None, None) if !self.directory_complete => ResolvedSource::Unknown,
            (None, None) if object.is_some() => ResolvedSource::Removed,
            (None, None) => ResolvedSource::Gone,
        }
    }

    fn resolve_secret(&self, name: &str) -> ResolvedSource {
        let place = self.place(name);
        match (self.secrets.get(name), &self.secrets_listed) {
            (None, None) => ResolvedSource::Unknown,
            (None, Some(Err(error))) => {
                let error = error.clone();
                ResolvedSource::Error(SourceError::SecretsForbidden { place, error })
            }
            (None, Some(Ok(()))) => ResolvedSource::Error(SourceError::SecretMissing { place }),
            (Some(source), _) => source.resolve(),
        }
    }

    fn place(&self, secret: &str) -> String {
        format!("Secret {}/{secret}", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], \
                              clusters: [{name: c, cluster: {server: 'https://c'}}], users: [{name: u, user: {token: t}}]}";

    fn secret(text: &str) -> KubeconfigSecret {
        KubeconfigSecret {
            text: Ok(text.to_owned()),
            renew: true,
        }
    }

    const FILE: &str = "file members/eu.yaml";

    fn file() -> Kubeconfig {
        Kubeconfig::read(KUBECONFIG).unwrap()
    }

    fn naming(secret: Option<&str>) -> MemberClusterSpec {
        let secret_ref = secret.map(|name| fedrs_api::SecretRef { name: name.into() });
        MemberClusterSpec {
            secret_ref,
            ..MemberClusterSpec::default()
        }
    }

    fn complete() -> Sources {
        let mut sources = Sources::new("fedrs-system", SecretKubeconfigs::default());
        sources.complete_directory();
        sources.complete_objects();
        sources.complete_secrets(Ok(()));
        sources
    }

    /// The resolved source of the member `eu` as text.
    fn words(sources: &Sources) -> String {
        match sources.resolve("eu") {
            ResolvedSource::Unknown => "unknown".to_owned(),
            ResolvedSource::Follow(source) => {
                let renewed = source.renewed().map_or("", |_| " renewed");
                format!("{:?} at {}{renewed}", source.origin, source.place)
            }
            ResolvedSource::Error(error) => {
                let credentials = if error.withdraws_credentials() {
                    "withdrawn"
                } else {
                    "kept"
                };
                format!("{} {credentials}: {error}", error.reason())
            }
            ResolvedSource::Removed => "removed".to_owned(),
            ResolvedSource::Gone => "gone".to_owned(),
        }
    }

    #[test]
    fn each_source_alone_both_and_none() {
        let mut sources = complete();
        assert_eq!(words(&sources), "gone");
        sources.put_object("eu", Some(&naming(None)));
        assert_eq!(words(&sources), "removed");
        sources.put_file("eu", FILE.to_owned(), Ok(file()));
        assert_eq!(words(&sources), "File at file members/eu.yaml");
        sources.put_object("eu", Some(&naming(Some("eu-1"))));
        let both = words(&sources);
        assert!(
            both.starts_with("DuplicateSource kept: file members/eu.yaml and Secret"),
            "{both}"
        );
        assert!(both.contains("Secret fedrs-system/eu-1"), "{both}");
        sources.put_object("eu", Some(&naming(None)));
        sources.put_file("eu", FILE.to_owned(), Err(KubeconfigError::NotText));
        assert_eq!(
            words(&sources),
            "InvalidKubeconfig kept: file members/eu.yaml: the kubeconfig is not UTF-8 text"
        );
        sources.put_object("eu", Some(&naming(Some("eu-1"))));
        sources.remove_file("eu");
        let missing = "SecretMissing withdrawn: Secret fedrs-system/eu-1 does not exist, or its type is not fedrs.dev/kubeconfig";
        assert_eq!(words(&sources), missing);
        assert_eq!(sources.put_secret("eu-1", Some(secret(KUBECONFIG))), ["eu"]);
        assert_eq!(
            words(&sources),
            "Secret(\"eu-1\") at Secret fedrs-system/eu-1 renewed"
        );
        sources.put_secret("eu-1", None);
        assert_eq!(words(&sources), missing);
        sources.put_object("eu", None);
        assert_eq!(words(&sources), "gone");
    }

    #[test]
    fn kubeconfigs_of_an_emptied_directory_stay_in_use_except_of_members_with_a_secret() {
        let mut sources = complete();
        sources.put_secret("eu-1", Some(secret(KUBECONFIG)));
        let (by_file, by_secret) = (
            "File at file members/eu.yaml",
            "Secret(\"eu-1\") at Secret fedrs-system/eu-1 renewed",
        );
        for named_before in [true, false] {
            sources.put_object("eu", None);
            sources.put_file("eu", FILE.to_owned(), Ok(file()));
            if named_before {
                sources.put_object("eu", Some(&naming(Some("eu-1"))));
                assert!(words(&sources).starts_with("DuplicateSource"));
            }
            sources.empty_directory();
            if !named_before {
                assert_eq!(words(&sources), by_file);
                sources.put_object("eu", Some(&naming(Some("eu-1"))));
            }
            assert_eq!(words(&sources), by_secret);
            sources.put_file("eu", FILE.to_owned(), Ok(file()));
            assert!(words(&sources).starts_with("DuplicateSource"), "it is back");
            sources.empty_directory();
            sources.put_object("eu", None);
            assert_eq!(words(&sources), "gone", "the file does not bring it back");
        }
    }

    #[test]
    fn the_secret_of_discovery_is_that_of_its_member() {
        let mut sources = complete();
        let of_discovery = |name: &str| Some(fedrs_api::SecretRef { name: name.into() });
        let spec = MemberClusterSpec {
            discovery_secret_ref: of_discovery("discovery-eu"),
            ..naming(Some("eu-1"))
        };
        assert!(sources.put_object("eu", Some(&spec)));
        assert!(!sources.put_object("eu", Some(&spec)));
        assert!(sources.of_discovery("eu").is_none());
        let changed = sources.put_secret("discovery-eu", Some(secret(KUBECONFIG)));
        assert_eq!(changed, ["eu"]);
        assert!(
            sources
                .of_discovery("eu")
                .is_some_and(|source| source.renewed().is_some())
        );
        assert!(
            words(&sources).starts_with("SecretMissing"),
            "it is not the controller's"
        );
        assert!(sources.put_object("eu", Some(&naming(Some("eu-1")))));
        assert!(sources.of_discovery("eu").is_none());
    }

    #[test]
    fn an_unusable_secret_is_reported_by_name() {
        let plugin = KUBECONFIG.replace("token: t", "exec: {command: sh}");
        let insecure =
            KUBECONFIG.replace("'https://c'", "'https://c', insecure-skip-tls-verify: true");
        let keyless = KubeconfigSecret {
            text: Err(KubeconfigError::NoKey("kubeconfig")),
            renew: false,
        };
        for (secret, part) in [
            (keyless, "the Secret has no key \"kubeconfig\""),
            (secret("s3cret"), "not a kubeconfig"),
            (secret(&plugin), "exec of the user would run a program"),
            (
                secret(&insecure),
                "key kubeconfig: insecure-skip-tls-verify is true",
            ),
        ] {
            let mut sources = complete();
            sources.put_object("eu", Some(&naming(Some("eu-1"))));
            sources.put_secret("eu-1", Some(secret));
            let words = words(&sources);
            assert!(
                words.starts_with("InvalidKubeconfig kept: Secret fedrs-system/eu-1: "),
                "{words}"
            );
            assert!(words.contains(part) && !words.contains("s3cret"), "{words}");
        }
    }

    #[test]
    fn nothing_is_removed_or_missing_before_the_first_lists() {
        let mut sources = Sources::new("fedrs-system", SecretKubeconfigs::default());
        sources.put_object("eu", Some(&naming(None)));
        assert_eq!(words(&sources), "unknown");
        sources.put_object("eu", Some(&naming(Some("eu-1"))));
        assert_eq!(words(&sources), "unknown");
        sources.complete_directory();
        sources.complete_objects();
        assert_eq!(
            (words(&sources), sources.is_complete()),
            ("unknown".into(), false)
        );
        let forbidden = SecretsForbidden {
            namespace: "fedrs-system".to_owned(),
            response: "403".to_owned(),
        };
        assert!(sources.complete_secrets(Err(forbidden.clone())));
        assert!(!sources.complete_secrets(Err(forbidden)), "no news");
        assert_eq!(
            words(&sources),
            "SecretMissing withdrawn: Secret fedrs-system/eu-1 can't be read: \
             the controller may not read Secrets of namespace fedrs-system: 403"
        );
        assert!(sources.is_complete());
    }

    #[test]
    fn a_change_is_another_source_and_no_change_is_no_news() {
        let followed = |sources: &Sources| match sources.resolve("eu") {
            ResolvedSource::Follow(source) => source,
            _ => panic!("{}", words(sources)),
        };
        let mut sources = complete();
        assert!(sources.put_object("eu", Some(&naming(Some("eu-1")))));
        assert!(!sources.put_object("eu", Some(&naming(Some("eu-1")))));
        sources.put_secret("eu-1", Some(secret(KUBECONFIG)));
        let first = followed(&sources);
        assert!(
            sources
                .put_secret("eu-1", Some(secret(KUBECONFIG)))
                .is_empty()
        );
        assert!(Arc::ptr_eq(&followed(&sources), &first));
        let other = KUBECONFIG.replace("token: t", "token: s");
        assert_eq!(sources.put_secret("eu-1", Some(secret(&other))), ["eu"]);
        assert!(!Arc::ptr_eq(&followed(&sources), &first));
        assert!(
            sources
                .put_secret("another", Some(secret(&other)))
                .is_empty()
        );
    }
}
