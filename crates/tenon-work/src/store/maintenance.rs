//! Checks and upkeep that the databases do themselves.

use super::{Backend, StoreError, Tx, args};

impl Tx {
    /// What the database finds wrong with its own files. PostgreSQL has no such check.
    pub(crate) async fn integrity_problems(&mut self) -> Result<Vec<String>, StoreError> {
        if self.backend() == Backend::Postgres {
            return Ok(Vec::new());
        }
        // FTS5 checks the index as this connection last saw it, and other processes may have changed it since. A search
        // makes it look again.
        self.row("SELECT rowid FROM search_index WHERE search_index MATCH 'x' LIMIT 1", args![]).await?;
        let rows = self.rows("PRAGMA integrity_check", args![]).await?;
        let lines = rows.iter().map(|row| row.text(0)).collect::<Result<Vec<_>, _>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Updates the planner statistics after many rows were written. SQLite's are fixed by the schema.
    pub(crate) async fn update_statistics(&mut self, tables: &[&str]) -> Result<(), StoreError> {
        match self.backend() {
            Backend::Sqlite => Ok(()),
            Backend::Postgres => self.script(&format!("ANALYZE {}", tables.join(", "))).await,
        }
    }
}
