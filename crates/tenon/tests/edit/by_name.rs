//! Edits by name through the real program, with a scripted and with real language servers.

use std::time::Instant;

use serde_json::{Value, json};
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, PATIENCE};

use crate::workspace::{Workspace, text};

/// The script of a server for Python files that finds and renames words in these files.
pub fn renamer(files: &[String], rules: &[Value]) -> Value {
    let publish = json!([{ "publish": { "uri": "$uri" } }]);
    let mut all = vec![
        json!({ "on": "textDocument/didOpen", "do": publish }),
        json!({ "on": "textDocument/didChange", "do": publish }),
        json!({ "on": "textDocument/rename", "do": [{ "reply_rename": files }] }),
        json!({ "on": "textDocument/references", "do": [{ "reply_mentions": files }] }),
        json!({ "on": "textDocument/definition", "do": ["reply_here"] }),
    ];
    all.extend_from_slice(rules);
    let capabilities = json!({
        "textDocumentSync": 2, "renameProvider": true, "referencesProvider": true, "definitionProvider": true,
    });
    json!({ "capabilities": capabilities, "rules": all })
}

fn call(client: &mut McpClient, tool: &str, arguments: Value) -> ToolResult {
    client.call_tool(tool, arguments).unwrap()
}

/// Repeats a call while a server is still loading.
fn until_loaded(client: &mut McpClient, tool: &str, arguments: &Value) -> ToolResult {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let result = call(client, tool, arguments.clone());
        let waits = |text: &String| text.contains("still loading") || text.contains("in time");
        if !result.text.iter().any(waits) {
            return result;
        }
        assert!(Instant::now() < deadline, "{result:?}");
    }
}

#[test]
fn tools_answer_with_text_alone_and_errors_are_one_line() {
    let workspace = Workspace::new("//- a.py\ndef total():\n    pass\n")
        .python_server("fake", &renamer(&["a.py".to_owned()], &[]));
    let mut client = workspace.client();
    let shown = call(&mut client, "rename", json!({ "symbol": "total", "to": "sum_of" }));
    assert_eq!(shown.structured, Value::Null);
    assert!(text(&shown).starts_with("rename total to sum_of: 1 places in 1 files"), "{shown:?}");
    for (tool, arguments, expected) in [
        ("rename", json!({ "symbol": "total", "to": "class" }), "`class` is not a valid name in python"),
        ("rename", json!({ "symbol": "totl", "to": "x" }), "no symbol `totl`; nearest: total"),
        ("rename", json!({ "symbol": "total" }), "arguments: "),
        ("edit_symbol", json!({ "symbol": "total", "op": "move" }), "/op: "),
        ("edit_symbol", json!({ "symbol": "total", "op": "after" }), "`text` is empty"),
        ("fix", json!({ "file": "../x.py", "action": "format" }), "no file or folder `../x.py`"),
        ("fix", json!({ "file": "a.py", "action": "format", "line": 0 }), "/line: "),
    ] {
        let failed = call(&mut client, tool, arguments);
        assert!(failed.is_error && failed.text.len() == 1, "{failed:?}");
        let line = &failed.text[0];
        assert!(line.starts_with(expected) && !line.contains('\n'), "{line}");
    }
    let done = call(&mut client, "edit_symbol", json!({ "symbol": "total", "op": "after", "text": "x = 1" }));
    assert!(text(&done).starts_with("edited a.py:4-5\n0 new, 0 gone, 0 unchanged"), "{done:?}");
    assert_eq!(workspace.bytes("a.py"), b"def total():\n    pass\n\n\nx = 1\n");
}

#[test]
fn tool_list_of_explore_and_edit_has_at_most_8000_bytes() {
    let workspace = Workspace::new("//- a.py\n");
    let mut client = workspace.session("explore,edit");
    let bytes = client.request("tools/list", json!({})).unwrap().to_string().len();
    assert!(bytes <= 8000, "{bytes} bytes");
}

const SHOP: &str = "\
//- shop/__init__.py
//- shop/prices.py
import sys
import os


class Price:
    def __init__(self, amount: int):
        self.amount = amount

    def total(self, count: int) -> int:
        return self.amount * count


def unused() -> str:
    return os.name
//- shop/cart.py
from shop.prices import Price


def cart_total(prices: list[Price]) -> int:
    return sum(price.total(1) for price in prices)
//- tests/test_cart.py
from shop.cart import cart_total
from shop.prices import Price


def test_total():
    assert cart_total([Price(2)]) == Price(1).total(2)
";

#[test]
fn pyright_renames_a_method_in_all_files_and_ruff_fixes_and_formats() {
    let workspace = Workspace::new(SHOP).with_real_servers().entry("ty", json!({ "enabled": false }));
    let mut client = workspace.client();
    let shown = until_loaded(&mut client, "rename", &json!({ "symbol": "Price.total", "to": "price_of" }));
    insta::assert_snapshot!(text(&shown), @r"
    rename Price.total to price_of: 3 places in 3 files; nothing was changed, `apply: true` does it
    shop/cart.py
      5: return sum(price.total(1) for price in prices)
    shop/prices.py
      9: def total(self, count: int) -> int:
    tests/test_cart.py
      6: assert cart_total([Price(2)]) == Price(1).total(2)
    ");
    let done =
        call(&mut client, "rename", json!({ "symbol": "Price.total", "to": "price_of", "apply": true }));
    insta::assert_snapshot!(text(&done), @r"
    renamed Price.total to price_of: 3 places in 3 files
    edited shop/cart.py:5
    edited shop/prices.py:9
    edited tests/test_cart.py:6
    0 new, 0 gone, 0 unchanged
    ");
    assert!(
        String::from_utf8(workspace.bytes("tests/test_cart.py")).unwrap().contains("Price(1).price_of(2)")
    );

    let refused = call(&mut client, "edit_symbol", json!({ "symbol": "Price", "op": "delete" }));
    assert!(refused.is_error && refused.text[0].starts_with("`Price` is used in "), "{refused:?}");
    let deleted = call(&mut client, "edit_symbol", json!({ "symbol": "unused", "op": "delete" }));
    assert_eq!(text(&deleted), "edited shop/prices.py:10\n0 new, 0 gone, 0 unchanged");
    let organised = call(&mut client, "fix", json!({ "file": "shop/prices.py", "action": "imports" }));
    assert_eq!(text(&organised), "edited shop/prices.py:1-3\n0 new, 0 gone, 0 unchanged");
    workspace.sandbox.tree().write("shop/wide.py", "x = {  'a':1 }\n");
    let formatted = call(&mut client, "fix", json!({ "file": "shop/wide.py", "action": "format" }));
    assert_eq!(text(&formatted), "edited shop/wide.py:1\n0 new, 0 gone, 0 unchanged");
    assert_eq!(workspace.bytes("shop/wide.py"), b"x = {\"a\": 1}\n");
}
