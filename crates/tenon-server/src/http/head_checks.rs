//! Checks on the head of a request: host, origin, bearer token, content type, accept, session id.

use std::borrow::Cow;
use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, Uri, header};

use super::rejection::HttpRejection;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The name of a surface in a path, percent-decoded.
pub(super) fn unescaped(name: &str) -> Cow<'_, str> {
    if !name.contains('%') {
        return Cow::Borrowed(name);
    }
    let mut parts = name.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..2).map(|hex| u8::from_str_radix(hex, 16)) {
            Some(Ok(byte)) if byte.is_ascii() => {
                plain.push(char::from(byte));
                plain.push_str(&part[2..]);
            }
            // No surface name contains this.
            _ => return Cow::Borrowed(name),
        }
    }
    Cow::Owned(plain)
}

/// `Host` must be a loopback name; any port is allowed.
pub(super) fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRejection> {
    let foreign = || HttpRejection::forbidden("`Host` is not a loopback name");
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(foreign());
    };
    let host = host.to_str().map_err(|_| foreign())?;
    let named_in_uri = uri.authority().is_none_or(|authority| is_loopback(authority.as_str()));
    if is_loopback(host) && named_in_uri { Ok(()) } else { Err(foreign()) }
}

/// Browsers send the origin of a page; only pages of this machine are allowed.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), HttpRejection> {
    let foreign = || HttpRejection::forbidden("`Origin` is not a loopback origin");
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().map_err(|_| foreign())?;
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !authority.is_some_and(is_loopback) {
            return Err(foreign());
        }
    }
    Ok(())
}

/// `localhost`, `127.0.0.0/8` or `[::1]`, with or without a port.
fn is_loopback(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None => return false,
            },
            None => return false,
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if port
        .is_some_and(|port| port.parse::<u16>().is_err() || !port.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return false;
    }
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) if !authority.starts_with('[') => false,
        Ok(ip) => ip.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// The bearer token, if the request has exactly one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), HttpRejection> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(HttpRejection::unsupported_media_type());
    };
    let value = value.to_str().map_err(|_| HttpRejection::unsupported_media_type())?;
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    let is_utf8 = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    });
    if is_json && is_utf8 { Ok(()) } else { Err(HttpRejection::unsupported_media_type()) }
}

/// Both types must be listed by name: `*/*` does not promise that the client reads event streams.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), HttpRejection> {
    let accepts = |wanted: &str| {
        headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|range| {
                let mut parts = range.split(';').map(str::trim);
                let named = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(wanted));
                named && !parts.any(is_zero_weight)
            })
    };
    if accepts("application/json") && accepts("text/event-stream") {
        Ok(())
    } else {
        Err(HttpRejection::not_acceptable())
    }
}

fn is_zero_weight(parameter: &str) -> bool {
    let weight = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    weight.is_some_and(|(_, value)| value.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0))
}

pub(super) fn session_id(headers: &HeaderMap) -> Result<&str, HttpRejection> {
    let value =
        headers.get(SESSION_ID).ok_or_else(|| HttpRejection::bad_request("`MCP-Session-Id` is missing"))?;
    value.to_str().map_err(|_| HttpRejection::bad_request("`MCP-Session-Id` is malformed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_escaped() {
        for (name, plain) in [
            ("code", "code"),
            ("%63ode", "code"),
            ("c%6Fde", "code"),
            ("%", "%"),
            ("a%2", "a%2"),
            ("%é", "%é"),
        ] {
            assert_eq!(unescaped(name), plain);
        }
    }

    #[test]
    fn loopback_names_only() {
        for yes in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.8.9.1:65535", "[::1]", "[::1]:3000"] {
            assert!(is_loopback(yes), "{yes}");
        }
        for no in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "::1",
            "[::1",
            "[::1]x",
            "[::2]",
            "0.0.0.0",
            "192.168.0.1",
            "localhost:",
            "localhost:99999",
            "localhost:+1",
            "evil@localhost",
            "localhost/x",
            "127.1",
            "[127.0.0.1",
        ] {
            assert!(!is_loopback(no), "{no}");
        }
    }

    #[test]
    fn zero_weight_does_not_accept() {
        let accept = |value: &str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, value.parse().unwrap())]);
            check_accept(&headers).is_ok()
        };
        assert!(accept("application/json, text/event-stream"));
        assert!(accept("text/event-stream;q=0.5,Application/JSON;q=1"));
        assert!(!accept("application/json"));
        assert!(!accept("*/*"));
        assert!(!accept("application/json, text/event-stream;q=0"));
        assert!(!accept("application/jsonp, text/event-streams"));
    }
}
