//! Sanitizes texts of others for statuses, events, logs and terminals.

/// The longest text that is kept, in characters.
const MAX_CHARS: usize = 512;

/// `text` in one line of at most 512 characters, without control characters: escape sequences could reach terminals, and
/// line breaks could forge lines of logs.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut chars = text.chars();
    let mut printable: String = chars.by_ref().take(MAX_CHARS).map(harmless).collect();
    if chars.next().is_some() {
        printable.pop();
        printable.push('…');
    }
    printable
}

/// `text` without control characters except line feeds, of any length, for a terminal.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let keep = |char| if char == '\n' { char } else { harmless(char) };
    text.chars().map(keep).collect()
}

fn harmless(char: char) -> char {
    match char {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        // They reorder what follows, so that a text looks like another one.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        char if char.is_control() => char::REPLACEMENT_CHARACTER,
        char => char,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s6_texts_of_others_are_one_short_line_without_control_characters() {
        for (text, expected) in [
            ("pods \"web\" is forbidden: größer als 1", None),
            ("a\nlevel=error\r\n\tb", Some("a level=error   b")),
            (
                "\u{1b}[2J\u{7}\u{9b}31m\u{202e}x\0\u{2066}",
                Some("\u{fffd}[2J\u{fffd}\u{fffd}31m\u{fffd}x\u{fffd}\u{fffd}"),
            ),
        ] {
            assert_eq!(printable(text), expected.unwrap_or(text));
        }
        assert_eq!(printable_lines("a\n\u{1b}[2J\tb\n"), "a\n\u{fffd}[2J b\n");
        assert_eq!(printable(&"ä".repeat(512)), "ä".repeat(512));
        assert_eq!(printable(&"ä".repeat(900_000)), "ä".repeat(511) + "…");
    }
}
