//! Framing of the base protocol, both directions: `Content-Length` headers around JSON bodies.
//!
//! Real servers print logs to stdout, write headers in lower case and send wrong sizes. Policy of the decoder:
//! - other lines before a header block are skipped, even if a header follows on the same line;
//! - header names are case-insensitive, the last `Content-Length` of a block counts, other headers are ignored;
//! - a line longer than [`MAX_LINE_BYTES`] is discarded as it arrives, so noise never fills memory;
//! - a body above [`MAX_BODY_BYTES`] is an error with its first bytes, and discarded as it arrives; decoding may go on after it;
//! - a body above [`MAX_SKIPPED_BYTES`] or a block of more than [`MAX_BLOCK_LINES`] lines ends the stream with an error, since
//!   the next frame cannot be found;
//! - a body is a slice of the read buffer, never a copy.

use bytes::{Buf, Bytes, BytesMut};
use serde::Serialize;
use tokio_util::codec::Decoder;

/// Longer lines are noise. Real headers are some thirty bytes.
pub const MAX_LINE_BYTES: usize = 4 * 1024;
/// The most lines of one header block, so that an endless block is an error.
pub(crate) const MAX_BLOCK_LINES: usize = 32;
/// The largest answers seen are lists of some ten thousand symbols, a few megabytes.
pub const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
/// Larger lengths are not believed.
const MAX_SKIPPED_BYTES: usize = 1024 * 1024 * 1024;
/// How much of a discarded body is kept: enough for the id of a response.
const HEAD_BYTES: usize = 256;

/// Room in front of a body for `Content-Length: `, twenty digits and two line ends.
const HEADER_ROOM: usize = 40;

/// Why no more frames can be read.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("a frame of {0} bytes is larger than the {MAX_BODY_BYTES} allowed")]
    BodyTooLarge(u64),
    /// The frames after this one can be read.
    #[error("a frame of {length} bytes is larger than the {MAX_BODY_BYTES} allowed")]
    BodySkipped { length: usize, head: Bytes },
    #[error("a header block has more than {MAX_BLOCK_LINES} lines")]
    BlockTooLong,
    #[error("the stream ended inside a frame")]
    Truncated,
    #[error("the stream failed")]
    Io(#[from] std::io::Error),
}

/// Decodes frames from a byte stream that arrives in pieces of any size.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    state: State,
    /// How far the buffer was searched for a line end, so that slow lines are not searched repeatedly.
    searched: usize,
    skipped: u64,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// Between frames: anything but a header is noise.
    #[default]
    Between,
    /// Inside a noise line too long to keep.
    Discarding,
    /// Inside a header block that has announced its length.
    Headers {
        length: usize,
        lines: usize,
    },
    Body {
        length: usize,
    },
    /// Inside a body too large to keep.
    Skipping {
        left: usize,
    },
}

/// A complete line.
struct Line {
    /// Without the line end.
    text: BytesMut,
    /// In bytes, with the line end.
    length: usize,
}

impl Line {
    /// Whether an incomplete line of this length would have been discarded: frames must not depend on the size of pieces.
    fn is_too_long(&self) -> bool {
        self.length > MAX_LINE_BYTES + 1
    }
}

impl FrameDecoder {
    /// Bytes of noise discarded so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether a frame has begun and is incomplete.
    pub(crate) fn is_inside_frame(&self) -> bool {
        !matches!(self.state, State::Between | State::Discarding)
    }

    /// Takes one line; `None` if it is incomplete.
    fn take_line(&mut self, buffer: &mut BytesMut) -> Option<Line> {
        let Some(found) = buffer[self.searched..].iter().position(|&byte| byte == b'\n') else {
            self.searched = buffer.len();
            return None;
        };
        let end = self.searched + found;
        self.searched = 0;
        let mut text = buffer.split_to(end);
        buffer.advance(1);
        if text.last() == Some(&b'\r') {
            text.truncate(end - 1);
        }
        Some(Line { text, length: end + 1 })
    }

    fn discard(&mut self, buffer: &mut BytesMut) {
        self.skipped += buffer.len() as u64;
        buffer.clear();
        self.searched = 0;
    }
}

