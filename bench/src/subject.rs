//! The real code that benches query, with the language server for it.

use serde_json::{Value, json};
use tenon_testkit::direct_server::{FilePosition, InstalledServer};
use tenon_testkit::{RealProject, Sandbox};

/// One language server on one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) source: RealProject,
    pub(crate) server: InstalledServer,
    /// A line that is an error anywhere in a file.
    pub(crate) wrong: &'static str,
    /// A line that has no effect.
    pub(crate) comment: &'static str,
}

pub(crate) const SUBJECTS: [Subject; 4] = [
    Subject {
        source: RealProject::Django,
        server: InstalledServer::Pyright,
        wrong: "undefined_name",
        comment: "#",
    },
    Subject {
        source: RealProject::Django,
        server: InstalledServer::Ty,
        wrong: "undefined_name",
        comment: "#",
    },
    Subject {
        source: RealProject::Rxjs,
        server: InstalledServer::TypeScriptNative,
        wrong: "const wrong: number = 'text';",
        comment: "//",
    },
    Subject {
        source: RealProject::Rxjs,
        server: InstalledServer::TypeScript,
        wrong: "const wrong: number = 'text';",
        comment: "//",
    },
];

/// Only where rust-analyzer is installed.
pub(crate) const RUST: Subject = Subject {
    source: RealProject::RegexSyntax,
    server: InstalledServer::RustAnalyzer,
    wrong: "const WRONG: u8 = \"text\";",
    comment: "//",
};

impl Subject {
    /// `Django, pyright`.
    pub(crate) fn name(&self) -> String {
        format!("{:?}, {}", self.source, self.server.id())
    }

    /// Settings that enable only this server.
    pub(crate) fn servers(&self) -> Value {
        let switch = |server: &str| json!({ "enabled": server == self.server.id() });
        let ids =
            ["pyright", "ruff", "ty", "typescript-native", "typescript-language-server", "rust-analyzer"];
        ids.into_iter().map(|id| (id.to_owned(), switch(id))).collect()
    }

    /// The landmark's declaration, and a use of it in another file.
    pub(crate) fn places(&self, sandbox: &Sandbox) -> (FilePosition<'static>, FilePosition<'static>) {
        let symbol = self.source.sample_symbol();
        let declared = FilePosition::find(sandbox, symbol.file, symbol.line, symbol.name);
        (declared, FilePosition::find(sandbox, symbol.user, symbol.use_line, symbol.name))
    }
}
