//! Has the kernel enforce what a server's process may do: Landlock for files, seccomp for sockets.
//!
//! Invariants:
//! - Everything that allocates happens in [`Sandbox::prepare`], before the fork; [`Sandbox::enter`] makes two system calls.
//! - A restriction cannot be lifted, and every child of the server inherits it.
//! - Where the kernel knows Landlock, a server that cannot be confined does not start.

use std::collections::BTreeMap;
use std::io;

use landlock::{
    Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope, path_beneath_rules,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use tenon_servers::confinement::{Confinement, KernelSupport, LANDLOCK, Sockets};

/// The restrictions of one process, ready to be entered.
pub(crate) struct Sandbox {
    files: Option<RulesetCreated>,
    sockets: BpfProgram,
}

impl Sandbox {
    pub(crate) fn prepare(confinement: &Confinement) -> io::Result<Self> {
        let files = match KernelSupport::now() {
            KernelSupport::None => None,
            KernelSupport::Full | KernelSupport::Partial => {
                Some(files(confinement).map_err(io::Error::other)?)
            }
        };
        Ok(Self { files, sockets: sockets(confinement.sockets).map_err(io::Error::other)? })
    }

    /// Restricts the calling thread. Called between fork and exec, so it does not allocate.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        if let Some(files) = self.files.take() {
            files.restrict_self().map_err(|_| os_error())?;
        }
        match self.sockets.is_empty() {
            true => Ok(()),
            false => seccompiler::apply_filter(&self.sockets).map_err(|_| os_error()),
        }
    }
}

/// A fixed number, since converting the error would allocate.
fn os_error() -> io::Error {
    io::Error::from_raw_os_error(libc::EPERM)
}

fn files(confinement: &Confinement) -> Result<RulesetCreated, landlock::RulesetError> {
    let handled = match confinement.reads {
        Some(_) => AccessFs::from_all(LANDLOCK),
        None => AccessFs::from_write(LANDLOCK),
    };
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled)?
        .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    let reads = confinement.reads.iter().flatten();
    ruleset
        .add_rules(path_beneath_rules(reads, AccessFs::from_read(LANDLOCK)))?
        .add_rules(path_beneath_rules(&confinement.writes, handled))
}

/// Rejects the system calls that open or connect sockets. Empty on architectures that the filter's compiler does not know.
fn sockets(allowed: Sockets) -> Result<BpfProgram, seccompiler::Error> {
    let Ok(architecture) = std::env::consts::ARCH.try_into() else {
        return Ok(BpfProgram::new());
    };
    // `io_uring` opens sockets without these calls.
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::from([(libc::SYS_io_uring_setup, Vec::new())]);
    match allowed {
        // Pairs of connected sockets, as between Node.js processes, need neither.
        Sockets::None => rules.extend([(libc::SYS_socket, Vec::new()), (libc::SYS_connect, Vec::new())]),
        Sockets::Unix => {
            let family = u64::from(libc::AF_UNIX.unsigned_abs());
            let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)?;
            rules.insert(libc::SYS_socket, vec![SeccompRule::new(vec![other])?]);
        }
    }
    let rejected = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, rejected, architecture)?;
    Ok(filter.try_into()?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use camino::{Utf8Path, Utf8PathBuf};

    use super::*;
    use crate::process::{ProcessGroup, spawn};

    struct Folders {
        _folder: tempfile::TempDir,
        private: Utf8PathBuf,
        outside: Utf8PathBuf,
    }

    fn folders() -> Folders {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let (private, outside) = (path.join("private"), path.join("outside"));
        fs::create_dir(&private).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        Folders { private, outside, _folder: folder }
    }

    /// The exit code of a shell script in a sandbox.
    async fn run(confinement: Confinement, script: &str) -> String {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        let child = spawn(command, ProcessGroup::Own, Some(&confinement)).await.unwrap();
        child.handle.ended().await.to_string()
    }

    fn system() -> Vec<Utf8PathBuf> {
        ["/usr", "/bin", "/lib", "/lib64", "/etc", "/dev", "/proc"].map(Utf8PathBuf::from).to_vec()
    }

    #[tokio::test]
    async fn writes_outside_are_rejected_and_private_ones_succeed() {
        if KernelSupport::now() != KernelSupport::Full {
            return;
        }
        for reads in [None, Some(system())] {
            let Folders { private, outside, _folder } = folders();
            let confinement = Confinement {
                writes: vec![private.clone(), "/dev/null".into()],
                private: private.clone(),
                reads,
                sockets: Sockets::None,
            };
            let script = format!(
                "echo x > {private}/a && mv {private}/a {private}/b && echo x > /dev/null || exit 1
                 for change in 'echo x > {outside}/new' ': > {outside}/kept' 'rm {outside}/kept' 'mkdir {outside}/d' \
                     'ln -s / {outside}/l' 'mv {private}/b {outside}/b' 'truncate -s 0 {outside}/kept'; do
                     if sh -c \"$change\" 2>/dev/null; then echo \"$change\" >&2; exit 2; fi
                 done"
            );
            assert_eq!(run(confinement, &script).await, "exit code 0");
            assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        }
    }

    #[tokio::test]
    async fn only_listed_folders_are_readable() {
        if KernelSupport::now() == KernelSupport::None {
            return;
        }
        let Folders { private, outside, _folder } = folders();
        let mut reads = system();
        reads.push(private.clone());
        let writes = vec![private.clone()];
        fs::write(private.join("own"), "").unwrap();
        let script = format!(
            "cat {private}/own || exit 1; cat {outside}/kept 2>/dev/null && exit 2; ls {outside} 2>/dev/null && exit 3; exit 0"
        );
        let confinement = Confinement { private, reads: Some(reads), writes, sockets: Sockets::None };
        assert_eq!(run(confinement, &script).await, "exit code 0");
    }

    #[tokio::test]
    async fn sockets_are_rejected_except_unix_ones_after_trust() {
        let script = |families: &str| {
            format!(
                "import socket, sys
socket.socketpair()
for family in [{families}]:
    try:
        socket.socket(family, socket.SOCK_STREAM)
        sys.exit(2)
    except PermissionError:
        pass
"
            )
        };
        let Folders { private, _folder, .. } = folders();
        let confinement = |sockets: Sockets| Confinement {
            private: private.clone(),
            reads: None,
            writes: Vec::new(),
            sockets,
        };
        let inet = "socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK";
        for (allowed, families) in
            [(Sockets::None, format!("{inet}, socket.AF_UNIX")), (Sockets::Unix, inet.to_owned())]
        {
            let program = private.join("connect.py");
            fs::write(&program, script(&families)).unwrap();
            let code = run(confinement(allowed), &format!("python3 {program}")).await;
            assert_eq!(code, "exit code 0", "{allowed:?}");
        }
    }
}
