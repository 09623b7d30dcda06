//! What the benches of code ask about: real code, with the server that reads it.

use serde_json::{Value, json};
use tenon_testkit::bare::{Place, Server};
use tenon_testkit::{Sandbox, Source};

/// One server on one source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub(super) source: Source,
    pub(super) server: Server,
    /// A line that is wrong wherever it stands.
    pub(super) wrong: &'static str,
    /// A line that says nothing, however often it stands there.
    pub(super) comment: &'static str,
}

pub(super) const SUBJECTS: [Subject; 3] = [
    Subject { source: Source::Django, server: Server::Pyright, wrong: "nobody_defined_this", comment: "#" },
    Subject { source: Source::Django, server: Server::Ty, wrong: "nobody_defined_this", comment: "#" },
    Subject {
        source: Source::Rxjs,
        server: Server::TypeScript,
        wrong: "const wrong: number = 'text';",
        comment: "//",
    },
];

impl Subject {
    /// `Django, pyright`.
    pub(super) fn name(&self) -> String {
        format!("{:?}, {}", self.source, self.server.id())
    }

    /// Which servers we may use: this one.
    pub(super) fn servers(&self) -> Value {
        let switch = |server: &str| json!({ "enabled": server == self.server.id() });
        json!({ "pyright": switch("pyright"), "ruff": switch("ruff"), "ty": switch("ty") })
    }

    /// The landmark's declaration, and a use of it in another file.
    pub(super) fn places(&self, sandbox: &Sandbox) -> (Place<'static>, Place<'static>) {
        let landmark = self.source.landmark();
        let declared = Place::find(sandbox, landmark.file, landmark.line, landmark.name);
        (declared, Place::find(sandbox, landmark.user, landmark.use_line, landmark.name))
    }
}
