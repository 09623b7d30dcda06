//! Positions: every conversion agrees with a reference implementation that walks the text by character.

use proptest::prelude::*;
use tenon_contract::position::{Encoding, LineIndex, Position, PositionError, Range};

const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        " ",
        "\t",
        "\n",
        "\r\n",
        "\r",
        "\n",
        "é",
        "e\u{301}",
        "ß",
        "日",
        "本",
        "😀",
        "👩\u{200d}👧",
        "🇩🇪",
        "\u{feff}",
        "\u{2028}",
        "\u{85}",
        "\u{0}",
        "\u{ffff}",
        "\u{10ffff}",
        "\u{b}",
        "\u{c}",
    ]);
    prop_oneof![
        4 => prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
        1 => "[ -~\n]{0,40}",
    ]
}

/// A valid position: its offset, line, and column in each encoding.
struct ReferencePosition {
    offset: usize,
    line: u32,
    columns: [u32; 3],
}

/// All valid positions of a text in order, and the offsets between `\r` and `\n`.
fn reference_positions(text: &str) -> (Vec<ReferencePosition>, Vec<usize>) {
    let mut positions = Vec::new();
    let mut inside_breaks = Vec::new();
    let (mut line, mut columns) = (0, [0; 3]);
    let mut characters = text.char_indices().peekable();
    while let Some((offset, character)) = characters.next() {
        positions.push(ReferencePosition { offset, line, columns });
        let crlf = character == '\r' && characters.peek().is_some_and(|(_, next)| *next == '\n');
        if crlf {
            characters.next();
            inside_breaks.push(offset + 1);
        }
        if character == '\r' || character == '\n' {
            line += 1;
            columns = [0; 3];
        } else {
            columns[0] += character.len_utf8() as u32;
            columns[1] += character.len_utf16() as u32;
            columns[2] += 1;
        }
    }
    positions.push(ReferencePosition { offset: text.len(), line, columns });
    (positions, inside_breaks)
}

proptest! {
    #![proptest_config(crate::cases(768))]

    #[test]
    fn offset_to_position_agrees_with_the_reference(text in text()) {
        let index = LineIndex::new(text.as_str());
        let (references, inside_breaks) = reference_positions(&text);
        prop_assert_eq!(index.line_count(), references.last().unwrap().line + 1);
        for (which, encoding) in ENCODINGS.into_iter().enumerate() {
            for offset in 0..=text.len() + 2 {
                let reference = references.iter().find(|reference| reference.offset == offset);
                let expected = match reference {
                    Some(reference) => Ok(Position::new(reference.line, reference.columns[which])),
                    None if offset > text.len() => Err(PositionError::PastTextEnd { offset, length: text.len() }),
                    None if inside_breaks.contains(&offset) => Err(PositionError::InsideLineBreak),
                    None => Err(PositionError::InsideCharacter),
                };
                prop_assert_eq!(index.position(offset, encoding), expected);
                let before = references.iter().rfind(|reference| reference.offset <= offset).unwrap();
                prop_assert_eq!(index.position_clamped(offset, encoding), Position::new(before.line, before.columns[which]));
            }
        }
    }

    #[test]
    fn position_to_offset_agrees_with_the_reference(text in text()) {
        let index = LineIndex::new(text.as_str());
        let (references, _) = reference_positions(&text);
        let last = references.last().unwrap().line;
        for (which, encoding) in ENCODINGS.into_iter().enumerate() {
            for line in 0..=last + 1 {
                let on_line: Vec<&ReferencePosition> =
                    references.iter().filter(|reference| reference.line == line).collect();
                let length = on_line.last().map_or(0, |reference| reference.columns[which]);
                for character in 0..=length + 2 {
                    let reference = on_line.iter().find(|reference| reference.columns[which] == character);
                    let position = Position::new(line, character);
                    let expected = match reference {
                        Some(reference) => Ok(reference.offset),
                        None if line > last => Err(PositionError::PastLastLine { line, last }),
                        None if character > length => Err(PositionError::PastLineEnd { character, length }),
                        None => Err(PositionError::InsideCharacter),
                    };
                    prop_assert_eq!(index.offset(position, encoding), expected);
                    let before = on_line.iter().rfind(|reference| reference.columns[which] <= character);
                    let clamped = before.map_or(text.len(), |reference| reference.offset);
                    prop_assert_eq!(index.offset_clamped(position, encoding), clamped);
                }
            }
        }
    }

    #[test]
    fn conversion_between_encodings_agrees_with_the_reference(text in text()) {
        let index = LineIndex::new(text.as_str());
        for reference in reference_positions(&text).0 {
            for (a, from) in ENCODINGS.into_iter().enumerate() {
                for (b, to) in ENCODINGS.into_iter().enumerate() {
                    let position = Position::new(reference.line, reference.columns[a]);
                    let expected = Position::new(reference.line, reference.columns[b]);
                    prop_assert_eq!(index.convert(position, from, to), Ok(expected));
                    prop_assert_eq!(index.convert_clamped(position, from, to), expected);
                }
            }
        }
    }

    #[test]
    fn conversion_fails_exactly_when_offset_fails(text in text(), line in 0_u32..8, character in 0_u32..12) {
        let index = LineIndex::new(text.as_str());
        let position = Position::new(line, character);
        for from in ENCODINGS {
            for to in ENCODINGS {
                let converted = index.convert(position, from, to);
                prop_assert_eq!(converted.err(), index.offset(position, from).err());
                if let Ok(converted) = converted {
                    prop_assert_eq!(index.convert(converted, to, from), Ok(position));
                }
            }
        }
    }

    #[test]
    fn clamping_keeps_the_order_of_range_ends(text in text(), a in (0_u32..6, 0_u32..9), b in (0_u32..6, 0_u32..9)) {
        let index = LineIndex::new(text.as_str());
        let (start, end) = (Position::new(a.0, a.1).min(Position::new(b.0, b.1)), Position::new(a.0, a.1).max(Position::new(b.0, b.1)));
        for from in ENCODINGS {
            for to in ENCODINGS {
                let range = index.convert_range_clamped(Range::new(start, end), from, to);
                prop_assert!(range.start <= range.end);
                prop_assert!(index.offset(range.end, to).is_ok());
                if let Ok(exact) = index.convert_range(Range::new(start, end), from, to) {
                    prop_assert_eq!(exact, range);
                }
            }
        }
    }

    #[test]
    fn lines_and_line_breaks_add_up_to_the_text(text in text()) {
        let index = LineIndex::new(text.as_str());
        let mut rest = text.as_str();
        for line in 0..index.line_count() {
            let content = index.line(line).unwrap();
            prop_assert!(!content.contains(['\r', '\n']));
            rest = rest.strip_prefix(content).unwrap();
            rest = ["\r\n", "\n", "\r"].iter().find_map(|end| rest.strip_prefix(end)).unwrap_or(rest);
        }
        prop_assert_eq!(rest, "");
        prop_assert_eq!(index.line(index.line_count()), None);
    }

    #[test]
    fn position_json_round_trips(line: u32, character: u32) {
        let position = Position::new(line, character);
        let text = serde_json::to_string(&position).unwrap();
        prop_assert_eq!(serde_json::from_str::<Position>(&text).unwrap(), position);
    }
}
