//! Colours for lines about tasks and notes. What they mean is in the words, too; without a terminal nothing changes.

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::styled_text::{Colour, StyledText};

/// Prints lines with coloured ids, statuses and labels.
pub(crate) fn print(text: impl AsRef<str>, invocation: &mut Invocation) -> Result<(), Failure> {
    invocation.print_styled(&styled(text.as_ref()))
}

fn styled(text: &str) -> StyledText {
    let mut styled = StyledText::default();
    for line in text.lines() {
        let mut words = 0;
        let mut after_id = false;
        // Only the words at the beginning are ours; a title may contain any word.
        for part in line.split_inclusive(' ') {
            let word = part.trim_end_matches(' ');
            let colour = match words {
                _ if word.is_empty() => None,
                0 => first_word(word),
                1 if after_id => status(word),
                _ => None,
            };
            match colour {
                Some(colour) => {
                    styled.coloured(colour, word);
                    styled.plain(&part[word.len()..]);
                }
                None => styled.plain(part),
            }
            after_id = after_id || (words == 0 && is_id(word));
            words += usize::from(!word.is_empty());
        }
        styled.end_line();
    }
    styled
}

fn first_word(word: &str) -> Option<Colour> {
    match word {
        "[x]" => Some(Colour::Green),
        ">" => Some(Colour::Yellow),
        "blocker:" | "refused:" => Some(Colour::Red),
        _ if is_id(word) => Some(Colour::Blue),
        _ => word.strip_suffix(':').filter(|label| is_label(label)).map(|_| Colour::Yellow),
    }
}

fn status(word: &str) -> Option<Colour> {
    match word.trim_end_matches(':') {
        "todo" => Some(Colour::Yellow),
        "active" => Some(Colour::Blue),
        "done" => Some(Colour::Green),
        _ => None,
    }
}

/// `TASK-001`, `PLAN-001` or `#12`.
fn is_id(word: &str) -> bool {
    let word = word.trim_end_matches([':', ',']);
    ["TASK-", "PLAN-", "#"].iter().any(|start| {
        word.strip_prefix(start)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|one| one.is_ascii_digit()))
    })
}

fn is_label(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|one| one.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_statuses_and_labels_at_the_beginning_are_coloured() {
        let text =
            "TASK-001  active  high    Get it done\n  [x] s:0 TASK-002\nnote: done\n\n#12 note: a\u{1b}[31m";
        let styled = styled(text);
        assert_eq!(
            styled.as_str(),
            "\u{1b}[1;36mTASK-001\u{1b}[0m  \u{1b}[1;36mactive\u{1b}[0m  high    Get it done\n  \u{1b}[1;32m[x]\u{1b}[0m s:0 TASK-002\n\
             \u{1b}[1;33mnote:\u{1b}[0m done\n\n\u{1b}[1;36m#12\u{1b}[0m note: a␛[31m\n"
        );
        let plain = anstream::adapter::strip_str(styled.as_str()).to_string();
        assert_eq!(plain.trim_end(), text.replace('\u{1b}', "␛"));
    }
}
