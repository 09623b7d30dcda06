//! Whole or not at all: turns what servers gave into a value to page through, or into the reason why there is none.
//!
//! A list that lacks a server's share looks like one in which there is nothing to find. So a share that is missing is an
//! error, unless nobody counts on it: then the summary names what is not covered.

use tenon_lsp::ServerId;
use tenon_lsp::model::{Answer, Why};

use crate::error::{CodeError, ProviderFailure};

/// A value that lacks nothing that anybody counts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whole<T> {
    pub(crate) value: T,
    /// Servers that answered of which nobody knows when their answers are complete.
    pub(crate) unproven: Vec<ServerId>,
    /// Servers with files here that are not installed or may not run.
    pub(crate) unavailable: Vec<ServerId>,
    /// All others that were asked.
    pub(crate) present: Vec<ServerId>,
}

impl<T> Whole<T> {
    /// This value, provided that nobody contributed to it of whom nobody knows when it is done. What such a server finds
    /// all over a workspace may depend on what was asked before.
    pub(crate) fn proven(self) -> Result<Self, CodeError> {
        match self.unproven.first().cloned() {
            Some(server) => Err(CodeError::Provider { server, failure: ProviderFailure::Unproven }),
            None => Ok(self),
        }
    }
}

/// Who must have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// At least one server: the question is about one document.
    Someone,
    /// Whoever is there: the question is about the workspace.
    Anyone,
}

/// The value of an answer that lacks nothing.
pub(crate) fn whole<T>(answer: Answer<T>, expect: Expect) -> Result<Whole<T>, CodeError> {
    let (mut indexing, mut unproven, mut unavailable) = (Vec::new(), Vec::new(), Vec::new());
    let (mut failed, mut limited, mut pending, mut absent) = (None, None, false, None);
    for gap in answer.gaps {
        let server = gap.server;
        match gap.why {
            Why::Broken => {
                let failure = ProviderFailure::Broken(server.clone());
                failed.get_or_insert(CodeError::Provider { server, failure });
            }
            Why::Refused(_) => {
                failed.get_or_insert(CodeError::Provider { server, failure: ProviderFailure::Refused });
            }
            Why::Limit => {
                limited.get_or_insert(CodeError::ServerLimit { server });
            }
            Why::Indexing => indexing.push(server),
            Why::Pending => pending = true,
            Why::Unproven => unproven.push(server),
            Why::Unavailable(reason) => {
                let failure = ProviderFailure::Unavailable(reason);
                absent.get_or_insert(CodeError::Provider { server: server.clone(), failure });
                unavailable.push(server);
            }
        }
    }
    // First what waiting does not mend.
    if let Some(error) = failed.or(limited) {
        return Err(error);
    }
    if !indexing.is_empty() {
        return Err(CodeError::Indexing { servers: indexing, progress: None });
    }
    if pending {
        return Err(CodeError::Timeout);
    }
    let mut present = answer.servers;
    present.retain(|server| !unavailable.contains(server));
    if expect == Expect::Someone && present.is_empty() {
        return Err(absent.unwrap_or(CodeError::NoProvider));
    }
    Ok(Whole { value: answer.value, unproven, unavailable, present })
}

#[cfg(test)]
mod tests {
    use tenon_lsp::model::Gap;

    use super::*;

    fn id(name: &str) -> ServerId {
        ServerId::new(name).unwrap()
    }

    fn answer(servers: &[&str], gaps: &[(&str, Why)]) -> Answer<u8> {
        Answer {
            value: 7,
            servers: servers.iter().map(|name| id(name)).collect(),
            gaps: gaps.iter().map(|(name, why)| Gap { server: id(name), why: why.clone() }).collect(),
        }
    }

    #[test]
    fn s4_5_a_missing_share_is_an_error_and_what_waiting_does_not_mend_comes_first() {
        let both = |first: Why, second: Why| {
            whole(answer(&["a", "b"], &[("a", first), ("b", second)]), Expect::Someone).unwrap_err()
        };
        let broken = CodeError::Provider { server: id("b"), failure: ProviderFailure::Broken(id("b")) };
        assert_eq!(both(Why::Indexing, Why::Broken), broken);
        let refused = CodeError::Provider { server: id("a"), failure: ProviderFailure::Refused };
        assert_eq!(both(Why::Refused("/etc/passwd".into()), Why::Limit), refused);
        assert_eq!(both(Why::Limit, Why::Indexing), CodeError::ServerLimit { server: id("a") });
        let indexing = CodeError::Indexing { servers: vec![id("b")], progress: None };
        assert_eq!(both(Why::Pending, Why::Indexing), indexing);
        assert_eq!(both(Why::Unproven, Why::Pending), CodeError::Timeout);
    }

    #[test]
    fn s6_3_without_any_server_there_is_no_provider() {
        assert_eq!(whole(answer(&[], &[]), Expect::Someone), Err(CodeError::NoProvider));
        assert_eq!(whole(answer(&[], &[]), Expect::Anyone).map(|whole| whole.value), Ok(7));
        let missing = [("a", Why::Unavailable("not found".to_owned()))];
        let failure = ProviderFailure::Unavailable("not found".to_owned());
        let expected = CodeError::Provider { server: id("a"), failure };
        assert_eq!(whole(answer(&["a"], &missing), Expect::Someone), Err(expected));
    }

    #[test]
    fn servers_that_nobody_counts_on_are_named() {
        let gaps = [("a", Why::Unavailable("untrusted".to_owned())), ("b", Why::Unproven)];
        let found = whole(answer(&["a", "b"], &gaps), Expect::Someone).unwrap();
        let expected =
            Whole { value: 7, unproven: vec![id("b")], unavailable: vec![id("a")], present: vec![id("b")] };
        assert_eq!(found, expected);
        let found = whole(answer(&["a"], &gaps[..1]), Expect::Anyone).unwrap();
        assert_eq!(found.unavailable, [id("a")]);
    }
}
