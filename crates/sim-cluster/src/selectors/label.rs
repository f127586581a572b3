//! Label selectors of query strings: `app=web,tier in (a,b),!canary,size>3`.
//!
//! text -> words and signs -> requirements. The messages of errors are those of Kubernetes' `labels.Parse`.

use serde_json::Value;

use super::requirement::Operator;
use crate::names::{validate_label_value, validate_qualified_name};
use crate::object::map;
use crate::status::Status;

/// All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// Why a text is no label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LabelSelectorError {
    /// Between two requirements.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        found: String,
        expected: &'static str,
    },
    /// Within a requirement.
    #[error("unable to parse requirement: {0}")]
    Requirement(#[from] RequirementError),
}

/// Why a part of a label selector is no requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequirementError {
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        found: String,
        expected: &'static str,
    },
    #[error("found '{found}' expected: '('")]
    NoList { found: String },
    #[error("<nil>: Invalid value: {key:?}: {detail}")]
    Key { key: String, detail: String },
    #[error("values[0][{key}]: Invalid value: {value:?}: {detail}")]
    Value {
        key: String,
        value: String,
        detail: String,
    },
    #[error("for 'Gt', 'Lt' operators, the value must be an integer, found '{found}'")]
    NoInteger { found: String },
}

impl From<LabelSelectorError> for Status {
    fn from(error: LabelSelectorError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl LabelSelector {
    /// Parses the form of query strings.
    pub(crate) fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let mut parser = Parser {
            tokens: tokenize(text),
            next: 0,
        };
        let mut requirements = Vec::new();
        while !parser.at_end() {
            if is_sign(parser.peek()) && parser.peek() != "!" {
                return Err(unexpected(
                    parser.peek(),
                    "!, identifier, or 'end of string'",
                ));
            }
            requirements.push(parser.requirement()?);
            if parser.at_end() {
                break;
            }
            let separator = parser.take();
            if separator != "," {
                return Err(unexpected(&separator, "',' or 'end of string'"));
            }
            if parser.at_end() || is_sign(parser.peek()) && parser.peek() != "!" {
                return Err(unexpected(parser.peek(), "identifier after ','"));
            }
        }
        Ok(Self(requirements))
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the object's labels meet every requirement.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = map(object, "/metadata/labels");
        self.0.iter().all(|requirement| {
            let present = labels.and_then(|labels| labels.get(&requirement.key)?.as_str());
            let values = requirement.values.iter().map(String::as_str);
            requirement.operator.holds(present, values)
        })
    }
}

fn unexpected(found: &str, expected: &'static str) -> LabelSelectorError {
    LabelSelectorError::Unexpected {
        found: found.to_owned(),
        expected,
    }
}

fn is_sign(token: &str) -> bool {
    token.starts_with([',', '(', ')', '!', '=', '<', '>'])
}

/// Splits into words and the signs `, ( ) ! = == != < >`.
fn tokenize(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if !matches!(letter, ',' | '(' | ')' | '!' | '=' | '<' | '>') && !letter.is_whitespace() {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        if letter.is_whitespace() {
            continue;
        }
        let mut sign = letter.to_string();
        if matches!(letter, '=' | '!') && letters.peek() == Some(&'=') {
            sign.extend(letters.next());
        }
        tokens.push(sign);
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    tokens
}

/// Reads tokens one after the other; the end reads as an empty token.
struct Parser {
    tokens: Vec<String>,
    next: usize,
}

impl Parser {
    fn at_end(&self) -> bool {
        self.next >= self.tokens.len()
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.next).map_or("", String::as_str)
    }

    fn take(&mut self) -> String {
        let token = self.peek().to_owned();
        self.next += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, RequirementError> {
        let requirement = |key, operator, values| Requirement {
            key,
            operator,
            values,
        };
        let first = self.take();
        if first == "!" {
            let key = checked_key(self.take())?;
            return Ok(requirement(key, Operator::DoesNotExist, Vec::new()));
        }
        let key = checked_key(first)?;
        if matches!(self.peek(), "" | ",") {
            return Ok(requirement(key, Operator::Exists, Vec::new()));
        }
        let (operator, values) = match self.take().as_str() {
            "=" | "==" => (Operator::In, vec![self.value(&key)?]),
            "!=" => (Operator::NotIn, vec![self.value(&key)?]),
            "in" => (Operator::In, self.values()?),
            "notin" => (Operator::NotIn, self.values()?),
            ">" => (Operator::Gt, vec![self.integer()?]),
            "<" => (Operator::Lt, vec![self.integer()?]),
            other => return Err(not(other, "in, notin, =, ==, !=, gt, lt")),
        };
        Ok(requirement(key, operator, values))
    }

    /// One value, which may be left out: `app=` selects the empty value.
    fn value(&mut self, key: &str) -> Result<String, RequirementError> {
        if matches!(self.peek(), "" | ",") {
            return Ok(String::new());
        }
        let wrong = validate_label_value(self.peek());
        if !wrong.is_empty() {
            return Err(RequirementError::Value {
                key: key.to_owned(),
                value: self.take(),
                detail: wrong.join("; "),
            });
        }
        Ok(self.take())
    }

    /// A list in parentheses.
    fn values(&mut self) -> Result<Vec<String>, RequirementError> {
        let open = self.take();
        if open != "(" {
            return Err(RequirementError::NoList { found: open });
        }
        let mut values = Vec::new();
        loop {
            let token = self.take();
            match token.as_str() {
                "," => values.push(String::new()),
                ")" => {
                    values.push(String::new());
                    return Ok(values);
                }
                word if is_value(word) => {
                    values.push(token);
                    match self.take().as_str() {
                        "," => {}
                        ")" => return Ok(values),
                        other => return Err(not(other, "',' or ')'")),
                    }
                }
                other => return Err(not(other, "',', ')' or identifier")),
            }
        }
    }

    fn integer(&mut self) -> Result<String, RequirementError> {
        let word = self.take();
        match word.parse::<i64>() {
            Ok(_) => Ok(word),
            Err(_) => Err(RequirementError::NoInteger { found: word }),
        }
    }
}

fn not(found: &str, expected: &'static str) -> RequirementError {
    RequirementError::Unexpected {
        found: found.to_owned(),
        expected,
    }
}

fn checked_key(key: String) -> Result<String, RequirementError> {
    if is_sign(&key) || key.is_empty() {
        return Err(not(&key, "identifier"));
    }
    let wrong = validate_qualified_name(&key);
    if wrong.is_empty() {
        return Ok(key);
    }
    let detail = wrong.join("; ");
    Err(RequirementError::Key { key, detail })
}

/// Whether a token can be a value in a list.
fn is_value(token: &str) -> bool {
    let alphanumeric =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    alphanumeric(token.chars().next())
        && alphanumeric(token.chars().last())
        && (token.chars())
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selects_by_the_whole_grammar() {
        let object = json!({"metadata": {"labels": {"app": "web", "size": "5", "empty": "", "x.org/part": "a"}}});
        let rows = [
            ("", true),
            ("app=web", true),
            ("app==web,size=5", true),
            ("app!=web", false),
            ("absent!=web", true),
            ("app in (web, api)", true),
            ("app notin (web)", false),
            ("absent notin (web)", true),
            ("app", true),
            ("!app", false),
            ("! absent", true),
            ("size>4", true),
            ("size<5", false),
            ("empty=", true),
            ("empty in ()", true),
            ("x.org/part in (a),app", true),
        ];
        for (text, expected) in rows {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.matches(&object), expected, "{text}");
        }
    }

    #[test]
    fn rejects_what_the_grammar_does_not_allow() {
        for text in [
            "app=web,",
            "a b",
            "in (a)",
            "app in a",
            "size>x",
            "=a",
            "app=web=b",
            "-a=b",
        ] {
            assert_eq!(
                Status::from(LabelSelector::parse(text).unwrap_err()).code,
                400,
                "{text}"
            );
        }
    }
}