impl Decoder for FrameDecoder {
    type Item = Bytes;
    type Error = CodecError;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, CodecError> {
        loop {
            match self.state {
                State::Body { length } if length > MAX_BODY_BYTES => {
                    if buffer.len() < HEAD_BYTES {
                        return Ok(None);
                    }
                    let head = buffer.split_to(HEAD_BYTES).freeze();
                    self.state = State::Skipping { left: length - HEAD_BYTES };
                    return Err(CodecError::BodySkipped { length, head });
                }
                State::Skipping { left } => {
                    let skipped = left.min(buffer.len());
                    buffer.advance(skipped);
                    if skipped < left {
                        self.state = State::Skipping { left: left - skipped };
                        return Ok(None);
                    }
                    self.state = State::Between;
                }
                State::Body { length } => {
                    if buffer.len() < length {
                        buffer.reserve(length - buffer.len());
                        return Ok(None);
                    }
                    self.state = State::Between;
                    return Ok(Some(buffer.split_to(length).freeze()));
                }
                State::Discarding => match self.take_line(buffer) {
                    Some(line) => {
                        self.skipped += line.length as u64;
                        self.state = State::Between;
                    }
                    None => {
                        self.discard(buffer);
                        return Ok(None);
                    }
                },
                State::Between => match self.take_line(buffer) {
                    Some(line) if line.is_too_long() => self.skipped += line.length as u64,
                    Some(line) => match content_length(&line.text)? {
                        Some(length) => self.state = State::Headers { length, lines: 1 },
                        None => self.skipped += line.length as u64,
                    },
                    None if buffer.len() > MAX_LINE_BYTES => {
                        self.discard(buffer);
                        self.state = State::Discarding;
                        return Ok(None);
                    }
                    None => return Ok(None),
                },
                State::Headers { length, lines } => match self.take_line(buffer) {
                    Some(line) if line.text.is_empty() => self.state = State::Body { length },
                    Some(line) if lines >= MAX_BLOCK_LINES || line.is_too_long() => {
                        return Err(CodecError::BlockTooLong);
                    }
                    Some(line) => {
                        let length = content_length(&line.text)?.unwrap_or(length);
                        self.state = State::Headers { length, lines: lines + 1 };
                    }
                    None if buffer.len() > MAX_LINE_BYTES => return Err(CodecError::BlockTooLong),
                    None => return Ok(None),
                },
            }
        }
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, CodecError> {
        match self.decode(buffer)? {
            Some(frame) => Ok(Some(frame)),
            None if self.is_inside_frame() => Err(CodecError::Truncated),
            None => {
                self.discard(buffer);
                Ok(None)
            }
        }
    }
}

/// The length that a line announces, or `None` for any other line.
fn content_length(line: &[u8]) -> Result<Option<usize>, CodecError> {
    const NAME: &[u8] = b"content-length:";
    let Some(at) = line.windows(NAME.len()).rposition(|window| window.eq_ignore_ascii_case(NAME)) else {
        return Ok(None);
    };
    let digits = line[at + NAME.len()..].trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Ok(None);
    }
    let announced = digits
        .iter()
        .fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    match usize::try_from(announced) {
        Ok(length) if length <= MAX_SKIPPED_BYTES => Ok(Some(length)),
        _ => Err(CodecError::BodyTooLarge(announced)),
    }
}

