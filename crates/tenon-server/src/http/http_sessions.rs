//! The open sessions of one endpoint: at most 64 per token; a new one then replaces the token's oldest.
//!
//! A session is found only with the token that created it and on the path where it was created.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;

use super::rejection::HttpRejection;
use crate::mcp::session::Session;

const KEPT_PER_TOKEN: usize = 64;

struct Entry {
    session: Arc<Session>,
    owner: String,
    surface: Option<&'static str>,
}

impl Entry {
    fn belongs_to(&self, owner: &str, surface: Option<&str>) -> bool {
        self.owner == owner && self.surface == surface
    }
}

#[derive(Default)]
pub(super) struct HttpSessions {
    open: Mutex<IndexMap<String, Entry>>,
}

impl HttpSessions {
    pub(super) fn add(&self, id: String, session: Arc<Session>, owner: &str, surface: Option<&'static str>) {
        let entry = Entry { session, owner: owner.to_owned(), surface };
        let mut open = self.lock();
        open.insert(id, entry);
        let mut own = open.iter().enumerate().filter(|(_, (_, entry))| entry.owner == owner);
        let oldest = own.next().map(|(index, _)| index);
        if own.count() >= KEPT_PER_TOKEN
            && let Some((_, oldest)) = oldest.and_then(|index| open.shift_remove_index(index))
        {
            oldest.session.close();
        }
    }

    pub(super) fn find(
        &self,
        id: &str,
        owner: &str,
        surface: Option<&str>,
    ) -> Result<Arc<Session>, HttpRejection> {
        let open = self.lock();
        let entry = open.get(id).filter(|entry| entry.belongs_to(owner, surface)).ok_or_else(unknown)?;
        Ok(Arc::clone(&entry.session))
    }

    pub(super) fn end(&self, id: &str, owner: &str, surface: Option<&str>) -> Result<(), HttpRejection> {
        self.find(id, owner, surface)?.close();
        self.lock().shift_remove(id);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, IndexMap<String, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown() -> HttpRejection {
    HttpRejection::not_found("there is no such session")
}
