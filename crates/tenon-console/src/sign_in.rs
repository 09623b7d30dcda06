//! Who may see the console: links that sign a browser in once, and the sessions that they open.
//!
//! A link holds a code of 256 bits that works once and for 60 seconds. It opens a session, whose token is a cookie. Only the
//! hashes of tokens are kept, in memory and in a file of the user, so that a page outlives a restart of the daemon. The file
//! belongs to one workspace, and so does the cookie's name: browsers do not separate cookies by port.
//!
//! The form token of a session is derived from the session's token. It is in the pages, which other sites cannot read.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tenon_contract::clock::{Clock, Entropy};
use tenon_contract::id::sha256_hex;
use tenon_server::web::PREFIX;

/// How long a link works.
const LINK_LIFE: Duration = Duration::from_secs(60);

/// How long a session lasts.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);

/// How many links and sessions there may be; the oldest give way.
const MAX_LINKS: usize = 32;
const MAX_SESSIONS: usize = 64;

/// A signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// The hash of the session token.
    pub(crate) id: String,
    pub(crate) form_token: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Hashes of codes, with the time in milliseconds at which they expire.
    #[serde(skip)]
    links: BTreeMap<String, u64>,
    /// Hashes of tokens, with the time in milliseconds at which they expire.
    sessions: BTreeMap<String, u64>,
}

/// See the module.
pub(crate) struct SignIn {
    clock: Clock,
    entropy: Entropy,
    cookie: String,
    file: Utf8PathBuf,
    state: Mutex<State>,
}

impl SignIn {
    /// Reads the sessions that an earlier daemon of the workspace left in `folder`.
    pub(crate) fn new(root: &Utf8Path, folder: &Utf8Path, clock: Clock, entropy: Entropy) -> Self {
        let name = &sha256_hex(root.as_str())[..16];
        let file = folder.join(format!("{name}.json"));
        let mut state: State = std::fs::read(&file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        state.drop_expired(clock.unix_millis());
        Self { clock, entropy, cookie: format!("tenon_console_{name}"), file, state: Mutex::new(state) }
    }

    /// The path of a link that signs a browser in.
    pub(crate) fn link_path(&self) -> String {
        let code = self.entropy.token();
        let now = self.clock.unix_millis();
        let mut state = self.state();
        state.drop_expired(now);
        make_room(&mut state.links, MAX_LINKS);
        state.links.insert(sha256_hex(&code), expiry(now, LINK_LIFE));
        format!("{PREFIX}/-/open?code={code}")
    }

    /// Uses a code. Returns the `Set-Cookie` header of a new session.
    pub(crate) fn exchange(&self, code: &str) -> Option<String> {
        let now = self.clock.unix_millis();
        let mut state = self.state();
        state.drop_expired(now);
        state.links.remove(&sha256_hex(code))?;
        let token = self.entropy.token();
        make_room(&mut state.sessions, MAX_SESSIONS);
        state.sessions.insert(sha256_hex(&token), expiry(now, SESSION_LIFE));
        if let Err(error) = self.save(&state) {
            tracing::warn!(%error, "cannot keep console sessions for the next daemon");
        }
        let (name, life) = (&self.cookie, SESSION_LIFE.as_secs());
        Some(format!("{name}={token}; Path={PREFIX}/; HttpOnly; SameSite=Strict; Max-Age={life}"))
    }

    /// The session of a request.
    pub(crate) fn session(&self, headers: &HeaderMap) -> Option<Session> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, token) = pairs.find(|(name, _)| *name == self.cookie)?;
        let id = sha256_hex(token);
        let expires = *self.state().sessions.get(&id)?;
        (expires > self.clock.unix_millis())
            .then(|| Session { form_token: sha256_hex(format!("form {token}")), id })
    }

    /// Whether any session is valid.
    pub(crate) fn has_sessions(&self) -> bool {
        let mut state = self.state();
        state.drop_expired(self.clock.unix_millis());
        !state.sessions.is_empty()
    }

    fn save(&self, state: &State) -> std::io::Result<()> {
        let folder = self.file.parent().unwrap_or(Utf8Path::new("/"));
        std::fs::create_dir_all(folder)?;
        // A temporary file is only readable for its user.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(state)?)?;
        file.persist(&self.file)?;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Whether a form has this session's token.
    pub(crate) fn accepts(&self, form_token: &str) -> bool {
        self.form_token.as_bytes().ct_eq(form_token.as_bytes()).into()
    }
}

