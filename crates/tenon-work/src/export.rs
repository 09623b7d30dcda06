//! Export: the whole store as lines of canonical JSON, the same bytes from SQLite and PostgreSQL.
//!
//! Format: a header; for each workspace (by name) its own row and the rows of every table in key order; a last line
//! with the number of rows, so that a truncated export is detected. A row belongs to the workspace whose line came
//! last: workspace numbers are local to a database and are not exported. Neither is the search index.

use std::io::Write;

use serde_json::{Map, Value, json};
use tenon_contract::json::canonical_value;

use crate::store::{SCHEMA_VERSION, Store, StoreError, args};
use crate::tables::{TABLES, WORKSPACES};

/// `format` of the header.
pub(crate) const FORMAT: &str = "tenon-store";

/// How much an export or import transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferCounts {
    pub workspaces: u64,
    pub rows: u64,
}

impl Store {
    /// Writes everything, from one snapshot.
    ///
    /// # Errors
    /// When the store or the stream fails.
    pub async fn export(&self, out: &mut (impl Write + Send)) -> Result<TransferCounts, StoreError> {
        let mut tx = self.read().await?;
        let mut counts = TransferCounts::default();
        writeln!(out, "{}", canonical_value(&json!({"format": FORMAT, "schema": SCHEMA_VERSION})))?;
        let workspaces = tx.rows("SELECT ws FROM workspaces ORDER BY name", args![]).await?;
        for workspace in workspaces {
            let ws = workspace.int(0)?;
            counts.workspaces += 1;
            for table in std::iter::once(&WORKSPACES).chain(TABLES) {
                tx.each_text(&table.select(), args![ws], |row| {
                    let cells = table.columns.iter().enumerate();
                    let cells: Map<String, Value> =
                        cells.map(|(at, (column, _))| ((*column).to_owned(), row.json(at))).collect();
                    counts.rows += 1;
                    Ok(writeln!(out, "{}", canonical_value(&json!({"table": table.name, "row": cells})))?)
                })
                .await?;
            }
        }
        writeln!(out, "{}", canonical_value(&json!({"rows": counts.rows})))?;
        out.flush()?;
        Ok(counts)
    }
}
