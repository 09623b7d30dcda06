//! Whether a running process was started from an installed folder.

use camino::Utf8Path;

/// Whether the command line of a process names a file in the folder. npm's and pip's programs are scripts, so the program
/// of the process is their interpreter.
#[cfg(target_os = "linux")]
pub(super) fn is_in_use(folder: &Utf8Path) -> bool {
    let inside = format!("{folder}/");
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    processes.flatten().any(|process| {
        let is_process = process.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        is_process
            && std::fs::read(process.path().join("cmdline"))
                .is_ok_and(|line| line.windows(inside.len()).any(|part| part == inside.as_bytes()))
    })
}

/// Not known on other systems, so old versions stay until they are removed by name.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_in_use(_folder: &Utf8Path) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn folder_on_a_command_line_is_in_use() {
        let this = std::env::current_exe().unwrap();
        let folder = Utf8Path::from_path(this.parent().unwrap()).unwrap();
        assert!(is_in_use(folder));
        assert!(!is_in_use(&folder.join("no-such-folder")));
    }
}
