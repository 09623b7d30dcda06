//! Unix: a client's way to its daemon.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream as BlockingStream;
use std::process::Command;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::UnixStream;

use super::DaemonError;
use super::folder::{Place, own_uid};
use super::hello::{self, Hello, ReadLineError, RefusalCode, Reply, Welcome};
use super::lock::Lock;
use super::spawn;

/// How long other clients may take to start the daemon before this one gives up on them.
const START_LOCK_PATIENCE: Duration = Duration::from_secs(40);

/// How often a daemon may leave just when we come.
const ATTEMPTS: usize = 5;

/// An open connection, past its first two lines.
#[derive(Debug)]
pub struct Connection {
    pub stream: BufReader<UnixStream>,
    pub welcome: Welcome,
}

impl Connection {
    /// The bytes that came with the welcome, and the stream after them, for use without a runtime.
    pub fn into_blocking(self) -> std::io::Result<(Vec<u8>, BlockingStream)> {
        let early = self.stream.buffer().to_vec();
        let stream = self.stream.into_inner().into_std()?;
        stream.set_nonblocking(false)?;
        Ok((early, stream))
    }

    /// Waits until the daemon closes the connection.
    pub async fn closed(mut self) -> std::io::Result<()> {
        tokio::io::copy_buf(&mut self.stream, &mut tokio::io::sink()).await.map(drop)
    }
}

/// How to start a daemon.
pub struct Launch {
    pub program: Command,
    pub environment: BTreeMap<String, String>,
}

/// Connects to a daemon that runs.
pub async fn connect(place: &Place, hello: &Hello) -> Result<Connection, DaemonError> {
    for _ in 0..ATTEMPTS {
        match attempt(place, hello).await? {
            Attempt::Connected(connection) => return Ok(*connection),
            Attempt::Nobody => return Err(DaemonError::NotRunning),
            Attempt::Leaving => {}
        }
    }
    Err(DaemonError::NotRunning)
}

/// Connects to the daemon, starting it if need be. `launch` is asked at most once for each start.
pub async fn connect_or_start(
    place: &Place,
    hello: &Hello,
    mut launch: impl FnMut() -> Result<Launch, DaemonError>,
) -> Result<Connection, DaemonError> {
    for _ in 0..ATTEMPTS {
        if let Attempt::Connected(connection) = attempt(place, hello).await? {
            return Ok(*connection);
        }
        let locked = Lock::take(&place.start_lock(), START_LOCK_PATIENCE).await?;
        let _starting = locked.ok_or(DaemonError::Locked { seconds: START_LOCK_PATIENCE.as_secs() })?;
        match attempt(place, hello).await? {
            Attempt::Connected(connection) => return Ok(*connection),
            Attempt::Nobody | Attempt::Leaving => {
                let Launch { program, environment } = launch()?;
                spawn::start(program, environment).await?;
            }
        }
        if let Attempt::Connected(connection) = attempt(place, hello).await? {
            return Ok(*connection);
        }
    }
    Err(DaemonError::Start("it leaves as soon as it is there".to_owned()))
}

enum Attempt {
    Connected(Box<Connection>),
    Nobody,
    /// There was a daemon, and it has gone or is going.
    Leaving,
}

async fn attempt(place: &Place, hello: &Hello) -> Result<Attempt, DaemonError> {
    let socket = place.socket();
    let stream = match UnixStream::connect(&socket).await {
        Ok(stream) => stream,
        Err(error) => {
            use std::io::ErrorKind::{ConnectionRefused, NotFound};
            return match error.kind() {
                ConnectionRefused | NotFound => Ok(Attempt::Nobody),
                _ => Err(error.into()),
            };
        }
    };
    let peer = stream.peer_cred()?;
    if peer.uid() != own_uid() {
        return Err(DaemonError::Foreign { socket });
    }
    let mut stream = BufReader::new(stream);
    // A daemon that ends at this moment breaks the pipe or closes it.
    if hello::write_line(&mut stream, hello).await.is_err() {
        return Ok(Attempt::Leaving);
    }
    match hello::read_line::<Reply>(&mut stream).await {
        Ok(Reply::Welcome(welcome)) => Ok(Attempt::Connected(Box::new(Connection { stream, welcome }))),
        Ok(Reply::Refused(refusal)) if refusal.code == RefusalCode::Leaving => Ok(Attempt::Leaving),
        Ok(Reply::Refused(refusal)) => Err(DaemonError::Refused(refusal)),
        Err(ReadLineError::Closed | ReadLineError::Io(_)) => Ok(Attempt::Leaving),
        Err(ReadLineError::Malformed) => Err(DaemonError::Unintelligible),
        Err(ReadLineError::Late) => {
            Err(DaemonError::Silent { seconds: hello::DEADLINE.as_secs(), pid: peer.pid() })
        }
    }
}
