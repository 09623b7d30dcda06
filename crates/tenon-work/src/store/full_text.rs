//! The full-text index: an FTS5 table on SQLite, a `tsvector` column on PostgreSQL.
//!
//! An FTS5 table writes ten pages for each text. So SQLite keeps the newest texts in a table, which every search looks
//! through, and a trigger moves them to the index when there are 64 (decision 0614).

use super::{Arg, Backend, Row, Sql, StoreError, Tx, args};

const INSERT: Sql = Sql {
    sqlite: "INSERT INTO search_recent (rowid, kind, ref, words) VALUES ($1, $2, $3, $4)",
    postgres: "INSERT INTO search (rowid, kind, ref, lexemes)
        VALUES ($1, $2, $3, array_to_tsvector(string_to_array($4, ' ')))",
};

const REMOVE: Sql = Sql {
    sqlite: "DELETE FROM search_index WHERE rowid = $1",
    postgres: "DELETE FROM search WHERE rowid = $1",
};

const REMOVE_RECENT: &str = "DELETE FROM search_recent WHERE rowid = $1";

/// Columns of the rows on SQLite that match an argument: from the index and from the newest texts. The argument
/// is JSON: a query of FTS5, and the texts that the words of a row contain if it matches.
macro_rules! matching_sqlite {
    ($columns:literal, $argument:literal, $more:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM search_index WHERE search_index MATCH (",
            $argument,
            " ->> 0)",
            $more,
            " UNION ALL SELECT ",
            $columns,
            " FROM search_recent WHERE NOT EXISTS (SELECT 1 FROM json_each(",
            $argument,
            ", '$[1]') WHERE instr(' ' || words || ' ', value) = 0)",
            $more
        )
    };
}
pub(crate) use matching_sqlite;

const FIND_SQLITE: &str = concat!(
    matching_sqlite!("rowid, kind, ref", "$1", " AND rowid >= $2 AND rowid <= $3"),
    " ORDER BY rowid DESC LIMIT $4"
);

/// The same without nodes of graphs that are not cards.
const CANDIDATES_SQLITE: &str = concat!(
    matching_sqlite!("rowid, kind, ref", "$1", " AND rowid >= $2 AND rowid <= $3 AND kind <> 'node'"),
    " ORDER BY rowid DESC LIMIT $4"
);

/// Whether nodes of graphs that are not cards are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nodes {
    Included,
    LeftOut,
}

impl Nodes {
    fn condition(self) -> &'static str {
        match self {
            Self::Included => "",
            Self::LeftOut => " AND kind <> 'node'",
        }
    }
}

/// How many of the newest rows PostgreSQL looks through before it uses the index.
///
/// PostgreSQL cannot estimate how common a word is, and its index collects all rows of a word before it finds the newest. A
/// common word is therefore looked up among the newest rows: a word in every tenth row has two hundred rows among them.
const LOOKED_THROUGH: i64 = 2048;

/// One of several searches that are run together.
#[derive(Clone, Copy)]
struct Look<'q, 'a> {
    query: &'q Arg<'a>,
    /// Its place in the result.
    at: usize,
    /// The place of the search that must find too few rows for this one to be needed.
    widens: Option<usize>,
}

/// A statement that finds the rows of several searches among the newest ones. Each stops when it has enough. The
/// subquery parses the search once.
fn among_newest(searches: usize, nodes: Nodes) -> String {
    let of_one = |number: usize| {
        let argument = number + 4;
        format!(
            "(SELECT CAST({number} AS BIGINT), rowid, kind, ref FROM (
                SELECT rowid, kind, ref, lexemes FROM search WHERE rowid >= $1 AND rowid <= $2{}
                ORDER BY rowid DESC LIMIT {LOOKED_THROUGH}
            ) newest WHERE lexemes @@ (SELECT CAST(${argument} AS tsquery)) ORDER BY rowid DESC LIMIT $3)",
            nodes.condition()
        )
    };
    (0..searches).map(of_one).collect::<Vec<_>>().join(" UNION ALL ")
}

/// A statement that finds the rows of several searches in the index. The sums keep PostgreSQL from reading all rows of the
/// workspace instead.
fn by_index(searches: usize, nodes: Nodes) -> String {
    let of_one = |number: usize| {
        let argument = number + 4;
        format!(
            "(SELECT CAST({number} AS BIGINT), rowid, kind, ref FROM (
                SELECT rowid, kind, ref FROM search WHERE lexemes @@ (SELECT CAST(${argument} AS tsquery))
                AND rowid + 0 >= $1 AND rowid + 0 <= $2 OFFSET 0
            ) found WHERE true{} ORDER BY rowid DESC LIMIT $3)",
            nodes.condition()
        )
    };
    (0..searches).map(of_one).collect::<Vec<_>>().join(" UNION ALL ")
}

/// A search for ranking.
pub(crate) struct CandidateSearch<'a> {
    pub query: Arg<'a>,
    /// Used if the query finds fewer rows than wanted.
    pub wider: Option<Arg<'a>>,
}

