//! The checks of a request that changes something: its origin and its form token.

use axum::http::{HeaderMap, HeaderName, header};

use crate::form::Fields;
use crate::sign_in::Session;

/// The name of the field with the form token.
pub(crate) const TOKEN_FIELD: &str = "form_token";

/// How the browser relates the page that sends a request to this site.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the request comes from another site")]
    Origin,
    #[error("the form has expired; go back, reload the page and try again")]
    FormToken,
}

/// Checks a POST request. Browsers send `Origin` with every one. Since our pages have the policy `no-referrer`, the origin of
/// their forms is `null`; `Sec-Fetch-Site`, which no page can set, then tells them from those of other sites.
pub(crate) fn check_post(headers: &HeaderMap, session: &Session, form: &Fields) -> Result<(), Refusal> {
    let single = |name| {
        let mut values = headers.get_all(name).iter();
        match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
            (Some(value), None) => Some(value),
            _ => None,
        }
    };
    let host = single(header::HOST).ok_or(Refusal::Origin)?;
    let origin = single(header::ORIGIN).ok_or(Refusal::Origin)?;
    let is_own_form = origin == "null" && single(FETCH_SITE) == Some("same-origin");
    if origin.strip_prefix("http://") != Some(host) && !is_own_form {
        return Err(Refusal::Origin);
    }
    match form.text(TOKEN_FIELD) {
        Some(token) if session.accepts(token) => Ok(()),
        _ => Err(Refusal::FormToken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn post_needs_its_own_origin_and_the_form_token() {
        let session = Session { id: "id".to_owned(), form_token: "secret".to_owned() };
        let checked_from = |origin: Option<&str>, site: Option<&str>, token: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:8000".parse().expect("a header value"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().expect("a header value"));
            }
            if let Some(site) = site {
                headers.insert(FETCH_SITE, site.parse().expect("a header value"));
            }
            check_post(&headers, &session, &Fields::parse(&format!("form_token={token}")))
        };
        let checked = |origin: Option<&str>, token: &str| checked_from(origin, None, token);
        assert_eq!(checked_from(Some("null"), Some("same-origin"), "secret"), Ok(()));
        for site in ["cross-site", "same-site", "none"] {
            assert_eq!(checked_from(Some("null"), Some(site), "secret"), Err(Refusal::Origin), "{site}");
        }
        assert_eq!(checked(Some("http://127.0.0.1:8000"), "secret"), Ok(()));
        for origin in [None, Some("null"), Some("http://127.0.0.1:9000"), Some("http://evil.example")] {
            assert_eq!(checked(origin, "secret"), Err(Refusal::Origin), "{origin:?}");
        }
        for token in ["", "Secret", "secret2"] {
            assert_eq!(checked(Some("http://127.0.0.1:8000"), token), Err(Refusal::FormToken), "{token}");
        }
    }
}
