//! Errors as people read them.

/// An error with its causes in one line, each once.
///
/// Only the first line of each: parsers go on with what they read, and that may be a kubeconfig with its secrets.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let first_line = |error: &dyn std::error::Error| {
        error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    };
    let mut text = first_line(error);
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = first_line(cause);
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_first_line_alone() {
        let error = std::io::Error::other("line 1 is wrong\n --> token: s3cret");
        assert_eq!(chain(&error), "line 1 is wrong");
    }
}
