//! A small file system, for tests of a full disk.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A small tmpfs mount, unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    mount: PathBuf,
    _folder: TempDir,
}

impl SmallDisk {
    /// Mounts `kib` KiB of memory. `None` where mounting is not allowed (not root, or some containers); the test must then
    /// use another full disk, such as `/dev/full`.
    pub fn mount(kib: u32) -> Option<Self> {
        let folder =
            tempfile::Builder::new().prefix("tn").tempdir_in("/tmp").expect("/tmp can be written to");
        let mount = folder.path().join("disk");
        fs::create_dir(&mount).expect("a new folder is empty");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={kib}k,mode=0777"), "tmpfs"]).arg(&mount);
        let mounted = command.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self { mount, _folder: folder })
    }

    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// Fills the disk with one file; removing that file frees the space.
    pub fn fill(&self) -> PathBuf {
        let path = self.mount.join("filler");
        let mut file = File::create(&path).expect("a small disk has room for a name");
        for chunk in [4096, 1] {
            let bytes = vec![0; chunk];
            loop {
                match file.write_all(&bytes) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("cannot fill {}: {error}", path.display()),
                }
            }
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy unmount, because a process may still have a file open.
        let _ = Command::new("umount").arg("-l").arg(&self.mount).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_disk_rejects_writes() {
        let Some(disk) = SmallDisk::mount(64) else { return };
        let filler = disk.fill();
        let full = fs::write(disk.path().join("more"), [0; 4096]).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        fs::remove_file(filler).unwrap();
        fs::write(disk.path().join("more"), [0; 4096]).unwrap();
    }
}
