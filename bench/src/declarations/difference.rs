//! One difference between the index and a server, and the class that explains it.

use std::collections::BTreeSet;

use tenon_index::DeclarationKind;
use tenon_testkit::direct_server::InstalledServer;

use super::server_symbol::{ServerSymbol, kind};
use super::{IndexSymbol, NamePlace};

/// One file as both sides see it.
pub(super) struct ComparedFile<'a> {
    pub(super) server: InstalledServer,
    pub(super) lines: Vec<&'a str>,
    pub(super) indexed_names: BTreeSet<&'a str>,
    pub(super) served_names: BTreeSet<&'a str>,
    /// Names that the index has more than once.
    pub(super) repeated_names: BTreeSet<&'a str>,
}

/// What the two sides have at one place.
pub(super) struct Difference<'a> {
    pub(super) file: &'a ComparedFile<'a>,
    pub(super) place: NamePlace,
    pub(super) ours: Option<&'a IndexSymbol>,
    pub(super) theirs: Option<&'a ServerSymbol>,
}

impl Difference<'_> {
    /// Both sides have the declaration, with the same kind.
    pub(super) fn is_none(&self) -> bool {
        match (self.ours, self.theirs) {
            (Some(ours), Some(theirs)) => {
                same_kinds(theirs.kind).contains(&ours.kind)
                    || mapped_kinds(self.file.server, theirs).contains(&ours.kind)
            }
            _ => false,
        }
    }

    pub(super) fn side(&self) -> &'static str {
        match (self.ours, self.theirs) {
            (Some(_), Some(_)) => "other kind",
            (Some(_), None) => "only the index",
            (None, _) => "only the server",
        }
    }

    /// The two sides, and the line of code.
    pub(super) fn summary(&self) -> String {
        let ours = self.ours.map(|one| format!("{} {}", one.kind, one.name));
        let theirs =
            self.theirs.map(|one| format!("{} (kind {} in {:?})", one.name, one.kind, one.containers));
        let code = self.line(0).trim().replace('|', "\\|").replace('`', "'");
        let code: String = code.chars().take(60).collect();
        let sides: Vec<String> = ours.into_iter().chain(theirs).collect();
        format!("{}: {code}", sides.join(" / "))
    }

    /// The line of the name, or one before it.
    fn line(&self, before: usize) -> &str {
        let at = usize::try_from(self.place.0).unwrap_or(usize::MAX).checked_sub(before);
        at.and_then(|at| self.file.lines.get(at)).copied().unwrap_or_default()
    }

    /// Why the sides differ; `None` if nothing explains it.
    pub(super) fn class(&self) -> Option<&'static str> {
        match (self.ours, self.theirs) {
            (Some(ours), None) => self.only_ours(ours),
            (None, Some(theirs)) => self.only_theirs(theirs),
            _ => None,
        }
    }

    fn only_ours(&self, ours: &IndexSymbol) -> Option<&'static str> {
        let is_local = ours.containers.iter().any(|container| container.is_callable());
        match self.file.server {
            InstalledServer::Pyright if self.file.served_names.contains(ours.name.as_str()) => {
                Some("declared again: pyright lists one declaration of a name")
            }
            InstalledServer::Pyright if self.is_in_repeated(ours) => {
                Some("inside a declaration of which pyright lists another one")
            }
            InstalledServer::Pyright if self.is_imported(&ours.name) => {
                Some("also imported: pyright lists no symbol for an imported name")
            }
            InstalledServer::Pyright if ours.name == "_" || ours.name == "__doc__" => {
                Some("`_` and `__doc__`: pyright leaves them out")
            }
            InstalledServer::Pyright if self.is_below(&["sys.platform", "os.name"]) => {
                Some("unreachable on this system: pyright leaves it out")
            }
            InstalledServer::Clangd if ours.kind == DeclarationKind::Macro => {
                Some("macros: clangd does not list them")
            }
            InstalledServer::Clangd if self.is_below_condition() => {
                Some("behind a condition of the preprocessor that does not hold")
            }
            InstalledServer::Clangd if is_local => Some("types inside functions: clangd does not list them"),
            InstalledServer::RustAnalyzer
                if ours.kind == DeclarationKind::Impl && is_path_or_reference(self.line(0)) =>
            {
                Some(IMPL_OF_PATH)
            }
            InstalledServer::RustAnalyzer if is_local => {
                Some("items inside functions: rust-analyzer does not list them")
            }
            _ => None,
        }
    }

    fn is_in_repeated(&self, ours: &IndexSymbol) -> bool {
        ours.container_names.iter().any(|name| self.file.repeated_names.contains(name.as_str()))
    }

    /// Whether a line imports a name: alone, in a list, or in a list over several lines.
    fn is_imported(&self, name: &str) -> bool {
        let has_name =
            |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        let mut in_list = false;
        for line in &self.file.lines {
            let trimmed = line.trim_start();
            let starts = trimmed.starts_with("import ") || trimmed.starts_with("from ");
            if (starts || in_list) && has_name(trimmed) {
                return true;
            }
            in_list = starts && trimmed.trim_end().ends_with('(') || in_list && !trimmed.contains(')');
        }
        false
    }

    fn only_theirs(&self, theirs: &ServerSymbol) -> Option<&'static str> {
        let line = self.line(0).trim();
        let is_function = |one: &u64| matches!(*one, kind::FUNCTION | kind::METHOD | kind::CONSTRUCTOR);
        let in_function = theirs.containers.iter().any(is_function);
        match self.file.server {
            InstalledServer::Pyright => self.python(theirs, line, in_function),
            InstalledServer::TypeScript | InstalledServer::TypeScriptNative => {
                self.typescript(theirs, line, in_function)
            }
            InstalledServer::Clangd => self.cpp(theirs, line),
            InstalledServer::RustAnalyzer => rust(theirs, line, in_function),
            InstalledServer::Ty => None,
        }
    }

    fn python(&self, theirs: &ServerSymbol, line: &str, in_function: bool) -> Option<&'static str> {
        let column = usize::try_from(self.place.1).unwrap_or_default();
        let before = self.line(0).get(..column).unwrap_or_default();
        if in_function && matches!(theirs.kind, kind::VARIABLE | kind::CONSTANT) {
            Some("variables and parameters of functions")
        } else if before.ends_with('.') {
            Some("attributes set outside of `__init__`, under a condition, or in a list of targets")
        } else if line.starts_with("for ") || line.starts_with("except ") || line.starts_with("with ") {
            Some("variables of `for`, `except` and `with` at top level")
        } else if before.contains('(') && self.line(0).get(column..).is_some_and(|rest| rest.contains(":=")) {
            Some("`:=` inside an expression")
        } else if self.line(0).starts_with(' ') && before.contains(" = ") {
            Some("later targets of `a = b = …` under a condition")
        } else if self.file.indexed_names.contains(theirs.name.as_str()) {
            Some("declared again: the index lists another declaration of the name")
        } else {
            None
        }
    }

    fn typescript(&self, theirs: &ServerSymbol, line: &str, in_function: bool) -> Option<&'static str> {
        let is_callback = theirs.name.starts_with('<') || theirs.name.ends_with(" callback");
        if is_callback && theirs.kind == kind::FUNCTION {
            Some("functions without a name")
        } else if in_function {
            Some("variables, functions and object literals inside functions")
        } else if theirs.containers.is_empty() && self.is_import() {
            Some("imported and exported names")
        } else if matches!(theirs.name.as_str(), "new()" | "()" | "[]") || theirs.kind == kind::CONSTRUCTOR {
            Some("signatures without a name: calls, constructors, indexes")
        } else if line.contains("global") && theirs.kind == kind::NAMESPACE {
            Some("`declare global`, a scope without an own name")
        } else if theirs.containers.contains(&kind::VARIABLE) || theirs.containers.contains(&kind::PROPERTY) {
            Some("properties of object literals that are not functions")
        } else if theirs.containers.contains(&kind::CLASS) && theirs.containers.len() > 1 {
            Some("members of type literals")
        } else {
            None
        }
    }

    /// Whether the name is between `import` or `export {` and its end.
    fn is_import(&self) -> bool {
        let mut before = 0;
        loop {
            let line = self.line(before).trim_start();
            let starts =
                line.starts_with("import ") || line.starts_with("export {") || line.starts_with("export *");
            if starts || line.starts_with("export type {") {
                return true;
            }
            // The first line of such a list is near, and only names come after it.
            if before > 200 || before > 0 && line.contains([';', '(', '=']) {
                return false;
            }
            before += 1;
        }
    }

    fn cpp(&self, theirs: &ServerSymbol, line: &str) -> Option<&'static str> {
        if theirs.name.starts_with("(anonymous") {
            Some("namespaces and enums without a name")
        } else if line.starts_with("using ") {
            Some("`using` of a name or namespace")
        } else if line.ends_with(';')
            && !line.contains('{')
            && ["class ", "struct ", "enum "].iter().any(|word| line.contains(word))
        {
            Some("types declared without a body")
        } else if line.starts_with(&format!("{}(", theirs.name)) {
            Some("calls of macros that declare something")
        } else {
            None
        }
    }

    /// Whether a line before, with less indentation, contains one of `words`.
    fn is_below(&self, words: &[&str]) -> bool {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let mut inner = indent(self.line(0));
        let lines = (1..=usize::try_from(self.place.0).unwrap_or_default()).map(|before| self.line(before));
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let here = indent(line);
            let is_branch = line.trim_start().starts_with("else") || line.trim_start().starts_with("elif");
            if here < inner || here == inner && is_branch {
                if words.iter().any(|word| line.contains(word)) {
                    return true;
                }
                inner = if is_branch { here + 1 } else { here };
            }
        }
        false
    }

    /// Whether an `#if` is open.
    fn is_below_condition(&self) -> bool {
        let mut open = 0_i32;
        for before in 1..=usize::try_from(self.place.0).unwrap_or_default() {
            let line = self.line(before).trim_start();
            if line.starts_with("#endif") {
                open += 1;
            } else if line.starts_with("#if") {
                open -= 1;
                // The guard of a header holds.
                if open < 0 && !line.trim_end().ends_with("_H_") {
                    return true;
                }
            }
        }
        false
    }
}

