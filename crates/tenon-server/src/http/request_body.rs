//! Reads a request body, limited in size and time.

use std::time::Duration;

use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Incoming as Body;

use super::rejection::HttpRejection;

/// How much to read and discard before a rejection. Closing the connection while the client still writes
/// would lose the response.
const DISCARDED_BYTES: usize = 4 * 1024 * 1024;
const DISCARDED_TIME: Duration = Duration::from_secs(1);

/// The whole body, if it has at most `cap` bytes and arrives within `patience`.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    cap: usize,
    patience: Duration,
) -> Result<Vec<u8>, HttpRejection> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok())
        .unwrap_or(0);
    if declared > cap {
        discard(body).await;
        return Err(HttpRejection::too_large(cap));
    }
    let mut bytes = Vec::with_capacity(declared);
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return Err(HttpRejection::broken_body());
            };
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > cap {
                return Err(HttpRejection::too_large(cap));
            }
            bytes.extend_from_slice(data);
        }
        Ok(())
    };
    match tokio::time::timeout(patience, reading).await {
        Ok(Ok(())) => Ok(bytes),
        Ok(Err(rejection)) => {
            discard(body).await;
            Err(rejection)
        }
        Err(_elapsed) => Err(HttpRejection::too_slow()),
    }
}

/// Reads and discards, limited in size and time.
pub(super) async fn discard(mut body: Body) {
    let mut left = DISCARDED_BYTES;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let read = frame.data_ref().map_or(0, bytes::Bytes::len);
            match left.checked_sub(read) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(DISCARDED_TIME, reading).await;
}
