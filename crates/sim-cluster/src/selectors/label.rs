//! Label selectors: `app=web,tier in (a,b),!canary,size>3`.

use serde_json::Value;

use crate::names::{validate_label_value, validate_qualified_name};
use crate::status::Status;

/// All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    /// Also true where the label is absent.
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Reads the query's form.
    ///
    /// # Errors
    /// 400 for anything outside of the grammar.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let tokens = tokenize(text);
        let mut tokens = tokens.iter().map(String::as_str).peekable();
        let mut requirements = Vec::new();
        while tokens.peek().is_some() {
            let first = tokens.peek().copied().unwrap_or_default();
            if is_sign(first) && first != "!" {
                return Err(Status::bad_request(format!(
                    "found '{first}', expected: !, identifier, or 'end of string'"
                )));
            }
            requirements.push(parse_requirement(&mut tokens).map_err(|why| unparsable(&why))?);
            match (tokens.next(), tokens.peek().copied()) {
                (None, _) => break,
                (Some(","), Some(next)) if next == "!" || !is_sign(next) => {}
                (Some(","), next) => {
                    return Err(Status::bad_request(format!(
                        "found '{}', expected: identifier after ','",
                        next.unwrap_or_default()
                    )));
                }
                (Some(other), _) => {
                    return Err(Status::bad_request(format!(
                        "found '{other}', expected: ',' or 'end of string'"
                    )));
                }
            }
        }
        Ok(Self(requirements))
    }

    /// Whether it takes everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the object's labels meet every requirement.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.iter().all(|each| each.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).and_then(Value::as_str);
        let number = value.and_then(|value| value.parse::<i64>().ok());
        let is_in =
            |set: &[String]| value.is_some_and(|value| set.iter().any(|each| each == value));
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(set) => is_in(set),
            Test::NotIn(set) => !is_in(set),
            Test::Above(bound) => number.is_some_and(|number| number > *bound),
            Test::Below(bound) => number.is_some_and(|number| number < *bound),
        }
    }
}

fn unparsable(why: &str) -> Status {
    Status::bad_request(format!("unable to parse requirement: {why}"))
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

type Tokens<'a, I> = std::iter::Peekable<I>;

fn parse_requirement<'a, I>(tokens: &mut Tokens<'a, I>) -> Result<Requirement, String>
where
    I: Iterator<Item = &'a str>,
{
    let mut key = tokens.next().unwrap_or_default();
    if key == "!" {
        key = checked_key(tokens.next().unwrap_or_default())?;
        return Ok(Requirement {
            key: key.to_owned(),
            test: Test::Absent,
        });
    }
    let key = checked_key(key)?.to_owned();
    if matches!(tokens.peek(), None | Some(&",")) {
        return Ok(Requirement {
            key,
            test: Test::Exists,
        });
    }
    let test = match tokens.next().unwrap_or_default() {
        "=" | "==" => Test::In(vec![value(tokens, &key)?]),
        "!=" => Test::NotIn(vec![value(tokens, &key)?]),
        "in" => Test::In(values(tokens)?),
        "notin" => Test::NotIn(values(tokens)?),
        ">" => Test::Above(number(tokens)?),
        "<" => Test::Below(number(tokens)?),
        other => {
            return Err(format!(
                "found '{other}', expected: in, notin, =, ==, !=, gt, lt"
            ));
        }
    };
    Ok(Requirement { key, test })
}

fn checked_key(key: &str) -> Result<&str, String> {
    if is_sign(key) || key.is_empty() {
        return Err(format!("found '{key}', expected: identifier"));
    }
    let wrong = validate_qualified_name(key);
    if wrong.is_empty() {
        return Ok(key);
    }
    let wrong = wrong.join("; ");
    Err(format!("<nil>: Invalid value: {key:?}: {wrong}"))
}

fn is_name(text: &str) -> bool {
    let ends_well =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let allowed =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    ends_well(text.chars().next()) && ends_well(text.chars().last()) && text.chars().all(allowed)
}

/// A value may be left out: `app=` selects the empty one.
fn value<'a, I: Iterator<Item = &'a str>>(
    tokens: &mut Tokens<'a, I>,
    key: &str,
) -> Result<String, String> {
    let Some(&word) = tokens.peek().filter(|it| **it != ",") else {
        return Ok(String::new());
    };
    let wrong = validate_label_value(word);
    if !wrong.is_empty() {
        let wrong = wrong.join("; ");
        return Err(format!(
            "values[0][{key}]: Invalid value: {word:?}: {wrong}"
        ));
    }
    tokens.next();
    Ok(word.to_owned())
}

fn values<'a, I: Iterator<Item = &'a str>>(
    tokens: &mut Tokens<'a, I>,
) -> Result<Vec<String>, String> {
    match tokens.next() {
        Some("(") => {}
        other => {
            return Err(format!(
                "found '{}' expected: '('",
                other.unwrap_or_default()
            ));
        }
    }
    let mut values = Vec::new();
    loop {
        match tokens.next() {
            Some(",") => values.push(String::new()),
            Some(")") => {
                values.push(String::new());
                return Ok(values);
            }
            Some(word) if is_name(word) => {
                values.push(word.to_owned());
                match tokens.next() {
                    Some(",") => {}
                    Some(")") => return Ok(values),
                    other => {
                        let found = other.unwrap_or_default();
                        return Err(format!("found '{found}', expected: ',' or ')'"));
                    }
                }
            }
            other => {
                let found = other.unwrap_or_default();
                return Err(format!("found '{found}', expected: ',', ')' or identifier"));
            }
        }
    }
}

fn number<'a, I: Iterator<Item = &'a str>>(tokens: &mut Tokens<'a, I>) -> Result<i64, String> {
    let word = tokens.next().unwrap_or_default();
    word.parse().map_err(|_| {
        format!("for 'Gt', 'Lt' operators, the value must be an integer, found '{word}'")
    })
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
    fn refuses_what_is_outside_of_the_grammar() {
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
            assert_eq!(LabelSelector::parse(text).unwrap_err().code, 400, "{text}");
        }
    }
}
