//! Systems without Landlock: servers run with the rights of the user.

use std::io;

use tenon_servers::confinement::Confinement;

pub(crate) struct Sandbox;

impl Sandbox {
    #[expect(clippy::unnecessary_wraps, reason = "on Linux it can fail")]
    pub(crate) fn prepare(_: &Confinement) -> io::Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "on Linux it does something")]
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        Ok(())
    }
}