/// The index names a block after the last part of a path, rust-analyzer after the whole path.
const IMPL_OF_PATH: &str = "`impl` for a path or a reference: its name is elsewhere";

fn is_path_or_reference(line: &str) -> bool {
    line.contains("::") || line.contains(" &")
}

fn rust(theirs: &ServerSymbol, line: &str, in_function: bool) -> Option<&'static str> {
    if in_function {
        Some("variables and constants of functions")
    } else if theirs.kind == kind::OBJECT && is_path_or_reference(line) {
        Some(IMPL_OF_PATH)
    } else if line.starts_with("extern") {
        Some("`extern` blocks, which have no name")
    } else {
        None
    }
}

/// The kinds of the index that a kind of the protocol means.
fn same_kinds(server: u64) -> &'static [DeclarationKind] {
    use DeclarationKind as K;
    match server {
        kind::MODULE | kind::NAMESPACE => &[K::Module, K::Namespace],
        kind::CLASS => &[K::Class],
        kind::METHOD => &[K::Method],
        kind::PROPERTY => &[K::Property, K::Field],
        kind::FIELD => &[K::Field],
        kind::CONSTRUCTOR => &[K::Constructor],
        kind::ENUM => &[K::Enum],
        kind::INTERFACE => &[K::Interface, K::Trait],
        kind::FUNCTION => &[K::Function],
        kind::VARIABLE => &[K::Variable],
        kind::CONSTANT => &[K::Constant],
        kind::OBJECT => &[K::Impl],
        kind::ENUM_MEMBER => &[K::EnumMember],
        kind::STRUCT => &[K::Struct],
        kind::TYPE_PARAMETER => &[K::TypeAlias],
        _ => &[],
    }
}

