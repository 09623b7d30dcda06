//! Words of software that mean nearly the same. A question and its answer often differ in them.
//!
//! The groups are general English of the field. A word may be in several groups.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::words::{Term, word_term};

const GROUPS: &[&str] = &[
    "accept allow enable grant let permit",
    "access authorization permission privilege right",
    "account user",
    "add append attach insert",
    "address link uri url",
    "again repeat retry",
    "agent assistant client",
    "aggregate bucket group partition",
    "alert inform notify signal tell warn",
    "alter change edit modify mutate update",
    "alternative fallback instead",
    "answer reply response result return",
    "argument flag option parameter switch",
    "arrange order sort",
    "array collection list sequence",
    "assert check confirm ensure test validate verify",
    "attribute column field property",
    "auth authenticate login sign",
    "automatic automatically auto",
    "backup copy snapshot",
    "bad broken illegal incorrect invalid malformed wrong",
    "begin boot launch open start",
    "big huge large long",
    "blank empty missing nothing null",
    "block delay pause sleep wait",
    "bound cap limit maximum quota restrict",
    "break crash fail",
    "bug error exception failure fault problem",
    "build compile construct create generate make produce",
    "call execute invoke run",
    "callback event handler hook listener",
    "cancel abort end exit finish halt kill quit stop terminate",
    "cause reason why",
    "chain compose pipe pipeline",
    "checksum digest hash",
    "choice choose pick select",
    "clean clear purge wipe",
    "clip cut shorten strip trim truncate",
    "clone copy duplicate",
    "collect gather accumulate",
    "combine concat concatenate join merge",
    "compare diff difference match",
    "complete done end finish",
    "concurrent parallel simultaneous",
    "condition predicate",
    "configuration config configure option preference setting",
    "connect attach link",
    "contain hold include",
    "continue resume",
    "convert transform translate turn",
    "count number quantity total amount",
    "credential password secret token",
    "current latest now recent",
    "custom customize own personal",
    "database db sql",
    "debug diagnose inspect troubleshoot",
    "decode interpret parse read",
    "default fallback standard",
    "delete discard drop erase remove uninstall",
    "deny disallow forbid prevent refuse reject",
    "dependency library package",
    "deploy install setup",
    "describe document explain",
    "diagram chart figure graph plot",
    "different distinct unique",
    "dictionary map mapping table",
    "dir directory folder",
    "disable off suppress",
    "dispatch emit publish send",
    "display print render show view",
    "download fetch get load pull retrieve",
    "draw paint render",
    "duration interval period time timeout",
    "each every per",
    "email mail message",
    "embed include insert",
    "encode format serialize",
    "encrypt cipher crypt",
    "entry item record row",
    "equal identical same",
    "equation formula math",
    "example demo sample tutorial",
    "exclude ignore omit skip",
    "expire old outdated stale",
    "extension module plugin",
    "external foreign outside",
    "fast performance quick speed",
    "file document",
    "filter where",
    "find locate lookup search",
    "first initial",
    "following next subsequent",
    "function method operator",
    "html page template web",
    "hide mask",
    "host domain server",
    "idle inactive unused",
    "image photo picture",
    "import require",
    "inner internal nested",
    "job process task thread worker",
    "join team group",
    "keep persist remember save store",
    "key id identifier",
    "language locale translation",
    "last final latest",
    "length size width",
    "listen observe subscribe watch",
    "lock mutex exclusive",
    "log record trace",
    "machine computer host",
    "money currency price decimal",
    "move rename transfer",
    "old previous prior",
    "picked chosen selected",
    "program command executable binary",
    "project repository workspace",
    "raise throw",
    "random arbitrary",
    "reload restart",
    "replace substitute swap",
    "reset restore revert reverse rollback undo",
    "security vulnerability",
    "separate split divide",
    "share shared",
    "shell terminal console",
    "short small tiny",
    "site website",
    "string text",
    "style theme",
    "upload file",
    "upgrade migrate update",
    "value result",
    "version release",
    "write save",
];

/// The terms that mean nearly the same as a term.
pub(crate) fn synonyms(term: Term) -> &'static [(Term, &'static str)] {
    TABLE.get(&term).map_or(&[], Vec::as_slice)
}

static TABLE: LazyLock<BTreeMap<Term, Vec<(Term, &'static str)>>> = LazyLock::new(|| {
    let mut table: BTreeMap<Term, Vec<(Term, &'static str)>> = BTreeMap::new();
    for group in GROUPS {
        for word in group.split(' ') {
            let own = word_term(word);
            let others = group.split(' ').map(|other| (word_term(other), other));
            let known = table.entry(own).or_default();
            for other in others {
                if other.0 != own && !known.iter().any(|one| one.0 == other.0) {
                    known.push(other);
                }
            }
        }
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_distinct_words_and_work_for_other_forms() {
        for group in GROUPS {
            let mut words: Vec<&str> = group.split(' ').collect();
            let all = words.len();
            words.sort_unstable();
            words.dedup();
            assert!(words.len() == all && all > 1, "{group}");
        }
        let names = |word: &str| -> Vec<&str> { synonyms(word_term(word)).iter().map(|one| one.1).collect() };
        assert!(names("deleting").contains(&"remove"));
        assert!(names("zebra").is_empty());
    }
}
