//! What a kubeconfig from a Secret may contain.
//!
//! Whoever can write the Secret decides what the controller does: a program would run as the controller, and a file would
//! be one of the controller's own, above all its token, sent to a server of the writer's choice.

use http::{Uri, uri::Scheme};

use super::{Insecure, Kubeconfig, KubeconfigError};
use crate::config::SecretKubeconfigs;

impl Kubeconfig {
    /// Fails if a Secret must not contain this kubeconfig. Only the entries of the current context count: no others are
    /// ever used.
    pub fn check_permitted(&self, allowed: SecretKubeconfigs) -> Result<(), KubeconfigError> {
        let programs = [
            ("exec", self.user.exec.is_some()),
            ("auth-provider", self.user.auth_provider.is_some()),
        ];
        let program = programs.into_iter().find(|(_, is_there)| *is_there);
        if let Some((field, _)) = program.filter(|_| !allowed.allow_exec) {
            return Err(KubeconfigError::ExecForbidden(field));
        }
        if let Some(insecure) = self.insecure().next().filter(|_| !allowed.allow_insecure) {
            return Err(KubeconfigError::InsecureForbidden(insecure));
        }
        let file = self.files().next().map(|(field, _)| field);
        match file.filter(|_| !allowed.allow_files) {
            Some(field) => Err(KubeconfigError::FileForbidden(field)),
            None => Ok(()),
        }
    }

    /// What leaves the credentials unprotected. A kubeconfig file is used nevertheless: whoever writes it runs the controller.
    pub fn insecure(&self) -> impl Iterator<Item = Insecure> {
        let skips = self.cluster.insecure_skip_tls_verify == Some(true);
        // Schemes are compared without regard to case, by clients, too.
        let server = self.server().parse::<Uri>();
        let scheme = server.as_ref().ok().and_then(Uri::scheme);
        let is_plain = scheme != Some(&Scheme::HTTPS);
        let found = [(Insecure::SkipTlsVerify, skips), (Insecure::Http, is_plain)];
        found
            .into_iter()
            .filter_map(|(insecure, is_there)| is_there.then_some(insecure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(cluster: &str, user: &str) -> Kubeconfig {
        let yaml = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: 'https://c'{cluster}}}}}], \
             users: [{{name: u, user: {{{user}}}}}, {{name: other, user: {{exec: {{command: x}}, tokenFile: x}}}}]}}"
        );
        Kubeconfig::read(&yaml).unwrap()
    }

    #[test]
    fn programs_and_files_are_rejected_unless_allowed() {
        let [none, exec, files, both] =
            [(false, false), (true, false), (false, true), (true, true)].map(
                |(allow_exec, allow_files)| SecretKubeconfigs {
                    allow_exec,
                    allow_files,
                    ..SecretKubeconfigs::default()
                },
            );
        let program = |field| Some(KubeconfigError::ExecForbidden(field));
        let file = |field| Some(KubeconfigError::FileForbidden(field));
        let plugin =
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [eks]}";
        for (cluster, user, allowed, expected) in [
            ("", "", none, None),
            ("", "token: t", none, None),
            ("", "username: u, password: p", none, None),
            (
                "",
                "client-certificate-data: eA==, client-key-data: eA==",
                none,
                None,
            ),
            (", certificate-authority-data: eA==", "token: t", none, None),
            (
                ", proxy-url: 'http://proxy:3128', tls-server-name: c",
                "as: somebody",
                none,
                None,
            ),
            ("", plugin, none, program("exec")),
            ("", plugin, files, program("exec")),
            ("", plugin, exec, None),
            (
                "",
                "auth-provider: {name: gcp, config: {cmd-path: sh}}",
                none,
                program("auth-provider"),
            ),
            (
                "",
                "auth-provider: {name: oidc, config: {id-token: t}}",
                files,
                program("auth-provider"),
            ),
            ("", "auth-provider: {name: oidc}", exec, None),
            ("", "tokenFile: /var/run/token", none, file("tokenFile")),
            ("", "token: t, tokenFile: token", none, file("tokenFile")),
            (
                "",
                "client-certificate: c.pem, client-key-data: eA==",
                none,
                file("client-certificate"),
            ),
            (
                "",
                "client-certificate-data: eA==, client-key: /k.pem",
                exec,
                file("client-key"),
            ),
            (
                ", certificate-authority: ca.pem",
                "token: t",
                none,
                file("certificate-authority"),
            ),
            (
                ", certificate-authority: ca.pem, certificate-authority-data: eA==",
                "",
                none,
                file("certificate-authority"),
            ),
            (
                ", certificate-authority: ca.pem",
                "tokenFile: /t",
                files,
                None,
            ),
            (
                ", certificate-authority: ca.pem",
                plugin,
                exec,
                file("certificate-authority"),
            ),
            (", certificate-authority: ca.pem", plugin, both, None),
            (", certificate-authority: ''", "tokenFile: ''", none, None),
        ] {
            let error = kubeconfig(cluster, user).check_permitted(allowed).err();
            assert_eq!(error, expected, "{cluster} {user} {allowed:?}");
        }
    }

    #[test]
    fn unprotected_credentials_are_rejected_unless_allowed() {
        let of = |server: &str, insecure: &str| {
            let mut kubeconfig = kubeconfig(insecure, "token: t");
            kubeconfig.cluster.server = Some(server.to_owned());
            kubeconfig
        };
        let skips = ", insecure-skip-tls-verify: true";
        let rejected = |insecure| Err(KubeconfigError::InsecureForbidden(insecure));
        for (kubeconfig, expected) in [
            (of("https://c", ", insecure-skip-tls-verify: false"), Ok(())),
            (of("https://c", skips), rejected(Insecure::SkipTlsVerify)),
            (of("http://c", ""), rejected(Insecure::Http)),
            (of("HTTP://c", ""), rejected(Insecure::Http)),
            (of("HTTPS://c", ""), Ok(())),
        ] {
            let mut allowed = SecretKubeconfigs::default();
            assert_eq!(kubeconfig.check_permitted(allowed), expected);
            allowed.allow_insecure = true;
            assert_eq!(kubeconfig.check_permitted(allowed), Ok(()));
        }
    }
}