/// Writes a value as one frame. The body is serialised once, after space for the header, and never copied.
pub fn frame<T: Serialize + ?Sized>(value: &T) -> Result<Bytes, serde_json::Error> {
    let mut buffer = vec![0; HEADER_ROOM];
    serde_json::to_writer(&mut buffer, value)?;
    let header = format!("Content-Length: {}\r\n\r\n", buffer.len() - HEADER_ROOM);
    let start = HEADER_ROOM - header.len();
    buffer[start..HEADER_ROOM].copy_from_slice(header.as_bytes());
    let mut frame = Bytes::from(buffer);
    frame.advance(start);
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(body: &str) -> Vec<u8> {
        format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    /// Feeds pieces and collects what comes out.
    fn decode(pieces: &[&[u8]]) -> Result<Vec<String>, CodecError> {
        let mut decoder = FrameDecoder::default();
        let mut buffer = BytesMut::new();
        let mut frames = Vec::new();
        for piece in pieces {
            buffer.extend_from_slice(piece);
            while let Some(frame) = decoder.decode(&mut buffer)? {
                frames.push(String::from_utf8_lossy(&frame).into_owned());
            }
        }
        while let Some(frame) = decoder.decode_eof(&mut buffer)? {
            frames.push(String::from_utf8_lossy(&frame).into_owned());
        }
        Ok(frames)
    }

    #[test]
    fn header_names_are_case_insensitive_and_other_headers_are_ignored() {
        let input = b"content-length:2\nContent-Type: application/vscode-jsonrpc; charset=utf-8\n\n{}";
        assert_eq!(decode(&[input]).unwrap(), ["{}"]);
    }

    #[test]
    fn noise_before_headers_is_skipped() {
        let mut input = b"npm warn deprecated\r\n\r\nDebugger attached.\nContent-Length: x\n".to_vec();
        input.extend(framed("1"));
        input.extend(b"loading... ");
        input.extend(framed("2"));
        assert_eq!(decode(&[&input]).unwrap(), ["1", "2"]);
    }

    #[test]
    fn an_endless_noise_line_takes_no_memory() {
        let mut decoder = FrameDecoder::default();
        let mut buffer = BytesMut::new();
        for _ in 0..1000 {
            buffer.extend_from_slice(&[b'.'; 1000]);
            assert!(decoder.decode(&mut buffer).unwrap().is_none());
            assert!(buffer.len() <= MAX_LINE_BYTES);
        }
        buffer.extend_from_slice(b"\n");
        buffer.extend_from_slice(&framed("[]"));
        assert_eq!(decoder.decode(&mut buffer).unwrap(), Some(Bytes::from_static(b"[]")));
        assert_eq!(decoder.skipped(), 1_000_001);
    }

    #[test]
    fn long_lines_are_the_same_in_one_piece_and_in_many() {
        for (dots, frames) in [(4000, 1), (4079, 0), (5000, 0)] {
            let mut stream = vec![b'.'; dots];
            stream.extend(framed("[]"));
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(decode(&[&stream]).unwrap().len(), frames, "{dots}");
            assert_eq!(decode(&bytes).unwrap().len(), frames, "{dots}");
        }
        let long = [b"Content-Length: 2\r\n".as_slice(), &[b'x'; 5000], b"\r\n\r\n[]"].concat();
        assert!(matches!(decode(&[&long]), Err(CodecError::BlockTooLong)));
    }

    #[test]
    fn invalid_sizes_are_errors() {
        let too_large = decode(&[b"Content-Length: 99999999999999999999999\r\n\r\n"]);
        assert!(matches!(too_large, Err(CodecError::BodyTooLarge(u64::MAX))));
        let endless: Vec<u8> = std::iter::once("Content-Length: 1\r\n")
            .chain(std::iter::repeat_n("X: y\r\n", 100))
            .flat_map(str::bytes)
            .collect();
        assert!(matches!(decode(&[&endless]), Err(CodecError::BlockTooLong)));
        let long = [b"Content-Length: 1\r\n".as_slice(), &[b'x'; 5000]];
        assert!(matches!(decode(&long), Err(CodecError::BlockTooLong)));
        assert!(matches!(decode(&[b"Content-Length: 5\r\n\r\nab"]), Err(CodecError::Truncated)));
    }

    #[test]
    fn large_body_is_skipped_without_memory_and_the_next_frame_is_read() {
        let length = MAX_BODY_BYTES + 1;
        let mut decoder = FrameDecoder::default();
        let mut buffer = BytesMut::from(format!("Content-Length: {length}\r\n\r\n{{\"id\":7").as_bytes());
        assert!(decoder.decode(&mut buffer).unwrap().is_none());
        let mut left = length - 7;
        let mut heads = Vec::new();
        while left > 0 {
            let piece = left.min(64 * 1024);
            buffer.extend_from_slice(&vec![b' '; piece]);
            left -= piece;
            match decoder.decode(&mut buffer) {
                Ok(frame) => assert_eq!(frame, None),
                Err(CodecError::BodySkipped { length: announced, head }) => {
                    assert_eq!(announced, length);
                    heads.push(head);
                    assert!(decoder.decode(&mut buffer).unwrap().is_none());
                }
                Err(error) => panic!("{error}"),
            }
            assert!(buffer.is_empty() && (decoder.is_inside_frame() || left == 0));
        }
        assert_eq!(heads.len(), 1);
        assert!(heads[0].starts_with(b"{\"id\":7 ") && heads[0].len() == HEAD_BYTES);
        buffer.extend_from_slice(&framed("[]"));
        assert_eq!(decoder.decode(&mut buffer).unwrap(), Some(Bytes::from_static(b"[]")));
    }

    #[test]
    fn the_last_length_of_a_block_counts() {
        let input = b"Content-Length: 900\r\nnoise\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(decode(&[input]).unwrap(), ["{}"]);
    }

    proptest! {
        #[test]
        fn what_is_framed_comes_back_in_any_pieces(
            bodies in prop::collection::vec(any::<String>(), 0..6),
            noise in "([a-z {}\\[\\]:]{0,40}\n){0,3}",
            cuts in prop::collection::vec(1_usize..64, 1..40),
        ) {
            let mut stream = Vec::new();
            for body in &bodies {
                stream.extend(noise.bytes());
                stream.extend(frame(body).unwrap());
            }
            let mut pieces = Vec::new();
            let mut rest = stream.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = tail;
            }
            let expected: Vec<String> = bodies.iter().map(|body| serde_json::to_string(body).unwrap()).collect();
            prop_assert_eq!(decode(&pieces).unwrap(), expected);
        }

        #[test]
        fn any_bytes_end_in_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let _ = decode(&[&bytes]);
        }
    }
}
