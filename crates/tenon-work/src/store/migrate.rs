//! Versioned migrations, applied under a lock so that processes that start together do not collide.

use super::pool::Pools;
use super::schema;
use super::{Backend, StoreError, Tx, args};
use crate::catalog::Access;

/// The schema that this program reads and writes.
pub(crate) const SCHEMA_VERSION: i64 = schema::MIGRATIONS.len() as i64;

/// Held during a migration on PostgreSQL; on SQLite the write lock does the same.
const ADVISORY_LOCK: &str = "SELECT pg_advisory_xact_lock(7236837464)";

/// Migrates the schema and returns the version it had.
pub(crate) async fn run(pools: &Pools) -> Result<i64, StoreError> {
    // The common case needs no lock: the schema is current.
    if let Ok(mut tx) = begin(pools, Access::Read).await
        && let Ok(found) = version(&mut tx).await
        && found == SCHEMA_VERSION
    {
        return Ok(found);
    }
    let mut tx = begin(pools, Access::Write).await?;
    if tx.backend() == Backend::Postgres {
        tx.execute(ADVISORY_LOCK, args![]).await?;
    }
    tx.script("CREATE TABLE IF NOT EXISTS tenon_schema (version BIGINT NOT NULL)").await?;
    let found = version(&mut tx).await?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::NewerSchema { found, known: SCHEMA_VERSION });
    }
    let applied = usize::try_from(found).unwrap_or(0);
    for migration in &schema::MIGRATIONS[applied..] {
        let script = migration(tx.backend());
        if !script.is_empty() {
            tx.script(&script).await?;
        }
    }
    tx.execute("DELETE FROM tenon_schema", args![]).await?;
    tx.execute("INSERT INTO tenon_schema (version) VALUES ($1)", args![SCHEMA_VERSION]).await?;
    tx.commit().await?;
    Ok(found)
}

async fn begin(pools: &Pools, access: Access) -> Result<Tx, StoreError> {
    pools.acquire(access).await?.begin().await
}

async fn version(tx: &mut Tx) -> Result<i64, StoreError> {
    let row = tx.row("SELECT version FROM tenon_schema", args![]).await?;
    row.map_or(Ok(0), |row| row.int(0))
}
