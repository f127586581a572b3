//! `JSONPath` as printer columns write it.
//!
//! Kubernetes' dialect -> RFC 9535 -> values. The dialect leaves out `$`, may put the path into braces, and allows names
//! with dashes (`.status.ready-at`) and escaped dots (`.metadata.annotations.example\.com`).

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::{QueryRef, js_path_process};
use serde_json::Value;

/// A parsed path: `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug)]
pub(super) struct JsonPath(JpQuery);

impl JsonPath {
    /// Parses a path; `None` if it is malformed.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let path = path.trim();
        let path = path
            .strip_prefix('{')
            .and_then(|path| path.strip_suffix('}'))
            .unwrap_or(path);
        let segments = standard_segments(path.strip_prefix('$').unwrap_or(path));
        parse_json_path(&format!("${segments}")).ok().map(Self)
    }

    /// Everything at the path.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let found = js_path_process(&self.0, value).unwrap_or_default();
        found.into_iter().map(QueryRef::val).collect()
    }
}

/// Rewrites the segments of a path: each name is quoted in brackets.
fn standard_segments(path: &str) -> String {
    let mut standard = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(letter) = rest.chars().next() {
        if letter == '[' {
            let end = position(rest, |letter, depth| letter == ']' && depth == 0) + 1;
            let (selector, behind) = rest.split_at(end.min(rest.len()));
            standard.push_str(&standard_selector(selector));
            rest = behind;
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(descendants) = rest.strip_prefix('.') {
            standard.push_str("..");
            rest = descendants;
        }
        let name;
        (name, rest) = take_name(rest);
        match name.as_str() {
            // A dot before a bracket, or the whole object.
            "" => {}
            "*" => standard.push_str("[*]"),
            name => {
                let name = name.replace('\\', "\\\\").replace('\'', "\\'");
                standard.extend(["['", &name, "']"]);
            }
        }
    }
    standard
}

/// Rewrites the paths below `@` in a selector in brackets.
fn standard_selector(selector: &str) -> String {
    let ends_path = |letter: char, depth: i32| {
        depth < 0 || depth == 0 && (letter.is_whitespace() || "=!<>)&|".contains(letter))
    };
    let mut standard = String::with_capacity(selector.len());
    let mut rest = selector;
    while !rest.is_empty() {
        let (before, from_root) = rest.split_at(position(rest, |letter, _| letter == '@'));
        standard.push_str(before);
        let Some(path) = from_root.strip_prefix('@') else {
            break;
        };
        let (path, behind) = path.split_at(position(path, ends_path));
        standard.push('@');
        standard.push_str(&standard_segments(path));
        rest = behind;
    }
    standard
}

/// The position of the first letter outside of quotes for which `wanted` holds, or the length of the text. `depth` counts
/// the brackets that are open behind the letter.
fn position(text: &str, wanted: impl Fn(char, i32) -> bool) -> usize {
    let mut quote = None;
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            (Some(_) | None, _) => {}
        }
        if quote.is_none() && wanted(letter, depth) {
            return at;
        }
    }
    text.len()
}

/// A name up to the next `.` or `[`; a backslash escapes the letter behind it.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_the_values_of_columns() {
        let object = json!({"spec": {"n": 3, "a.b": "dotted"}, "it's-here": true, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]});
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
            (".list[?(@.v > 1 && @.name != 'x')].name", vec![json!("y")]),
            (".it's-here", vec![json!(true)]),
            (".list[?(@.name=='a ] b')].v", vec![]),
        ];
        for (path, expected) in rows {
            let found = JsonPath::parse(path).unwrap();
            let found: Vec<Value> = found.find(&object).into_iter().cloned().collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
