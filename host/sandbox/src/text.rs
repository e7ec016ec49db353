//! Guests' text, made harmless before a person or a log reads it.

use std::fmt::Write as _;

use pumphouse_contract::copy::shorten;

/// A text of a guest's in which nothing can be taken for a new line, a terminal's command or another order of
/// reading: such characters are written as escapes. At most `most` bytes of the text are taken.
pub(crate) fn escaped(text: &str, most: usize) -> String {
    let short = shorten(text, most);
    if !short.chars().any(is_active) {
        return short;
    }
    let mut safe = String::with_capacity(short.len() + 16);
    for c in short.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            c if is_active(c) => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

/// Whether a character does something other than being shown.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{61c}' | '\u{180e}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_not_be_forged() {
        for (text, safe) in [
            ("fine\nFORGED", "fine\\nFORGED"),
            ("\r\nFORGED", "\\r\\nFORGED"),
            ("\u{1b}[2KFORGED", "\\u{1b}[2KFORGED"),
            ("a\u{2028}b\u{85}c\u{202e}d", "a\\u{2028}b\\u{85}c\\u{202e}d"),
            ("\u{0}\u{8}\u{feff}", "\\u{0}\\u{8}\\u{feff}"),
            ("größer → 日本語 🦀", "größer → 日本語 🦀"),
        ] {
            assert_eq!(escaped(text, 100), safe);
        }
    }

    #[test]
    fn a_long_text_is_shortened() {
        assert_eq!(escaped(&"x".repeat(50), 10), "xxxxxxx…");
    }
}
