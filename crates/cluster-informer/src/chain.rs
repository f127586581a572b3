//! Errors as people read them: without what is secret.

use std::error::Error;

use kube::client::AuthError;

/// An error with its causes in one line, each once.
///
/// Only the first line of each: parsers go on with what they read, and that may be a kubeconfig with its secrets. Of a
/// credentials plugin that failed only how it ended: its command, with its environment, and what it printed may be secret.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    if let Some(words) = causes(error).find_map(plugin_words) {
        return words;
    }
    let mut text = String::new();
    for cause in causes(error) {
        let words = cause.to_string();
        let line = words.lines().next().unwrap_or_default().trim_end();
        if text.is_empty() {
            line.clone_into(&mut text);
        } else if !text.contains(line) {
            text = format!("{text}: {line}");
        }
    }
    text
}

/// Whether our own credentials could not be had: a plugin that failed, a token that is no header. That says nothing
/// about the member.
pub(crate) fn is_about_credentials(error: &kube::Error) -> bool {
    causes(error).any(<dyn Error>::is::<AuthError>)
}

/// The error and its causes, from the outside in.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// What may be told of a credentials plugin that failed.
fn plugin_words(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref::<AuthError>()? {
        AuthError::AuthExecRun { out, .. } => {
            Some(format!("the credentials plugin failed: {}", out.status))
        }
        AuthError::AuthExecParse(_) => {
            Some("what the credentials plugin printed is no ExecCredential".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_first_line_alone() {
        let error = std::io::Error::other("line 1 is wrong\n --> token: s3cret");
        assert_eq!(chain(&error), "line 1 is wrong");
    }

    #[test]
    fn what_a_credentials_plugin_printed_is_not_told() {
        let failed = || {
            let output = std::process::Command::new("sh")
                .args(["-c", "echo s3cret; echo s3cret >&2; exit 3"])
                .output()
                .expect("sh runs");
            AuthError::AuthExecRun {
                cmd: r#"TOKEN="s3cret" "aws" "s3cret""#.to_owned(),
                out: Box::new(output),
            }
        };
        for error in [
            kube::Error::Auth(failed()),
            kube::Error::Service(failed().into()),
        ] {
            assert!(is_about_credentials(&error));
            assert_eq!(
                chain(&error),
                "the credentials plugin failed: exit status: 3"
            );
            let doing = crate::Doing::List;
            let listing = crate::Error::Connection {
                doing,
                source: Box::new(error),
            };
            assert!(!listing.to_string().contains("s3cret"), "{listing}");
        }
    }
}
