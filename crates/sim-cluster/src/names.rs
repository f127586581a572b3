//! Validation of names, label keys and label values, with the API server's messages.
//!
//! text -> messages, one for each error; none if it is valid.

use std::sync::LazyLock;

use regex::Regex;

const LABEL_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORMAT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_FORMAT: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE_FORMAT: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const QUALIFIED_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
/// The format of the names of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// At most 253 bytes: most kinds.
    Subdomain,
    /// At most 63 bytes, no dots: namespaces.
    Label,
    /// A label that starts with a letter: services.
    Dns1035,
    /// Anything that is a segment of a path: RBAC.
    PathSegment,
}

fn anchored(format: &str) -> Regex {
    Regex::new(&format!("^(?:{format})$")).expect("the formats are constants")
}

static LABEL: LazyLock<Regex> = LazyLock::new(|| anchored(LABEL_FORMAT));
static SUBDOMAIN: LazyLock<Regex> = LazyLock::new(|| anchored(SUBDOMAIN_FORMAT));
static DNS1035: LazyLock<Regex> = LazyLock::new(|| anchored(DNS1035_FORMAT));
static QUALIFIED: LazyLock<Regex> = LazyLock::new(|| anchored(QUALIFIED_FORMAT));
static LABEL_VALUE: LazyLock<Regex> = LazyLock::new(|| anchored(LABEL_VALUE_FORMAT));

/// The API server's message for a text that does not match a format.
pub(crate) fn explain_format(words: &str, format: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples
        .iter()
        .map(|example| format!("'{example}', "))
        .collect();
    format!(
        "{words} (e.g. {}regex used for validation is '{format}')",
        examples.join(" or ")
    )
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// The errors of `text` as a DNS label.
pub(crate) fn is_dns1123_label(text: &str) -> Vec<String> {
    let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
    check(text, LABEL_MAX, &LABEL, || {
        explain_format(words, LABEL_FORMAT, &["my-name", "123-abc"])
    })
}

/// The errors of `text` as a DNS subdomain.
pub(crate) fn is_dns1123_subdomain(text: &str) -> Vec<String> {
    let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
    check(text, SUBDOMAIN_MAX, &SUBDOMAIN, || {
        explain_format(words, SUBDOMAIN_FORMAT, &["example.com"])
    })
}

pub(crate) fn is_dns1035_label(text: &str) -> Vec<String> {
    let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
    check(text, LABEL_MAX, &DNS1035, || {
        explain_format(words, DNS1035_FORMAT, &["my-name", "abc-123"])
    })
}

fn check(text: &str, max: usize, format: &Regex, words: impl Fn() -> String) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > max {
        wrong.push(too_long(max));
    }
    if !format.is_match(text) {
        wrong.push(words());
    }
    wrong
}

fn is_path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|part| text.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

impl NameRule {
    /// The rule for a built-in kind.
    pub(crate) fn of(kind: &str) -> Self {
        match kind {
            "Namespace" => Self::Label,
            "Service" => Self::Dns1035,
            "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    /// The errors of a name.
    pub(crate) fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => is_dns1123_subdomain(name),
            Self::Label => is_dns1123_label(name),
            Self::Dns1035 => is_dns1035_label(name),
            Self::PathSegment => is_path_segment(name),
        }
    }
}

/// The errors of the key of a label or annotation.
pub(crate) fn validate_qualified_name(text: &str) -> Vec<String> {
    let words = || {
        explain_format(
            QUALIFIED_WORDS,
            QUALIFIED_FORMAT,
            &["MyName", "my.name", "123-abc"],
        )
    };
    let mut wrong = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        ["", name] => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            wrong.extend(
                is_dns1123_subdomain(prefix)
                    .into_iter()
                    .map(|what| format!("prefix part {what}")),
            );
            name
        }
        _ => {
            let hint = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {} {hint}", words())];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        wrong.push(format!("name part {}", too_long(LABEL_MAX)));
    }
    if !QUALIFIED.is_match(name) {
        wrong.push(format!("name part {}", words()));
    }
    wrong
}

/// The errors of the value of a label.
pub(crate) fn validate_label_value(text: &str) -> Vec<String> {
    let words = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    check(text, LABEL_MAX, &LABEL_VALUE, || {
        explain_format(words, LABEL_VALUE_FORMAT, &["MyValue", "my_value", "12345"])
    })
}
