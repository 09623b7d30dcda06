//! A copy of a repository's compilation database with the compiler options that are known to be harmless.
//!
//! clangd obeys every option, and some name files to write, plugins to load or folders for caches. Before a root is
//! trusted, clangd reads this copy instead. An option that is not in the tables is left out.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Deserialize, Serialize};
use tenon_contract::root::RootGate;

/// Where clangd looks for the database of a folder.
pub(crate) const DATABASES: [&str; 2] = ["compile_commands.json", "build/compile_commands.json"];
const FLAGS: &str = "compile_flags.txt";

/// The largest database that is read.
const MAX_BYTES: u64 = 128 * 1024 * 1024;

/// One file of a database.
#[derive(Deserialize)]
struct CompileCommand {
    directory: Utf8PathBuf,
    file: Utf8PathBuf,
    command: Option<String>,
    arguments: Option<Vec<String>>,
}

#[derive(Serialize)]
struct FilteredCommand {
    directory: Utf8PathBuf,
    file: Utf8PathBuf,
    arguments: Vec<String>,
}

/// Writes the copy for a project into `folder`, replacing an older one. Without a database there is no copy, and clangd uses
/// its default options.
pub(crate) fn write_filtered(root: &Utf8Path, project: &Utf8Path, folder: &Utf8Path) -> io::Result<()> {
    let gate = RootGate::new([root]).map_err(io::Error::other)?;
    let read = |name: &str| {
        let path = gate.admit_path(project.join(name)).ok()?;
        Some((path.as_path().parent()?.to_owned(), gate.read_to_string(&path, MAX_BYTES).ok()?))
    };
    let database = DATABASES.iter().find_map(|name| read(name)).map(|(above, text)| {
        let commands: Vec<CompileCommand> = serde_json::from_str(&text).unwrap_or_default();
        let filtered: Vec<FilteredCommand> = commands.into_iter().map(|one| one.filtered(&above)).collect();
        serde_json::to_vec(&filtered)
    });
    let database = database.transpose()?;
    let flags = read(FLAGS).filter(|_| database.is_none()).map(|(above, text)| {
        let options = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
        harmless(options, Some(&above)).join("\n").into_bytes()
    });
    keep_file(&folder.join(DATABASES[0]), database.as_deref())?;
    keep_file(&folder.join(FLAGS), flags.as_deref())
}

/// Makes a file have this content, or none. Other processes may read it at any time, so it is replaced in one step, and only
/// if it differs.
fn keep_file(path: &Utf8Path, content: Option<&[u8]>) -> io::Result<()> {
    let Some(content) = content else {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    if fs::read(path).is_ok_and(|kept| kept == content) {
        return Ok(());
    }
    let next = Utf8PathBuf::from(format!("{path}.{}", std::process::id()));
    fs::write(&next, content)?;
    fs::rename(next, path)
}

impl CompileCommand {
    fn filtered(self, above: &Utf8Path) -> FilteredCommand {
        let words = match (self.arguments, self.command) {
            (Some(arguments), _) => arguments,
            (None, Some(command)) => shlex::split(&command).unwrap_or_default(),
            (None, None) => Vec::new(),
        };
        let mut words = words.into_iter();
        let compiler = words.next().unwrap_or_default();
        let mut arguments = vec![driver(&compiler).to_owned()];
        arguments.extend(harmless(words, None));
        arguments.push("--".to_owned());
        arguments.push(self.file.to_string());
        FilteredCommand { directory: above.join(self.directory), file: self.file, arguments }
    }
}

/// The name by which clang chooses the language; never a program of the repository.
fn driver(compiler: &str) -> &'static str {
    let name = Utf8Path::new(compiler).file_name().unwrap_or_default();
    if name.contains("++") { "clang++" } else { "clang" }
}

/// How an option takes its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionValue {
    /// A path, as the next word or joined.
    Path,
    /// Any text, as the next word or joined.
    Text,
}

/// Options with a value. The compiler reads files named by them as source.
const VALUES: &[(&str, OptionValue)] = &[
    ("-I", OptionValue::Path),
    ("-F", OptionValue::Path),
    ("-isystem", OptionValue::Path),
    ("-iquote", OptionValue::Path),
    ("-idirafter", OptionValue::Path),
    ("-iframework", OptionValue::Path),
    ("-isysroot", OptionValue::Path),
    ("-include", OptionValue::Path),
    ("-imacros", OptionValue::Path),
    ("--sysroot", OptionValue::Path),
    ("-D", OptionValue::Text),
    ("-U", OptionValue::Text),
    ("-x", OptionValue::Text),
    ("-target", OptionValue::Text),
    ("-arch", OptionValue::Text),
];

