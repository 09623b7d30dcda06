//! The HTTP port of a workspace, kept between runs so that the addresses in agents' configurations stay valid.

use camino::Utf8PathBuf;
use tenon_contract::id::sha256_hex;

use crate::workspace::Workspace;

/// The file with the port.
pub(crate) struct PortMemory(Utf8PathBuf);

impl PortMemory {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        Self(workspace.dirs().ports().join(&sha256_hex(workspace.root().as_str())[..16]))
    }

    /// The port of the console, which is open longer than that of `tenon serve --http`.
    pub(crate) fn of_console(workspace: &Workspace) -> Self {
        let Self(path) = Self::of(workspace);
        Self(Utf8PathBuf::from(format!("{path}-console")))
    }

    pub(crate) fn read(&self) -> Option<u16> {
        std::fs::read_to_string(&self.0).ok()?.trim().parse().ok().filter(|port| *port != 0)
    }

    /// A port that cannot be kept is chosen again next time.
    pub(crate) fn write(&self, port: u16) {
        let written = self.0.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = written.and_then(|()| std::fs::write(&self.0, format!("{port}\n"))) {
            tracing::warn!(%error, "cannot keep the HTTP port");
        }
    }
}