/// What a search for ranking found: rows of `rowid`, `kind`, `ref`, newest first.
pub(crate) struct FoundCandidates {
    pub rows: Vec<Row>,
    pub is_wider: bool,
}

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
        if self.backend() == Backend::Sqlite {
            self.write(REMOVE_RECENT, args![row]).await?;
        }
        self.write(REMOVE, args![row]).await
    }

    /// The newest rows (`rowid`, `kind`, `ref`) with a number in `range` that match.
    pub(crate) async fn full_text_find(
        &mut self,
        query: Arg<'_>,
        range: (i64, i64),
        limit: i64,
    ) -> Result<Vec<Row>, StoreError> {
        match self.backend() {
            Backend::Sqlite => {
                self.rows(FIND_SQLITE, &[query, range.0.into(), range.1.into(), limit.into()]).await
            }
            Backend::Postgres => {
                let mut found = [Vec::new()];
                let looks = [Look { query: &query, at: 0, widens: None }];
                let rest = self.look_for(&looks, Nodes::Included, range, limit, &mut found).await?;
                self.look_up(&rest, Nodes::Included, range, limit, &mut found).await?;
                let [rows] = found;
                Ok(rows)
            }
        }
    }

    /// The same for several searches, for ranking: without nodes of graphs that are not cards.
    pub(crate) async fn full_text_candidates(
        &mut self,
        searches: &[CandidateSearch<'_>],
        range: (i64, i64),
        limit: i64,
    ) -> Result<Vec<FoundCandidates>, StoreError> {
        match self.backend() {
            Backend::Sqlite => {
                let mut all = Vec::with_capacity(searches.len());
                for CandidateSearch { query, wider } in searches {
                    let args =
                        |query: &Arg<'_>| [query.to_owned(), range.0.into(), range.1.into(), limit.into()];
                    let rows = self.rows(CANDIDATES_SQLITE, &args(query)).await?;
                    all.push(match wider {
                        Some(wider) if !is_full(&rows, limit) => FoundCandidates {
                            rows: self.rows(CANDIDATES_SQLITE, &args(wider)).await?,
                            is_wider: true,
                        },
                        _ => FoundCandidates { rows, is_wider: false },
                    });
                }
                Ok(all)
            }
            Backend::Postgres => self.postgres_candidates(searches, range, limit).await,
        }
    }

    async fn postgres_candidates(
        &mut self,
        searches: &[CandidateSearch<'_>],
        range: (i64, i64),
        limit: i64,
    ) -> Result<Vec<FoundCandidates>, StoreError> {
        // The wider search of each is at its place behind all others.
        let count = searches.len();
        let mut looks: Vec<Look<'_, '_>> = Vec::new();
        for (at, search) in searches.iter().enumerate() {
            looks.push(Look { query: &search.query, at, widens: None });
            looks.extend(search.wider.iter().map(|query| Look { query, at: count + at, widens: Some(at) }));
        }
        let mut found = vec![Vec::new(); 2 * count];
        let rest = self.look_for(&looks, Nodes::LeftOut, range, limit, &mut found).await?;
        self.look_up(&rest, Nodes::LeftOut, range, limit, &mut found).await?;
        let wider = found.split_off(count);
        let chosen = searches.iter().zip(found.into_iter().zip(wider)).map(|(search, (rows, wider))| {
            match search.wider.is_some() && !is_full(&rows, limit) {
                true => FoundCandidates { rows: wider, is_wider: true },
                false => FoundCandidates { rows, is_wider: false },
            }
        });
        Ok(chosen.collect())
    }

    /// Looks through the newest rows of PostgreSQL. Returns the searches that are needed and have fewer rows than wanted.
    async fn look_for<'q, 'a>(
        &mut self,
        looks: &[Look<'q, 'a>],
        nodes: Nodes,
        range: (i64, i64),
        limit: i64,
        found: &mut [Vec<Row>],
    ) -> Result<Vec<Look<'q, 'a>>, StoreError> {
        let text = among_newest(looks.len(), nodes);
        self.run_together(&text, looks, range, limit, found).await?;
        let is_short = |at: usize| !is_full(&found[at], limit);
        let is_needed = |look: &&Look<'_, '_>| is_short(look.at) && look.widens.is_none_or(is_short);
        Ok(looks.iter().filter(is_needed).copied().collect())
    }

    /// Looks into the index of PostgreSQL.
    async fn look_up(
        &mut self,
        looks: &[Look<'_, '_>],
        nodes: Nodes,
        range: (i64, i64),
        limit: i64,
        found: &mut [Vec<Row>],
    ) -> Result<(), StoreError> {
        let text = by_index(looks.len(), nodes);
        self.run_together(&text, looks, range, limit, found).await
    }

    /// Runs searches of one statement and puts what each finds at its place.
    async fn run_together(
        &mut self,
        text: &str,
        looks: &[Look<'_, '_>],
        (first, last): (i64, i64),
        limit: i64,
        found: &mut [Vec<Row>],
    ) -> Result<(), StoreError> {
        if looks.is_empty() {
            return Ok(());
        }
        let mut args: Vec<Arg<'_>> = vec![first.into(), last.into(), limit.into()];
        args.extend(looks.iter().map(|look| look.query.to_owned()));
        looks.iter().for_each(|look| found[look.at].clear());
        self.each_text(text, &args, |mut row| {
            let hit = row.split_off(1);
            let look = usize::try_from(row.int(0)?).ok().and_then(|number| looks.get(number));
            let look = look.ok_or_else(|| StoreError::Damaged("a hit belongs to no search".to_owned()))?;
            found[look.at].push(hit);
            Ok(())
        })
        .await
    }
}

fn is_full(rows: &[Row], limit: i64) -> bool {
    i64::try_from(rows.len()).is_ok_and(|rows| rows >= limit)
}
