//! Text of files, folders and programs as a person may read it on a terminal.
//!
//! A file name, a source line or a server's message may contain characters that move the cursor, change colours or titles,
//! end a line early or reorder what is shown. Everything that prints for people passes its text through [`visible`].

use std::borrow::Cow;
use std::fmt::Write;

/// One line of text in which control characters, C1 controls, line separators and bidirectional controls are visible: `␛`,
/// `␊`, `<U+009B>`, `<U+202E>`. Tabs stay. A text of several lines is passed line by line.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        match one {
            _ if !is_hidden(one) => shown.push(one),
            '\u{7f}' => shown.push('␡'),
            '\u{0}'..='\u{1f}' => shown.push(char::from_u32(0x2400 + u32::from(one)).unwrap_or('�')),
            _ => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(one));
            }
        }
    }
    Cow::Owned(shown)
}

fn is_hidden(one: char) -> bool {
    (one.is_control() && one != '\t')
        || matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_is_unchanged() {
        for text in ["", "src/a b.py", "größe\t日本 👩‍👩‍👧", "עברית العربية", "a\u{200d}b\u{200c}c\u{a0}d"]
        {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }

    #[test]
    fn controls_are_replaced_by_visible_characters() {
        for (text, shown) in [
            ("a\u{1b}[31mb", "a␛[31mb"),
            ("\u{0}\u{7}\r\n\u{7f}", "␀␇␍␊␡"),
            ("\u{9b}2J\u{9d}0;title\u{9c}", "<U+009B>2J<U+009D>0;title<U+009C>"),
            ("\u{85}\u{2028}\u{2029}", "<U+0085><U+2028><U+2029>"),
            ("gnp\u{202e}exe\u{2066}\u{61c}\u{200f}", "gnp<U+202E>exe<U+2066><U+061C><U+200F>"),
        ] {
            assert_eq!(visible(text), shown, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_visible_after_one_pass(text in any::<String>()) {
            let shown = visible(&text).into_owned();
            prop_assert!(!shown.contains(is_hidden));
            prop_assert_eq!(visible(&shown), shown.as_str());
        }
    }
}
