//! Runs git in the private folder with an empty environment, a time limit and bounded output.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use camino::Utf8PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use super::private_folder::PrivateFolder;
use super::{BlobId, GitError};

/// The longest list of files.
const MAX_OUTPUT_BYTES: u64 = 512 * 1024 * 1024;
/// The most bytes of an error message.
const MAX_ERROR_BYTES: u64 = 16 * 1024;
/// The longest header of an object: id, kind and size.
const MAX_HEADER_BYTES: u64 = 256;

#[derive(Debug)]
pub(super) struct GitCommands {
    program: Utf8PathBuf,
    path: String,
    folder: PrivateFolder,
    time_limit: Duration,
}

impl GitCommands {
    pub(super) fn new(
        program: Utf8PathBuf,
        path: String,
        folder: PrivateFolder,
        time_limit: Duration,
    ) -> Self {
        Self { program, path, folder, time_limit }
    }

    /// The output of a command that reads no input.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let running = async {
            let mut child = self.spawn(arguments, Stdio::null())?;
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let (output, error) =
                tokio::try_join!(read(stdout, MAX_OUTPUT_BYTES), read(stderr, MAX_ERROR_BYTES))
                    .map_err(GitError::Run)?;
            if output.len() as u64 == MAX_OUTPUT_BYTES {
                return Err(GitError::Failed("too many files".to_owned()));
            }
            match child.wait().await.map_err(GitError::Run)?.success() {
                true => Ok(output),
                false => Err(GitError::Failed(first_line(&error))),
            }
        };
        tokio::time::timeout(self.time_limit, running)
            .await
            .unwrap_or(Err(GitError::Timeout(self.time_limit)))
    }

    /// The contents of blobs, in the same order; `None` for one that is missing or too large.
    pub(super) async fn blobs(
        &self,
        ids: &[BlobId],
        max_bytes: usize,
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let mut found = Vec::with_capacity(ids.len());
        let reading = async {
            // A blob that is too large ends its process, so that its content is not unpacked.
            while found.len() < ids.len() {
                let rest = &ids[found.len()..];
                self.read_blobs(rest, max_bytes, &mut found).await?;
            }
            Ok(())
        };
        tokio::time::timeout(self.time_limit, reading)
            .await
            .unwrap_or(Err(GitError::Timeout(self.time_limit)))?;
        Ok(found)
    }

    /// Reads blobs until all are read or one is too large.
    async fn read_blobs(
        &self,
        ids: &[BlobId],
        max_bytes: usize,
        found: &mut Vec<Option<Vec<u8>>>,
    ) -> Result<(), GitError> {
        let mut child = self.spawn(&["cat-file", "--batch"], Stdio::piped())?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(GitError::UnexpectedOutput("cat-file"));
        };
        let request: String = ids.iter().flat_map(|id| [id.0.as_str(), "\n"]).collect();
        let writing = async move {
            // An early end shows in the output.
            let _ = stdin.write_all(request.as_bytes()).await;
        };
        let reading = async {
            let mut stdout = BufReader::new(stdout);
            for _ in ids {
                let (blob, go_on) = read_blob(&mut stdout, max_bytes).await?;
                found.push(blob);
                if !go_on {
                    break;
                }
            }
            Ok(())
        };
        tokio::pin!(writing);
        let done = tokio::select! {
            done = reading => done,
            () = async { (&mut writing).await; std::future::pending().await } => Ok(()),
        };
        match done {
            Err(GitError::UnexpectedOutput(what)) => {
                let error = read(Some(stderr), MAX_ERROR_BYTES).await.map_err(GitError::Run)?;
                let error = first_line(&error);
                Err(if error.is_empty() { GitError::UnexpectedOutput(what) } else { GitError::Failed(error) })
            }
            done => done,
        }
    }

    fn spawn(&self, arguments: &[&str], stdin: Stdio) -> Result<Child, GitError> {
        Command::new(&self.program)
            .args(["--no-replace-objects", "--literal-pathspecs", "--no-optional-locks"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", &self.path)
            .env("LC_ALL", "C")
            .env("HOME", self.folder.path())
            .env("GIT_DIR", self.folder.path())
            .env("GIT_INDEX_FILE", self.folder.index())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_ALLOW_PROTOCOL", "")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(GitError::Run)
    }
}

/// Reads the answer for one object, and whether the output can be read on.
async fn read_blob(
    stdout: &mut (impl AsyncBufReadExt + Unpin),
    max_bytes: usize,
) -> Result<(Option<Vec<u8>>, bool), GitError> {
    let unexpected = || GitError::UnexpectedOutput("cat-file");
    let mut header = Vec::new();
    stdout.take(MAX_HEADER_BYTES).read_until(b'\n', &mut header).await.map_err(GitError::Run)?;
    let header = std::str::from_utf8(&header).ok().and_then(|line| line.strip_suffix('\n'));
    let header = header.ok_or_else(unexpected)?;
    if header.ends_with(" missing") {
        return Ok((None, true));
    }
    let mut words = header.split(' ').skip(1);
    let (kind, size) = (words.next(), words.next().and_then(|size| size.parse::<usize>().ok()));
    let (Some("blob"), Some(size)) = (kind, size) else {
        return if size.is_some() { Ok((None, false)) } else { Err(unexpected()) };
    };
    if size > max_bytes {
        return Ok((None, false));
    }
    let mut blob = vec![0; size + 1];
    stdout.read_exact(&mut blob).await.map_err(|_| unexpected())?;
    match blob.pop() {
        Some(b'\n') => Ok((Some(blob), true)),
        _ => Err(unexpected()),
    }
}

async fn read(from: Option<impl AsyncRead + Unpin>, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(max_bytes).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn first_line(error: &[u8]) -> String {
    String::from_utf8_lossy(error).lines().next().unwrap_or_default().to_owned()
}
