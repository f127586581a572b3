//! The part of `JSONPath` that printer columns use: fields, quoted fields, indices, `[*]` and simple filters.

use serde_json::Value;

/// A parsed path: `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// From the end if negative.
    Index(i64),
    All,
    /// Items whose value at the path compares equal, or not.
    Filter(Vec<Step>, bool, Value),
}

impl JsonPath {
    /// Parses a path; `None` if it is outside of what is understood.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
            .unwrap_or(text);
        let text = text.strip_prefix('$').unwrap_or(text);
        parse_steps(text).map(Self)
    }

    /// Everything at the path.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        follow(&self.0, value)
    }
}

fn follow<'a>(steps: &[Step], value: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in steps {
        found = found
            .into_iter()
            .flat_map(|value| step.take(value))
            .collect();
    }
    found
}

impl Step {
    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => {
                let list = value.as_array().map_or(&[][..], Vec::as_slice);
                let at = usize::try_from(*index).unwrap_or_else(|_| {
                    let from_end = usize::try_from(-*index).unwrap_or(usize::MAX);
                    list.len().checked_sub(from_end).unwrap_or(usize::MAX)
                });
                list.get(at).into_iter().collect()
            }
            Self::All => match value {
                Value::Array(list) => list.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Self::Filter(path, equal, wanted) => {
                let holds = |item: &&Value| {
                    let found = follow(path, item);
                    found
                        .first()
                        .is_some_and(|value| (*value == wanted) == *equal)
                };
                value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(holds)
                    .collect()
            }
        }
    }
}

fn parse_steps(mut text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !text.is_empty() {
        if let Some(rest) = text.strip_prefix('.') {
            let (name, rest) = take_name(rest);
            match name.as_str() {
                // `.` before a bracket, or the whole object.
                "" => {}
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Field(name)),
            }
            text = rest;
        } else if let Some(rest) = text.strip_prefix('[') {
            let end = bracket_end(rest)?;
            steps.push(parse_bracket(rest[..end].trim())?);
            text = &rest[end + 1..];
        } else {
            let (name, rest) = take_name(text);
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Field(name));
            text = rest;
        }
    }
    Some(steps)
}

/// A name up to the next `.` or `[`; a backslash takes what follows as it is.
fn take_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            _ => name.push(letter),
        }
    }
    (name, "")
}

fn bracket_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0_u32;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (Some(_) | None, _) => {}
        }
    }
    None
}

fn parse_bracket(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(name) = unquote(text) {
        return Some(Step::Field(name.to_owned()));
    }
    if let Some(filter) = text
        .strip_prefix("?(")
        .and_then(|text| text.strip_suffix(')'))
    {
        let (path, equal, value) = match filter.split_once("==") {
            Some((path, value)) => (path, true, value),
            None => filter
                .split_once("!=")
                .map(|(path, value)| (path, false, value))?,
        };
        let path = parse_steps(path.trim().strip_prefix('@')?)?;
        let value = value.trim();
        let value = match unquote(value) {
            Some(text) => Value::String(text.to_owned()),
            None => serde_json::from_str(value).ok()?,
        };
        return Some(Step::Filter(path, equal, value));
    }
    text.parse().ok().map(Step::Index)
}

fn unquote(text: &str) -> Option<&str> {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\''))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_what_columns_ask_for() {
        let object = json!({"spec": {"n": 3, "a.b": "dotted"}, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]});
        let rows = [
            (".spec.n", vec![json!(3)]),
            ("{.spec.n}", vec![json!(3)]),
            (".spec.absent", vec![]),
            (".list[*].name", vec![json!("x"), json!("y")]),
            (".list[1].v", vec![json!(2)]),
            (".list[-1].v", vec![json!(2)]),
            (".list[?(@.name==\"y\")].v", vec![json!(2)]),
            (".list[?(@.name=='x')].v", vec![json!(1)]),
            (".spec['a.b']", vec![json!("dotted")]),
            (".spec.a\\.b", vec![json!("dotted")]),
        ];
        for (path, expected) in rows {
            let found = JsonPath::parse(path).unwrap();
            let found: Vec<Value> = found.find(&object).into_iter().cloned().collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