/// Where a server has no kind for something, or uses another one.
fn mapped_kinds(server: InstalledServer, symbol: &ServerSymbol) -> &'static [DeclarationKind] {
    use DeclarationKind as K;
    match (server, symbol.kind) {
        // Pyright knows classes, methods, functions, variables and constants.
        (InstalledServer::Pyright, kind::METHOD) => &[K::Property, K::Constructor],
        (InstalledServer::Pyright, kind::CLASS) => &[K::Enum],
        (InstalledServer::Pyright, kind::VARIABLE) => &[K::Field, K::EnumMember],
        (InstalledServer::Pyright, kind::CONSTANT) => &[K::Field, K::EnumMember],
        // A function in a `const`; a `const` is a variable; a type alias is a class; a property whose type is a function.
        (InstalledServer::TypeScript | InstalledServer::TypeScriptNative, kind::VARIABLE) => {
            &[K::Constant, K::Function]
        }
        (InstalledServer::TypeScript | InstalledServer::TypeScriptNative, kind::CLASS) => &[K::TypeAlias],
        (InstalledServer::TypeScript | InstalledServer::TypeScriptNative, kind::PROPERTY) => &[K::Method],
        // Structs and aliases are classes, destructors constructors, enumerators enums.
        (InstalledServer::Clangd, kind::CLASS) => &[K::Struct, K::TypeAlias],
        (InstalledServer::Clangd, kind::CONSTRUCTOR) => &[K::Method],
        (InstalledServer::Clangd, kind::ENUM) => &[K::EnumMember],
        // A variable of a class, defined outside of it.
        (InstalledServer::Clangd, kind::PROPERTY) => &[K::Variable],
        // Functions of a type without `self`, and macros; statics are constants.
        (InstalledServer::RustAnalyzer, kind::FUNCTION) => &[K::Macro, K::Method],
        (InstalledServer::RustAnalyzer, kind::CONSTANT) => &[K::Variable],
        _ => &[],
    }
}
