//! Names the symbols around new diagnostics, as far as servers answer at once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use tenon_contract::position::Position;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::CallContext;
use tenon_lsp::model::{Symbol, SymbolKind};
use tenon_lsp::orchestrator::Orchestrator;

use super::FoundDiagnostic;

/// The most files whose symbols are requested, and the time for all.
const MAX_FILES: usize = 8;
const TIME: Duration = Duration::from_millis(250);

/// Sets the symbols of diagnostics whose server answers in time; the others stay without.
pub(super) async fn name_symbols(servers: &Orchestrator, found: &mut [FoundDiagnostic], call: &CallContext) {
    let mut paths: BTreeMap<String, WorkspacePath> = BTreeMap::new();
    for one in found.iter() {
        if paths.len() == MAX_FILES {
            break;
        }
        if let Ok(path) = servers.gate().admit_path(&one.file) {
            paths.insert(one.file.clone(), path);
        }
    }
    let call = call.at_most(TIME);
    let asked = paths.iter().map(|(file, path)| async {
        let answer = call.bound(servers.document_symbols(path, &call)).await;
        let symbols = answer.ok().and_then(Result::ok).map(|answer| answer.value).unwrap_or_default();
        (file.clone(), symbols)
    });
    let symbols: BTreeMap<String, Vec<Symbol>> = join_all(asked).await.into_iter().collect();
    for one in found {
        let position = Position::new(one.line.line - 1, one.line.character - 1);
        one.symbol = symbols.get(&one.file).and_then(|symbols| enclosing(symbols, position));
    }
}

/// The names of the symbols with a body around a position, from the outermost. `symbols` lists parents first.
fn enclosing(symbols: &[Symbol], position: Position) -> Option<String> {
    let around =
        |one: &&Symbol| has_body(one.kind) && one.range.start <= position && position <= one.range.end;
    let mut names: Vec<(u32, &str)> = Vec::new();
    for symbol in symbols.iter().filter(around) {
        // The end of one symbol may be the start of the next.
        names.retain(|(depth, _)| *depth < symbol.depth);
        names.push((symbol.depth, &symbol.name));
    }
    let names: Vec<&str> = names.into_iter().map(|(_, name)| name).collect();
    (!names.is_empty()).then(|| names.join("."))
}

/// Modules, classes, functions and the like; not variables, whose range is one statement.
fn has_body(kind: SymbolKind) -> bool {
    matches!(
        kind.name(),
        "module"
            | "namespace"
            | "class"
            | "method"
            | "constructor"
            | "enum"
            | "interface"
            | "function"
            | "struct"
    )
}

#[cfg(test)]
mod tests {
    use tenon_contract::position::Range;
    use tenon_contract::root::RootGate;

    use super::*;

    #[test]
    fn innermost_symbols_with_a_body_are_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let path = RootGate::new([folder.path()]).unwrap().admit_path("a").unwrap();
        let symbol = |name: &str, kind: u32, lines: (u32, u32), depth: u32| {
            let range = Range::new(Position::new(lines.0, 0), Position::new(lines.1, 0));
            let (path, name) = (path.clone(), name.to_owned());
            Symbol { path, name, kind: SymbolKind(kind), range, selection: range, container: None, depth }
        };
        let symbols = [
            symbol("A", 5, (0, 10), 0),
            symbol("f", 6, (1, 5), 1),
            symbol("local", 13, (2, 3), 2),
            symbol("g", 6, (5, 9), 1),
            symbol("last", 12, (20, 30), 0),
        ];
        let at = |line: u32| enclosing(&symbols, Position::new(line, 0));
        assert_eq!(at(0).as_deref(), Some("A"));
        assert_eq!(at(2).as_deref(), Some("A.f"));
        assert_eq!(at(5).as_deref(), Some("A.g"));
        assert_eq!(at(15), None);
        assert_eq!(at(30).as_deref(), Some("last"));
    }
}
