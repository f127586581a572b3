//! What a kubeconfig from a Secret may contain.
//!
//! Whoever can write the Secret writes it, and the controller carries it out: a program would run as the controller,
//! and a file would be one of the controller's own, its own token above all, sent to a server of the writer's choice.

use super::Kubeconfig;
use crate::config::SecretKubeconfigs;

/// Why a kubeconfig from a Secret is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It would run a program.
    #[error(
        "its user's {field} would run a program in the controller; secretKubeconfigs.allowExec of the controller's configuration allows that"
    )]
    Program {
        /// The field.
        field: &'static str,
    },
    /// It would read a file.
    #[error(
        "{field} names a file, which would be one of the controller's own; put its content into the kubeconfig, or set secretKubeconfigs.allowFiles of the controller's configuration"
    )]
    File {
        /// The field.
        field: &'static str,
    },
}

impl Kubeconfig {
    /// Why this kubeconfig must not be used if it comes from a Secret; `None` if it may. Only what the current context
    /// needs is looked at: nothing else is ever used.
    #[must_use]
    pub fn refusal(&self, allowed: SecretKubeconfigs) -> Option<Refusal> {
        let programs = [
            ("exec", self.user.exec.is_some()),
            ("auth-provider", self.user.auth_provider.is_some()),
        ];
        let program = programs.into_iter().find(|(_, is_there)| *is_there);
        if let Some((field, _)) = program.filter(|_| !allowed.allow_exec) {
            return Some(Refusal::Program { field });
        }
        let file = self.files().next().map(|(field, _)| field);
        let field = file.filter(|_| !allowed.allow_files)?;
        Some(Refusal::File { field })
    }

    /// What a person should know about a kubeconfig that is used all the same.
    #[must_use]
    pub fn warnings(&self) -> Vec<&'static str> {
        let mut warnings = Vec::new();
        if self.cluster.insecure_skip_tls_verify == Some(true) {
            warnings.push(
                "insecure-skip-tls-verify is set: whoever answers at its address gets the credentials",
            );
        }
        if self.server().starts_with("http:") {
            warnings
                .push("its server's address begins with http: the credentials are sent in clear");
        }
        warnings
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
    fn programs_and_files_are_refused_unless_allowed() {
        let [none, exec, files, both] =
            [(false, false), (true, false), (false, true), (true, true)].map(
                |(allow_exec, allow_files)| SecretKubeconfigs {
                    allow_exec,
                    allow_files,
                },
            );
        let program = |field| Some(Refusal::Program { field });
        let file = |field| Some(Refusal::File { field });
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
            (", insecure-skip-tls-verify: true", "token: t", none, None),
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
            let refusal = kubeconfig(cluster, user).refusal(allowed);
            assert_eq!(refusal, expected, "{cluster} {user} {allowed:?}");
        }
    }

    #[test]
    fn what_is_unsafe_and_used_all_the_same_is_told() {
        for (cluster, warnings) in [
            ("", 0),
            (", insecure-skip-tls-verify: false", 0),
            (", insecure-skip-tls-verify: true", 1),
        ] {
            assert_eq!(
                kubeconfig(cluster, "").warnings().len(),
                warnings,
                "{cluster}"
            );
        }
        let mut clear = kubeconfig("", "token: t");
        clear.cluster.server = Some("http://c".to_owned());
        assert_eq!(clear.warnings().len(), 1);
    }
}
