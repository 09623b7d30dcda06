//! Reading nodes of a view: by latest change, filtered, a page at a time.

use super::id::GraphKind;
use super::version::{self, Version, VersionFilter};
use crate::memory::branch::View;
use crate::store::{StoreError, Tx};

/// How many versions are looked at in one go while filters throw some away.
const CHUNK: i64 = 256;

/// The newest live nodes of some types at or below a `seq`.
pub(crate) async fn newest_of_types(
    tx: &mut Tx,
    ws: i64,
    view: &View,
    doc: &str,
    types: &[&str],
    below: i64,
    most: usize,
) -> Result<Vec<Version>, StoreError> {
    let mut found = Vec::new();
    for of_type in types {
        let wanted = VersionFilter { kind: GraphKind::Node, deleted: false, of_type: Some(of_type) };
        found.extend(newest(tx, ws, view, doc, wanted, below, most, |_| true).await?);
    }
    found.sort_by_key(|version| std::cmp::Reverse(version.seq));
    found.truncate(most);
    Ok(found)
}

/// The newest versions that a view shows and that pass a filter, at or below a `seq`.
#[expect(clippy::too_many_arguments, reason = "a query has this many sides")]
pub(crate) async fn newest(
    tx: &mut Tx,
    ws: i64,
    view: &View,
    doc: &str,
    wanted: VersionFilter<'_>,
    below: i64,
    most: usize,
    passes: impl Fn(&Version) -> bool,
) -> Result<Vec<Version>, StoreError> {
    let mut found = Vec::new();
    for (at, part) in view.parts.iter().enumerate() {
        let mut below = below;
        while found.len() < most {
            // Filters and hidden versions cost more looks; without them the first chunk is the page.
            let chunk = CHUNK.min(i64::try_from(most - found.len()).unwrap_or(CHUNK).max(16));
            let versions = version::of_part(tx, ws, part, doc, wanted, below, chunk).await?;
            let exhausted = versions.len() < usize::try_from(chunk).unwrap_or(0);
            for version in versions {
                below = version.seq - 1;
                if found.len() < most
                    && passes(&version)
                    && !version::is_hidden(tx, ws, &view.parts[..at], doc, &version.key).await?
                {
                    found.push(version);
                }
            }
            if exhausted {
                break;
            }
        }
    }
    Ok(found)
}
