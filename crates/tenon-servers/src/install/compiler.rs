//! The Rust compiler that builds packages from source.

use std::fmt;

/// The version of a compiler, without its patch level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CompilerVersion(pub(super) u32, pub(super) u32);

impl fmt::Display for CompilerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What `rustc -vV` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compiler {
    pub(super) version: CompilerVersion,
    /// The target that it compiles for if no other is chosen.
    pub(super) host: String,
}

impl Compiler {
    pub(super) fn parse(output: &str) -> Option<Self> {
        let value = |key: &str| output.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let mut numbers = value("release:")?.split('.').map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return None;
        };
        Some(Self { version: CompilerVersion(major, minor), host: value("host:")?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_host_are_read() {
        let text = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n\
                    release: 1.95.0\nLLVM version: 22.1.0\n";
        let compiler = Compiler::parse(text).unwrap();
        assert_eq!(compiler.host, "x86_64-unknown-linux-gnu");
        assert_eq!(compiler.version.to_string(), "1.95");
        assert!(compiler.version > CompilerVersion(1, 9));
        let nightly = Compiler::parse(&text.replace("release: 1.95.0", "release: 1.98.0-nightly")).unwrap();
        assert_eq!(nightly.version, CompilerVersion(1, 98));
        assert_eq!(Compiler::parse("error: no such toolchain"), None);
        assert_eq!(Compiler::parse("host: x\nrelease: unknown\n"), None);
    }
}