/// Options without a value, or with one after `=` that is only compared with known words.
const WORDS: &[&str] = &[
    "-ansi",
    "-nobuiltininc",
    "-nostdinc",
    "-nostdinc++",
    "-nostdlibinc",
    "-pedantic",
    "-pedantic-errors",
    "-pthread",
    "-trigraphs",
    "-undef",
    "-w",
    "-std",
    "--std",
    "--target",
    "-stdlib",
];

/// Options that start with `-f` or `-fno-`.
const FEATURES: &[&str] = &[
    "PIC",
    "PIE",
    "abi-version",
    "access-control",
    "aligned-allocation",
    "aligned-new",
    "asm",
    "asynchronous-unwind-tables",
    "blocks",
    "borland-extensions",
    "builtin",
    "cf-protection",
    "char8_t",
    "clang-abi-compat",
    "common",
    "concepts",
    "constexpr-depth",
    "constexpr-steps",
    "coroutines",
    "coroutines-ts",
    "cxx-exceptions",
    "data-sections",
    "declspec",
    "delayed-template-parsing",
    "diagnostics-color",
    "elide-constructors",
    "exceptions",
    "experimental-library",
    "fast-math",
    "fp-contract",
    "fp-model",
    "freestanding",
    "function-sections",
    "gnu-keywords",
    "gnu89-inline",
    "hosted",
    "math-errno",
    "max-errors",
    "ms-compatibility",
    "ms-compatibility-version",
    "ms-extensions",
    "msc-version",
    "objc-arc",
    "objc-exceptions",
    "omit-frame-pointer",
    "openmp",
    "openmp-simd",
    "operator-names",
    "permissive",
    "pic",
    "pie",
    "relaxed-template-template-args",
    "rtti",
    "sanitize",
    "short-enums",
    "short-wchar",
    "signed-char",
    "sized-deallocation",
    "stack-clash-protection",
    "stack-protector",
    "stack-protector-all",
    "stack-protector-strong",
    "strict-aliasing",
    "strict-enums",
    "strict-overflow",
    "template-depth",
    "threadsafe-statics",
    "tls-model",
    "unsigned-char",
    "unwind-tables",
    "visibility",
    "visibility-inlines-hidden",
    "wrapv",
];

/// The options that are known to be harmless. Relative paths are resolved against `above`, if given.
fn harmless(words: impl Iterator<Item = String>, above: Option<&Utf8Path>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        let valued = VALUES.iter().filter(|(name, _)| takes(name, &word)).max_by_key(|(name, _)| name.len());
        if let Some((name, value)) = valued {
            let joined = &word[name.len()..];
            let joined = joined.strip_prefix('=').filter(|_| name.len() > 2).unwrap_or(joined);
            let text = match joined.is_empty() {
                true => words.next().unwrap_or_default(),
                false => joined.to_owned(),
            };
            let text = match (value, above) {
                (OptionValue::Path, Some(above)) => above.join(&text).into_string(),
                _ => text,
            };
            kept.extend([(*name).to_owned(), text]);
        } else if is_harmless(&word) {
            kept.push(word);
        }
    }
    kept
}

/// Whether a word is an option with this name. `-include-pch` is not `-include`.
fn takes(name: &str, word: &str) -> bool {
    word.strip_prefix(name).is_some_and(|joined| name.len() == 2 || !joined.starts_with(['-', '_']))
}

