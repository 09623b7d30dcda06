//! Echo servers over the same transports as the product: they show what the transport itself costs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

/// Echoes bytes over a unix socket, on threads that end with this process.
pub(crate) fn unix_socket(path: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut buffer = [0; 64 * 1024];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(())
}

/// Passes bytes between stdin, stdout and a unix socket, as the bridge does.
pub(crate) fn relay(socket: &Path) -> io::Result<()> {
    let mut outgoing = UnixStream::connect(socket)?;
    let mut incoming = outgoing.try_clone()?;
    let returning = thread::spawn(move || pump(&mut incoming, &mut io::stdout()));
    pump(&mut io::stdin(), &mut outgoing)?;
    outgoing.shutdown(std::net::Shutdown::Write)?;
    returning.join().expect("pumping does not panic")
}

fn pump(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..count])?;
        to.flush()?;
    }
}

/// Answers each HTTP request with the request's body, on threads that end with this process.
pub(crate) fn http() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client reports a broken connection.
            thread::spawn(move || answer_all(stream));
        }
    });
    Ok(address)
}

fn answer_all(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        let mut answer = head.into_bytes();
        stream.by_ref().take(length).read_to_end(&mut answer)?;
        stream.get_mut().write_all(&answer)?;
    }
}
