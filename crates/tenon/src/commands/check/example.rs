//! A report that the tests of all formats share.

use tenon_contract::position::{LineIndex, Position, Range};
use tenon_lsp::model::{Diagnostic, FixData};
use tenon_lsp::workspace_check::{CheckReport, CheckedFile};

pub(super) fn found(range: [u32; 4], severity: u32, source: &str, code: &str, message: &str) -> Diagnostic {
    Diagnostic {
        range: Range::new(Position::new(range[0], range[1]), Position::new(range[2], range[3])),
        severity: Some(severity),
        code: (!code.is_empty()).then(|| code.to_owned()),
        source: (!source.is_empty()).then(|| source.to_owned()),
        message: message.to_owned(),
        fix_data: FixData::default(),
    }
}

pub(super) fn file(name: &str, text: &str, diagnostics: Vec<Diagnostic>) -> CheckedFile {
    CheckedFile { file: name.to_owned(), lines: Some(LineIndex::new(text)), diagnostics, missing: Vec::new() }
}

pub(super) fn report(files: Vec<CheckedFile>) -> CheckReport {
    CheckReport { checked: files.len(), files, ..CheckReport::default() }
}

pub(super) fn example() -> CheckReport {
    let a = file(
        "src/a b.py",
        "x: int = 'ä🎉'\nprint(undefined)\n",
        vec![
            found(
                [0, 9, 0, 14],
                1,
                "Pyright",
                "reportAssignmentType",
                "Type \"str\" is not\n  assignable to \"int\"",
            ),
            found([1, 6, 1, 15], 2, "", "", "100% wrong, really: yes"),
        ],
    );
    let b = file(
        "b.ts",
        "f(\n  1,\n  2,\n)\n",
        vec![found([0, 0, 3, 1], 3, "ts", "2554", "Expected 1 argument")],
    );
    report(vec![b, a])
}
