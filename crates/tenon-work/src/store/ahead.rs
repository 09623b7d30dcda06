//! Reads that travel with the beginning of their transaction.
//!
//! What a call asks first is mostly known before it begins, and on SQLite the way to the thread of the connection takes
//! longer than the answer. An answer is kept until somebody asks just that, or until something is written. Guesses are
//! welcome: what nobody asks is forgotten, and what was not asked ahead is asked then.

use super::{Arg, Row, Sql};

/// A query of which the first row counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(super) sql: Sql,
    pub(super) args: Vec<Arg<'static>>,
}

impl Question {
    pub(crate) fn new(sql: impl Into<Sql>, args: &[Arg<'_>]) -> Self {
        Self { sql: sql.into(), args: args.iter().map(Arg::to_owned).collect() }
    }
}

/// Answers that nobody has asked for yet.
#[derive(Default)]
pub(super) struct Ahead(Vec<(Question, Option<Row>)>);

impl Ahead {
    pub(super) fn new(questions: Vec<Question>, answers: impl Iterator<Item = Option<Row>>) -> Self {
        Self(questions.into_iter().zip(answers).collect())
    }

    pub(super) fn take(&mut self, question: &Question) -> Option<Option<Row>> {
        let at = self.0.iter().position(|(asked, _)| asked == question)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}
