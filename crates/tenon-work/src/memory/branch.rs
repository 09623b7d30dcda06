//! Branches: names for views. Starting one copies nothing.
//!
//! A view consists of the entries of a branch, those of the base up to the start of the branch, and so on. `seq` counts per
//! workspace, so a view is a list of disjoint intervals, newest first, and is read like one list.

use crate::error::WorkError;
use crate::id::TargetId;
use crate::name::BranchName;
use crate::store::{Row, StoreError, Tx, args};

pub(crate) const MAIN: &str = "main";
pub(crate) const MAIN_NUMBER: i64 = 1;

/// The most bases of a view.
pub(crate) const MAX_DEPTH: usize = 32;

/// Branch numbers of plans and tasks are derived from the ids, so that writes need no lookup.
const TARGETS: i64 = 1 << 42;

pub(crate) fn number_of(target: TargetId) -> i64 {
    TARGETS + target.key()
}

/// The plan or task of a branch, if it has one.
pub(crate) fn target_of(number: i64) -> Option<TargetId> {
    (number >= TARGETS).then(|| TargetId::from_key(number - TARGETS))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    pub number: i64,
    pub name: String,
    pub base: Option<i64>,
    pub base_name: Option<String>,
    pub base_seq: i64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT b.branch, b.name, b.base, p.name, b.base_seq
            FROM branches b LEFT JOIN branches p ON p.ws = b.ws AND p.branch = b.base ",
            $rest
        )
    };
}

fn from_row(row: &Row) -> Result<Branch, StoreError> {
    Ok(Branch {
        number: row.int(0)?,
        name: row.text(1)?,
        base: row.opt_int(2)?,
        base_name: row.opt_text(3)?,
        base_seq: row.int(4)?,
    })
}

/// The entries of one branch that a view shows: those up to `upto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub branch: i64,
    pub name: String,
    pub upto: i64,
}

/// What a branch shows, newest part first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub parts: Vec<Part>,
}

impl View {
    /// The branch of a plan or task, which has no base.
    pub(crate) fn of_target(id: TargetId) -> Self {
        Self { parts: vec![Part { branch: number_of(id), name: id.branch(), upto: i64::MAX }] }
    }

    pub(crate) fn name(&self) -> &str {
        &self.parts[0].name
    }

    /// The branch that writes go to.
    pub(crate) fn branch(&self) -> i64 {
        self.parts[0].branch
    }

    /// The last `seq` of a branch that this view shows; 0 if it shows none.
    pub(crate) fn upto(&self, branch: i64) -> i64 {
        self.parts.iter().find(|part| part.branch == branch).map_or(0, |part| part.upto)
    }
}

pub(crate) async fn insert(
    tx: &mut Tx,
    ws: i64,
    number: i64,
    name: &str,
    base: Option<i64>,
    base_seq: i64,
    now: i64,
) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO branches (ws, branch, name, base, base_seq, created_ms) VALUES ($1, $2, $3, $4, $5, $6)";
    tx.write(sql, args![ws, number, name, base, base_seq, now]).await
}

pub(crate) async fn by_number(tx: &mut Tx, ws: i64, number: i64) -> Result<Option<Branch>, StoreError> {
    let sql = select!("WHERE b.ws = $1 AND b.branch = $2");
    tx.row(sql, args![ws, number]).await?.as_ref().map(from_row).transpose()
}

pub(crate) async fn by_name(tx: &mut Tx, ws: i64, name: &str) -> Result<Option<Branch>, StoreError> {
    let sql = select!("WHERE b.ws = $1 AND b.name = $2");
    tx.row(sql, args![ws, name]).await?.as_ref().map(from_row).transpose()
}

/// The branch of this name.
pub(crate) async fn named(tx: &mut Tx, ws: i64, name: &str) -> Result<Branch, WorkError> {
    let name = BranchName::parse(name)?;
    match by_name(tx, ws, name.as_str()).await? {
        Some(branch) => Ok(branch),
        None => Err(WorkError::unknown("branch", name.as_str())
            .recovery("memory_branch_list lists branches, memory_branch_create creates one")),
    }
}

/// The branch that the workspace has checked out.
pub(crate) async fn checked_out(tx: &mut Tx, ws: i64, number: i64) -> Result<Branch, StoreError> {
    let found = by_number(tx, ws, number).await?;
    found.ok_or_else(|| StoreError::Damaged(format!("branch {number}, which is checked out, is missing")))
}

/// Branches starting at a number: main, others, then those of plans and of tasks.
pub(crate) async fn list(tx: &mut Tx, ws: i64, from: i64, most: i64) -> Result<Vec<Branch>, StoreError> {
    let sql = select!("WHERE b.ws = $1 AND b.branch >= $2 ORDER BY b.branch LIMIT $3");
    let rows = tx.rows(sql, args![ws, from, most]).await?;
    rows.iter().map(from_row).collect()
}

pub(crate) async fn view(tx: &mut Tx, ws: i64, branch: &Branch) -> Result<View, StoreError> {
    let mut parts = vec![Part { branch: branch.number, name: branch.name.clone(), upto: i64::MAX }];
    let (mut base, mut upto) = (branch.base, branch.base_seq);
    while let Some(number) = base
        && parts.len() <= MAX_DEPTH
    {
        let below = by_number(tx, ws, number).await?;
        let below =
            below.ok_or_else(|| StoreError::Damaged(format!("the base {number} of a branch is missing")))?;
        parts.push(Part { branch: number, name: below.name, upto });
        (base, upto) = (below.base, below.base_seq);
    }
    Ok(View { parts })
}

/// Checks that one more branch may start from this view.
pub(crate) fn check_depth(view: &View) -> Result<(), WorkError> {
    if view.parts.len() > MAX_DEPTH {
        return Err(WorkError::invalid(format!("branches nest at most {MAX_DEPTH} deep"))
            .recovery("start from a branch with fewer bases"));
    }
    Ok(())
}
