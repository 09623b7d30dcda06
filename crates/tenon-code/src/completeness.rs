//! Accepts only complete answers: turns the servers' results into a value, or into the error that explains what is missing.
//!
//! A list without one server's results looks as if there were nothing to find. So missing results are an error, except from
//! servers that are not available: the summary names these.

use tenon_lsp::ServerId;
use tenon_lsp::codec::MAX_BODY_BYTES;
use tenon_lsp::model::{AnswerNote, GapReason, LspAnswer};

use crate::error::{CodeError, ProviderFailure};

/// A value without missing results of available servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompleteAnswer<T> {
    pub(crate) value: T,
    /// Servers that answered but do not report when they have loaded the workspace.
    pub(crate) unproven: Vec<ServerId>,
    /// Servers with files here that are not installed or may not run.
    pub(crate) unavailable: Vec<ServerId>,
    /// All other servers.
    pub(crate) present: Vec<ServerId>,
}

/// How many servers must have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredServers {
    /// For queries about one document.
    AtLeastOne,
    /// For queries about the workspace.
    AnyNumber,
}

/// The value of a complete answer.
pub(crate) fn require_complete<T>(
    answer: LspAnswer<T>,
    expect: RequiredServers,
) -> Result<CompleteAnswer<T>, CodeError> {
    let (mut indexing, mut unproven, mut unavailable) = (Vec::new(), Vec::new(), Vec::new());
    let (mut failed, mut limited, mut pending, mut absent) = (None, None, false, None);
    for gap in answer.gaps {
        let server = gap.server;
        match gap.why {
            GapReason::Broken => {
                let failure = ProviderFailure::Broken(server.clone());
                failed.get_or_insert(CodeError::Provider { server, failure });
            }
            GapReason::Refused(_) => {
                failed.get_or_insert(CodeError::Provider { server, failure: ProviderFailure::Refused });
            }
            GapReason::UnsupportedPath(found) => {
                let failure = ProviderFailure::UnsupportedPath(found);
                failed.get_or_insert(CodeError::Provider { server, failure });
            }
            GapReason::Limit => {
                limited.get_or_insert(CodeError::ServerLimit { server });
            }
            GapReason::TooLarge => {
                limited.get_or_insert(CodeError::AnswerTooLarge { server, limit: MAX_BODY_BYTES });
            }
            GapReason::Indexing => indexing.push(server),
            GapReason::Pending => pending = true,
            GapReason::Unproven(_) => unproven.push(server),
            GapReason::Unavailable(reason) => {
                let failure = ProviderFailure::Unavailable(reason);
                absent.get_or_insert(CodeError::Provider { server: server.clone(), failure });
                unavailable.push(server);
            }
        }
    }
    // Permanent failures first.
    if let Some(error) = failed.or(limited) {
        return Err(error);
    }
    if !indexing.is_empty() {
        return Err(CodeError::Indexing { servers: indexing, progress: None });
    }
    if pending || answer.notes.contains(&AnswerNote::FilesUnread) {
        return Err(CodeError::Timeout);
    }
    let mut present = answer.servers;
    present.retain(|server| !unavailable.contains(server));
    if expect == RequiredServers::AtLeastOne && present.is_empty() {
        return Err(absent.unwrap_or(CodeError::NoProvider));
    }
    Ok(CompleteAnswer { value: answer.value, unproven, unavailable, present })
}

#[cfg(test)]
mod tests {
    use tenon_lsp::model::{Doubt, Gap};

    use super::*;

    fn id(name: &str) -> ServerId {
        ServerId::new(name).unwrap()
    }

    fn answer(servers: &[&str], gaps: &[(&str, GapReason)]) -> LspAnswer<u8> {
        LspAnswer {
            value: 7,
            servers: servers.iter().map(|name| id(name)).collect(),
            gaps: gaps.iter().map(|(name, why)| Gap { server: id(name), why: why.clone() }).collect(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn s4_5_missing_results_are_an_error_and_permanent_failures_come_first() {
        let both = |first: GapReason, second: GapReason| {
            require_complete(answer(&["a", "b"], &[("a", first), ("b", second)]), RequiredServers::AtLeastOne)
                .unwrap_err()
        };
        let broken = CodeError::Provider { server: id("b"), failure: ProviderFailure::Broken(id("b")) };
        assert_eq!(both(GapReason::Indexing, GapReason::Broken), broken);
        let refused = CodeError::Provider { server: id("a"), failure: ProviderFailure::Refused };
        assert_eq!(both(GapReason::Refused("/etc/passwd".into()), GapReason::Limit), refused);
        assert_eq!(both(GapReason::Limit, GapReason::Indexing), CodeError::ServerLimit { server: id("a") });
        let indexing = CodeError::Indexing { servers: vec![id("b")], progress: None };
        assert_eq!(both(GapReason::Pending, GapReason::Indexing), indexing);
        assert_eq!(both(GapReason::Unproven(Doubt::NoProgress), GapReason::Pending), CodeError::Timeout);
    }

    #[test]
    fn s6_3_without_any_server_there_is_no_provider() {
        assert_eq!(
            require_complete(answer(&[], &[]), RequiredServers::AtLeastOne),
            Err(CodeError::NoProvider)
        );
        assert_eq!(
            require_complete(answer(&[], &[]), RequiredServers::AnyNumber).map(|whole| whole.value),
            Ok(7)
        );
        let missing = [("a", GapReason::Unavailable("not found".to_owned()))];
        let failure = ProviderFailure::Unavailable("not found".to_owned());
        let expected = CodeError::Provider { server: id("a"), failure };
        assert_eq!(require_complete(answer(&["a"], &missing), RequiredServers::AtLeastOne), Err(expected));
    }

    #[test]
    fn unavailable_and_unproven_servers_are_named() {
        let gaps = [
            ("a", GapReason::Unavailable("untrusted".to_owned())),
            ("b", GapReason::Unproven(Doubt::NoProgress)),
        ];
        let found = require_complete(answer(&["a", "b"], &gaps), RequiredServers::AtLeastOne).unwrap();
        let expected = CompleteAnswer {
            value: 7,
            unproven: vec![id("b")],
            unavailable: vec![id("a")],
            present: vec![id("b")],
        };
        assert_eq!(found, expected);
        let found = require_complete(answer(&["a"], &gaps[..1]), RequiredServers::AnyNumber).unwrap();
        assert_eq!(found.unavailable, [id("a")]);
    }
}
