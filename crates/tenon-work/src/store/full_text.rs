//! The full-text index: an FTS5 table on SQLite, a `tsvector` column on PostgreSQL.

use super::{Arg, Backend, Row, Sql, StoreError, Tx, args};

const INSERT: Sql = Sql {
    sqlite: "INSERT INTO search (rowid, kind, ref, words) VALUES ($1, $2, $3, $4)",
    postgres: "INSERT INTO search (rowid, kind, ref, lexemes)
        VALUES ($1, $2, $3, array_to_tsvector(string_to_array($4, ' ')))",
};

const FIND_SQLITE: &str = "SELECT rowid, kind, ref FROM search
    WHERE search MATCH $1 AND rowid >= $2 AND rowid <= $3 ORDER BY rowid DESC LIMIT $4";

/// PostgreSQL cannot estimate how common a word is and would pick a bad plan. This statement looks through the newest
/// rows, where a common word is found at once.
const FIND_AMONG_NEWEST: &str = "SELECT rowid, kind, ref FROM (
        SELECT rowid, kind, ref, lexemes FROM search WHERE rowid >= $2 AND rowid <= $3 ORDER BY rowid DESC LIMIT 1024
    ) newest WHERE lexemes @@ CAST($1 AS tsquery) ORDER BY rowid DESC LIMIT $4";

/// This one goes through the index. The sums keep PostgreSQL from reading all rows of the workspace instead.
const FIND_BY_INDEX: &str = "SELECT rowid, kind, ref FROM (
        SELECT rowid, kind, ref FROM search
        WHERE lexemes @@ CAST($1 AS tsquery) AND rowid + 0 >= $2 AND rowid + 0 <= $3 OFFSET 0
    ) found ORDER BY rowid DESC LIMIT $4";

/// The statements of a kind of search.
struct Find {
    sqlite: &'static str,
    among_newest: &'static str,
    by_index: &'static str,
}

const ALL: Find = Find { sqlite: FIND_SQLITE, among_newest: FIND_AMONG_NEWEST, by_index: FIND_BY_INDEX };

/// The same without nodes of graphs that are not cards, over twice as many of the newest rows: a word in every tenth row
/// has a hundred rows among them.
const CANDIDATES: Find = Find {
    sqlite: "SELECT rowid, kind, ref FROM search WHERE search MATCH $1 AND rowid >= $2 AND rowid <= $3
        AND kind <> 'node' ORDER BY rowid DESC LIMIT $4",
    among_newest: "SELECT rowid, kind, ref FROM (
            SELECT rowid, kind, ref, lexemes FROM search
            WHERE rowid >= $2 AND rowid <= $3 AND kind <> 'node' ORDER BY rowid DESC LIMIT 2048
        ) newest WHERE lexemes @@ CAST($1 AS tsquery) ORDER BY rowid DESC LIMIT $4",
    by_index: "SELECT rowid, kind, ref FROM (
            SELECT rowid, kind, ref FROM search
            WHERE lexemes @@ CAST($1 AS tsquery) AND rowid + 0 >= $2 AND rowid + 0 <= $3 AND kind <> 'node' OFFSET 0
        ) found ORDER BY rowid DESC LIMIT $4",
};

impl Tx {
    /// Adds a row of the index; `words` are separated by blanks.
    pub(crate) async fn full_text_insert(
        &mut self,
        row: i64,
        kind: &str,
        reference: i64,
        words: String,
    ) -> Result<(), StoreError> {
        self.write(INSERT, args![row, kind, reference, words]).await
    }

    pub(crate) async fn full_text_remove(&mut self, row: i64) -> Result<(), StoreError> {
        self.write("DELETE FROM search WHERE rowid = $1", args![row]).await
    }

    /// The newest rows (`rowid`, `kind`, `ref`) with a number in `range` that match.
    pub(crate) async fn full_text_find(
        &mut self,
        query: Arg<'_>,
        (first, last): (i64, i64),
        limit: i64,
    ) -> Result<Vec<Row>, StoreError> {
        self.newest_matches(&ALL, query, (first, last), limit).await
    }

    /// The same for ranking: without nodes of graphs that are not cards.
    pub(crate) async fn full_text_candidates(
        &mut self,
        query: Arg<'_>,
        range: (i64, i64),
        limit: i64,
    ) -> Result<Vec<Row>, StoreError> {
        self.newest_matches(&CANDIDATES, query, range, limit).await
    }

    async fn newest_matches(
        &mut self,
        find: &Find,
        query: Arg<'_>,
        (first, last): (i64, i64),
        limit: i64,
    ) -> Result<Vec<Row>, StoreError> {
        let args = &[query, first.into(), last.into(), limit.into()];
        match self.backend() {
            Backend::Sqlite => self.rows(find.sqlite, args).await,
            Backend::Postgres => {
                let newest = self.rows(find.among_newest, args).await?;
                match i64::try_from(newest.len()) == Ok(limit) {
                    true => Ok(newest),
                    false => self.rows(find.by_index, args).await,
                }
            }
        }
    }
}