fn is_harmless(word: &str) -> bool {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.' | b'='))
    };
    let name = word.split('=').next().unwrap_or(word);
    if WORDS.contains(&name) {
        return is_plain(word);
    }
    if let Some(feature) = name.strip_prefix("-f") {
        let stem = feature.strip_prefix("no-").unwrap_or(feature);
        let values = word.replace(',', "");
        return FEATURES.contains(&stem) && is_plain(&values);
    }
    // `-Wp,`, `-Wl,` and `-mllvm` pass options on.
    let family = word.starts_with("-W") || word.starts_with("-m") || word.starts_with("-O");
    family && is_plain(word) && name != "-mllvm" && !name.starts_with("-mlink")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(command: &str) -> String {
        harmless(shlex::split(command).unwrap().into_iter(), None).join(" ")
    }

    #[test]
    fn options_that_decide_the_meaning_are_kept() {
        assert_eq!(
            kept(
                "-Iinclude -I ../x -isystem /usr/x -isystem=/y -DA=1 -D B -UC -std=c++20 -x c++ -include a.h"
            ),
            "-I include -I ../x -isystem /usr/x -isystem /y -D A=1 -D B -U C -std=c++20 -x c++ -include a.h"
        );
        let same = "-Wall -Wno-unused -Werror=format -O2 -march=native -mavx2 -fno-exceptions -fPIC -fvisibility=hidden \
                    -fsanitize=address,undefined -pthread --target=aarch64-linux-gnu -nostdinc++";
        assert_eq!(kept(same), same);
    }

    #[test]
    fn options_that_name_outputs_programs_or_plugins_are_left_out() {
        for hostile in [
            "-o ../victim",
            "-serialize-diagnostics ../victim",
            "--serialize-diagnostics=../victim",
            "-MF ../victim -MD -MMD -MT x -MQ y -MJ ../victim",
            "-Wp,-MD,../victim -Wl,-o,x -Wa,--x",
            "-fplugin=./evil.so -fpass-plugin=./evil.so -fplugin-arg-x-y",
            "-Xclang -load -Xclang ./evil.so",
            "-Xpreprocessor -MD -Xlinker -o -Xassembler x",
            "-mllvm -pass-remarks-output=../victim",
            "-fmodules -fmodules-cache-path=../victim -fmodule-output=../victim -fimplicit-module-maps",
            "-fsave-optimization-record -foptimization-record-file=../victim",
            "-ftime-trace -ftime-trace=../victim -ftime-report",
            "-fprofile-generate=../victim -fprofile-instr-generate=../victim -fcoverage-mapping -ftest-coverage",
            "-fcrash-diagnostics-dir=../victim -gen-reproducer -save-temps -save-temps=obj -dumpdir ../victim",
            "-include-pch ../victim",
            "-index-store-path ../victim -emit-module -emit-pch -emit-llvm -S -E -c",
            "-dependency-file ../victim -dependency-dot ../victim -header-include-file ../victim",
            "--config=../evil.cfg --config ../evil.cfg --config-user-dir=..",
            "@../evil.rsp @evil",
            "-B./evil -specs=./evil -no-canonical-prefixes -resource-dir ./evil -ccc-install-dir ./evil",
            "-std=../victim -stdlib=/x",
            "-fsanitize-ignorelist=../x -fsanitize-coverage-allowlist=../x",
            "-fopenmp=../x -fvisibility=/x",
            "evil.c ../evil.c",
        ] {
            let kept = kept(hostile);
            assert!(
                !kept.contains("victim") && !kept.contains("evil") && !kept.contains('/'),
                "{hostile}: {kept}"
            );
        }
        assert_eq!(kept("-Wall -- -o ../victim"), "-Wall");
    }

    #[test]
    fn copy_has_the_filtered_commands_and_replaces_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        let copies = root.join("copies");
        fs::create_dir(&copies).unwrap();
        fs::create_dir(root.join("build")).unwrap();
        fs::write(
            root.join("build/compile_commands.json"),
            r#"[{"directory": "sub", "file": "a.cpp", "command": "./evil/g++-12 -I'in c' -o x a.cpp"},
                {"directory": "/d", "file": "b.c", "arguments": ["cc", "-DX", "-fplugin=e.so", "b.c"]}]"#,
        )
        .unwrap();
        write_filtered(&root, &root, &copies).unwrap();
        let copy = fs::read_to_string(copies.join("compile_commands.json")).unwrap();
        let expected = format!(
            r#"[{{"directory":"{root}/build/sub","file":"a.cpp","arguments":["clang++","-I","in c","--","a.cpp"]}},{{"directory":"/d","file":"b.c","arguments":["clang","-D","X","--","b.c"]}}]"#
        );
        assert_eq!(copy, expected);

        fs::remove_file(root.join("build/compile_commands.json")).unwrap();
        fs::write(root.join("compile_flags.txt"), "-Iinclude\n-o\nvictim\n-DX\n").unwrap();
        write_filtered(&root, &root, &copies).unwrap();
        assert!(!copies.join("compile_commands.json").exists());
        let flags = fs::read_to_string(copies.join("compile_flags.txt")).unwrap();
        assert_eq!(flags, format!("-I\n{root}/include\n-D\nX"));
    }

    #[cfg(unix)]
    #[test]
    fn broken_or_linked_database_gives_no_options() {
        let folder = tempfile::tempdir().unwrap();
        let outside = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        let root = outside.join("w");
        let copies = outside.join("copies");
        fs::create_dir(&root).unwrap();
        fs::create_dir(&copies).unwrap();
        fs::write(root.join("compile_commands.json"), "[{").unwrap();
        write_filtered(&root, &root, &copies).unwrap();
        assert_eq!(fs::read_to_string(copies.join("compile_commands.json")).unwrap(), "[]");
        fs::remove_file(root.join("compile_commands.json")).unwrap();
        fs::write(outside.join("flags"), "-DX").unwrap();
        std::os::unix::fs::symlink(outside.join("flags"), root.join("compile_flags.txt")).unwrap();
        write_filtered(&root, &root, &copies).unwrap();
        assert!(!copies.join("compile_flags.txt").exists());
    }
}
