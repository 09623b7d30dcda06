//! The real code that benches query, with the language server for it.

use serde_json::{Value, json};
use tenon_testkit::bare::{Place, Server};
use tenon_testkit::{Sandbox, Source};

/// One language server on one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) source: Source,
    pub(crate) server: Server,
    /// A line that is an error anywhere in a file.
    pub(crate) wrong: &'static str,
    /// A line that has no effect.
    pub(crate) comment: &'static str,
}

pub(crate) const SUBJECTS: [Subject; 3] = [
    Subject { source: Source::Django, server: Server::Pyright, wrong: "undefined_name", comment: "#" },
    Subject { source: Source::Django, server: Server::Ty, wrong: "undefined_name", comment: "#" },
    Subject {
        source: Source::Rxjs,
        server: Server::TypeScript,
        wrong: "const wrong: number = 'text';",
        comment: "//",
    },
];

impl Subject {
    /// `Django, pyright`.
    pub(crate) fn name(&self) -> String {
        format!("{:?}, {}", self.source, self.server.id())
    }

    /// Settings that enable only this server.
    pub(crate) fn servers(&self) -> Value {
        let switch = |server: &str| json!({ "enabled": server == self.server.id() });
        json!({ "pyright": switch("pyright"), "ruff": switch("ruff"), "ty": switch("ty") })
    }

    /// The landmark's declaration, and a use of it in another file.
    pub(crate) fn places(&self, sandbox: &Sandbox) -> (Place<'static>, Place<'static>) {
        let landmark = self.source.landmark();
        let declared = Place::find(sandbox, landmark.file, landmark.line, landmark.name);
        (declared, Place::find(sandbox, landmark.user, landmark.use_line, landmark.name))
    }
}
