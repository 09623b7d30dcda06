//! Frames are the same in whatever pieces they arrive, and what is framed comes back.

use bytes::{Bytes, BytesMut};
use tokio_util::codec::Decoder;

use crate::codec::{CodecError, FrameDecoder, frame};

/// What a stream decodes to: frames and the errors between them, and the bytes of noise.
#[derive(Debug, PartialEq)]
struct Decoded {
    items: Vec<Result<Bytes, String>>,
    noise: u64,
}

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Decoded {
    let mut decoder = FrameDecoder::default();
    let mut buffer = BytesMut::new();
    let mut items = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(frame)) => items.push(Ok(frame)),
                Ok(None) => break,
                Err(error) => {
                    let ends = !matches!(error, CodecError::BodySkipped { .. });
                    items.push(Err(error.to_string()));
                    if ends {
                        return Decoded { items, noise: decoder.skipped() };
                    }
                }
            }
        }
    }
    loop {
        match decoder.decode_eof(&mut buffer) {
            Ok(Some(frame)) => items.push(Ok(frame)),
            Ok(None) => return Decoded { items, noise: decoder.skipped() },
            Err(error) => {
                items.push(Err(error.to_string()));
                return Decoded { items, noise: decoder.skipped() };
            }
        }
    }
}

/// Cuts into pieces whose sizes are these bytes, in turns.
fn pieces<'a>(mut rest: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = usize::from(*sizes.next()?).max(1).min(rest.len());
        let (piece, tail) = rest.split_at(size);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The first two bytes of `data` are sizes of pieces, the rest is the stream.
pub fn check(data: &[u8]) {
    let Some((sizes, stream)) = data.split_at_checked(2) else { return };
    assert_eq!(decode(pieces(stream, sizes)), decode(std::iter::once(stream)));
    let text = String::from_utf8_lossy(stream);
    let framed = frame(&text).expect("text has a JSON form");
    let body = serde_json::to_vec(&text).expect("text has a JSON form");
    let decoded = decode(pieces(&framed, sizes));
    assert_eq!(decoded, Decoded { items: vec![Ok(body.into())], noise: 0 });
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("frames", super::check);
    }
}
