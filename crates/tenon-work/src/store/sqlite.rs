//! Statements on SQLite. They block the calling thread.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};

use super::StoreError;
use super::tx::{Arg, Cell, Row, damaged};

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Int(Some(value)) => ValueRef::Integer(*value),
            Self::Text(Some(text)) | Self::PerBackend { sqlite: text, .. } => ValueRef::Text(text.as_bytes()),
            Self::Int(None) | Self::Text(None) => ValueRef::Null,
        }))
    }
}

/// SQLite treats `$3` as a name and numbers it by first occurrence.
fn bound<'a>(
    on: &'a Connection,
    text: &str,
    args: &[Arg<'_>],
) -> Result<CachedStatement<'a>, rusqlite::Error> {
    let mut statement = on.prepare_cached(text)?;
    for index in 1..=statement.parameter_count() {
        let number = statement.parameter_name(index).and_then(|name| name[1..].parse::<usize>().ok());
        let arg = number.and_then(|number| args.get(number.checked_sub(1)?));
        let arg = arg.ok_or(rusqlite::Error::InvalidParameterCount(args.len(), index))?;
        statement.raw_bind_parameter(index, arg)?;
    }
    Ok(statement)
}

fn row(row: &rusqlite::Row<'_>) -> Result<Row, StoreError> {
    let cell = |index| {
        Ok(match row.get_ref(index)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(value) => Cell::Int(value),
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text);
                Cell::Text(text.map_err(|error| StoreError::Damaged(error.to_string()))?.to_owned())
            }
            ValueRef::Real(_) | ValueRef::Blob(_) => return Err(damaged(index)),
        })
    };
    (0..row.as_ref().column_count()).map(cell).collect::<Result<_, _>>().map(Row)
}

pub(super) fn execute(on: &Connection, text: &str, args: &[Arg<'_>]) -> Result<u64, StoreError> {
    Ok(bound(on, text, args)?.raw_execute()? as u64)
}

pub(super) fn first(on: &Connection, text: &str, args: &[Arg<'_>]) -> Result<Option<Row>, StoreError> {
    bound(on, text, args)?.raw_query().next()?.map(row).transpose()
}

pub(super) fn each(
    on: &Connection,
    text: &str,
    args: &[Arg<'_>],
    mut take: impl FnMut(Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut statement = bound(on, text, args)?;
    let mut rows = statement.raw_query();
    while let Some(found) = rows.next()? {
        take(row(found)?)?;
    }
    Ok(())
}
