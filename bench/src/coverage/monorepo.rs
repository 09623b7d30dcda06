//! References across the packages of a TypeScript monorepo, in three wirings, with and without a lock file.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tenon_testkit::direct_server::uri;
use tenon_testkit::{McpClient, Sandbox, code_tools};

use crate::error::BenchError;
use crate::output::{log, print};

/// How the packages find each other.
#[derive(Debug, Clone, Copy)]
enum Wiring {
    References,
    Paths,
    Workspaces,
}

/// The declaration, and an import and a use in each of three packages.
const EXPECTED: usize = 7;

pub(super) fn measure(tenon: &Path) -> Result<(), BenchError> {
    print("\n## TypeScript monorepos, typescript-language-server\n");
    print("| wiring | lock file | references cold | after workspace diagnostics |\n|---|---|---|---|");
    for wiring in [Wiring::References, Wiring::Paths, Wiring::Workspaces] {
        for locked in [false, true] {
            let sandbox = Sandbox::new();
            write(&sandbox, wiring, locked)?;
            let cold = count(&mut session(tenon, &sandbox), &sandbox);
            let mut warm = session(tenon, &sandbox);
            while warm
                .call_tool(code_tools::WORKSPACE_DIAGNOSTICS, json!({}))
                .is_err_and(|error| !error.data["details"]["retryAfterMs"].is_null())
            {}
            let warm = count(&mut warm, &sandbox);
            let locked = if locked { "yes" } else { "no" };
            print(&format!("| {wiring:?} | {locked} | {cold} of {EXPECTED} | {warm} of {EXPECTED} |"));
        }
    }
    Ok(())
}

fn write(sandbox: &Sandbox, wiring: Wiring, locked: bool) -> Result<(), BenchError> {
    let tree = sandbox.tree();
    tree.write(
        "package.json",
        "{ \"name\": \"all\", \"private\": true, \"workspaces\": [\"packages/*\"] }\n",
    );
    if locked {
        tree.write("package-lock.json", "{ \"lockfileVersion\": 3, \"packages\": {} }\n");
    }
    let options = json!({ "strict": true, "composite": true, "module": "esnext", "moduleResolution": "bundler",
        "target": "es2022", "types": [], "outDir": "dist" });
    for package in ["core", "a", "b", "c"] {
        let folder = format!("packages/{package}");
        tree.write(
            format!("{folder}/package.json"),
            &json!({ "name": format!("@all/{package}"), "version": "1.0.0", "main": "src/index.ts",
                "types": "src/index.ts" })
            .to_string(),
        );
        let mut config = json!({ "compilerOptions": options, "include": ["src"] });
        let from = match wiring {
            Wiring::References => {
                if package != "core" {
                    config["references"] = json!([{ "path": "../core" }]);
                }
                "../../core/src/index"
            }
            Wiring::Paths => {
                config["compilerOptions"]["composite"] = json!(false);
                config["compilerOptions"]["paths"] = json!({ "@all/*": ["../*/src/index.ts"] });
                "@all/core"
            }
            Wiring::Workspaces => {
                config["compilerOptions"]["composite"] = json!(false);
                "@all/core"
            }
        };
        tree.write(format!("{folder}/tsconfig.json"), &config.to_string());
        let text = match package {
            "core" => "export function shared(): number {\n  return 1;\n}\n".to_owned(),
            _ => format!("import {{ shared }} from \"{from}\";\nexport const {package} = shared();\n"),
        };
        tree.write(format!("{folder}/src/index.ts"), &text);
        if let Wiring::Workspaces = wiring {
            let link = tree.path("node_modules/@all");
            std::fs::create_dir_all(&link)?;
            std::os::unix::fs::symlink(format!("../../{folder}"), link.join(package))?;
        }
    }
    if let Wiring::References = wiring {
        let all = ["core", "a", "b", "c"].map(|package| json!({ "path": format!("packages/{package}") }));
        tree.write("tsconfig.json", &json!({ "files": [], "references": all }).to_string());
    }
    Ok(())
}

fn session(tenon: &Path, sandbox: &Sandbox) -> McpClient {
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--no-daemon", "--surface", "code"]).stderr(Stdio::null());
    McpClient::connect(&mut command)
}

fn count(client: &mut McpClient, sandbox: &Sandbox) -> usize {
    let mut at = code_tools::at(&uri(sandbox, "packages/core/src/index.ts"), 0, 16);
    at["includeDeclaration"] = json!(true);
    loop {
        match client.call_tool(code_tools::REFERENCES, at.clone()) {
            Ok(answer) => return answer.structured["items"].as_array().map_or(0, Vec::len),
            Err(error) if error.data["details"]["retryAfterMs"].is_null() => {
                log(&error.message);
                return 0;
            }
            Err(_) => {}
        }
    }
}
