//! The systems that releases are built for, and their names in each package format.

use super::Binary;
use crate::shell::Error;

/// One system.
#[derive(Debug)]
pub(crate) struct Target {
    pub(super) triple: &'static str,
    /// npm's `os` and `cpu`, which are Node's `process.platform` and `process.arch`.
    pub(super) npm: (&'static str, &'static str),
    /// The platform of a wheel; for Linux only the processor, because the rest depends on glibc.
    wheel: &'static str,
}

/// Windows has no daemon: `tenon mcp --no-daemon`, `tenon check` and the other commands work.
pub(super) const TARGETS: [Target; 4] = [
    Target { triple: "x86_64-unknown-linux-gnu", npm: ("linux", "x64"), wheel: "x86_64" },
    Target { triple: "aarch64-unknown-linux-gnu", npm: ("linux", "arm64"), wheel: "aarch64" },
    Target { triple: "aarch64-apple-darwin", npm: ("darwin", "arm64"), wheel: "macosx_11_0_arm64" },
    Target { triple: "x86_64-pc-windows-msvc", npm: ("win32", "x64"), wheel: "win_amd64" },
];

impl Target {
    pub(super) fn find(triple: &str) -> Result<&'static Self, Error> {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
        TARGETS.iter().find(|target| target.triple == triple).ok_or_else(|| {
            Error::new(format!("unknown target `{triple}`")).hint(format!("use one of {}", known.join(", ")))
        })
    }

    /// The system that this program runs on.
    pub(super) fn host() -> Result<&'static Self, Error> {
        let system = match std::env::consts::OS {
            "linux" => "unknown-linux-gnu",
            "macos" => "apple-darwin",
            other => other,
        };
        Self::find(&format!("{}-{system}", std::env::consts::ARCH))
    }

    pub(super) fn is_linux(&self) -> bool {
        self.npm.0 == "linux"
    }

    /// The file name of the program.
    pub(super) fn program(&self) -> &'static str {
        if self.npm.0 == "win32" { "tenon.exe" } else { "tenon" }
    }
}

impl Binary {
    /// The wheel's platform tag (PEP 600 for Linux).
    pub(super) fn wheel_platform(&self) -> String {
        match self.glibc {
            Some(version) => format!("manylinux_{}_{}_{}", version.major, version.minor, self.target.wheel),
            None => self.target.wheel.to_owned(),
        }
    }
}