impl State {
    fn drop_expired(&mut self, now: u64) {
        self.links.retain(|_, expires| *expires > now);
        self.sessions.retain(|_, expires| *expires > now);
    }
}

/// Removes the one that expires first if there are too many.
fn make_room(entries: &mut BTreeMap<String, u64>, most: usize) {
    while entries.len() >= most {
        let Some(oldest) = entries.iter().min_by_key(|(_, expires)| **expires).map(|(id, _)| id.clone())
        else {
            return;
        };
        entries.remove(&oldest);
    }
}

fn expiry(now: u64, life: Duration) -> u64 {
    now.saturating_add(u64::try_from(life.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stage {
        folder: tempfile::TempDir,
        clock: Clock,
    }

    impl Stage {
        fn sign_in(&self, root: &str, seed: u64) -> SignIn {
            let folder = Utf8Path::from_path(self.folder.path()).expect("temporary folders are UTF-8");
            SignIn::new(Utf8Path::new(root), folder, self.clock.clone(), Entropy::seeded(seed))
        }
    }

    fn stage() -> (Stage, tenon_contract::clock::ClockControl) {
        let start = "2026-01-02T12:00:00Z".parse().expect("a fixed time");
        let (clock, control) = Clock::fixed(start);
        (Stage { folder: tempfile::tempdir().expect("a temporary folder"), clock }, control)
    }

    fn code(sign_in: &SignIn) -> String {
        sign_in.link_path().rsplit_once('=').expect("a link has a code").1.to_owned()
    }

    fn headers(set_cookie: &str) -> HeaderMap {
        let pair = set_cookie.split(';').next().expect("a cookie has a value");
        HeaderMap::from_iter([(header::COOKIE, pair.parse().expect("a header value"))])
    }

    #[test]
    fn link_works_once_and_for_a_minute() {
        let (stage, control) = stage();
        let sign_in = stage.sign_in("/w", 1);
        let first = code(&sign_in);
        assert!(sign_in.exchange(&first).is_some());
        assert!(sign_in.exchange(&first).is_none());
        let second = code(&sign_in);
        control.advance(LINK_LIFE);
        assert!(sign_in.exchange(&second).is_none());
        assert!(sign_in.exchange("").is_none());
    }

    #[test]
    fn session_survives_a_restart_and_ends() {
        let (stage, control) = stage();
        let sign_in = stage.sign_in("/w", 1);
        let cookie = sign_in.exchange(&code(&sign_in)).expect("the code is new");
        assert!(cookie.contains("HttpOnly; SameSite=Strict") && cookie.contains("Path=/console/"));
        let next = stage.sign_in("/w", 2);
        assert!(next.has_sessions() && next.session(&headers(&cookie)).is_some());
        assert_eq!(next.session(&headers(&cookie)), sign_in.session(&headers(&cookie)));
        control.advance(SESSION_LIFE);
        assert!(!next.has_sessions() && next.session(&headers(&cookie)).is_none());
    }

    #[test]
    fn session_is_of_one_workspace() {
        let (stage, _control) = stage();
        let sign_in = stage.sign_in("/w", 1);
        let cookie = sign_in.exchange(&code(&sign_in)).expect("the code is new");
        let other = stage.sign_in("/other", 2);
        assert_eq!(other.session(&headers(&cookie)), None);
        // Even under the other's name.
        let renamed = cookie.replace(&sign_in.cookie, &other.cookie);
        assert_eq!(other.session(&headers(&renamed)), None);
    }

    #[test]
    fn form_token_differs_from_the_session_token() {
        let (stage, _control) = stage();
        let sign_in = stage.sign_in("/w", 1);
        let cookie = sign_in.exchange(&code(&sign_in)).expect("the code is new");
        let session = sign_in.session(&headers(&cookie)).expect("the session is new");
        assert!(!cookie.contains(&session.form_token));
        assert!(
            session.accepts(&session.form_token.clone())
                && !session.accepts("")
                && !session.accepts(&session.id)
        );
    }
}
