//! Viewers that cost as little as a viewer can: a plain socket, the payload read into one small buffer and forgotten,
//! an acknowledgement after each message.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, bail};
use crossdesk_pipelines::clock;

/// The panel the tickets of this bench are for; nothing listens there.
pub const ORIGIN: &str = "http://127.0.0.1:9";

/// Small enough to stay in the processor's cache, large enough for few system calls.
const READ_BYTES: usize = 256 * 1024;

/// Generation, sequence and time end here in both kinds of messages.
const COMMON_HEADER_BYTES: usize = 20;

/// Longest wait for a picture before a viewer counts as broken.
const SILENCE: Duration = Duration::from_secs(10);

/// What all viewers of a set have got so far.
#[derive(Default)]
struct Tally {
    messages: AtomicU64,
}

/// Connected viewers; dropping them closes their sockets.
pub struct Viewers {
    sockets: Vec<TcpStream>,
    threads: Vec<JoinHandle<Vec<u64>>>,
    tallies: Vec<Arc<Tally>>,
    failures: Receiver<anyhow::Error>,
    report: Sender<anyhow::Error>,
}

impl Viewers {
    pub fn new() -> Self {
        let (report, failures) = channel();
        Self {
            sockets: Vec::new(),
            threads: Vec::new(),
            tallies: Vec::new(),
            failures,
            report,
        }
    }

    /// Opens one more, with a ticket that was granted for [`ORIGIN`].
    pub fn open(&mut self, port: u16, ticket: &str) -> anyhow::Result<()> {
        let socket = connect(port, ticket)?;
        self.sockets.push(socket.try_clone()?);
        let tally = Arc::new(Tally::default());
        self.tallies.push(Arc::clone(&tally));
        let report = self.report.clone();
        let body = move || {
            let mut ages = Vec::new();
            if let Err(error) = watch(socket, &tally, &mut ages) {
                // The set is gone when nobody listens; then the socket was closed on purpose.
                let _ = report.send(error);
            }
            ages
        };
        self.threads.push(std::thread::spawn(body));
        Ok(())
    }

    /// Messages all of them have got.
    pub fn messages(&self) -> u64 {
        self.tallies
            .iter()
            .map(|tally| tally.messages.load(Ordering::Relaxed))
            .sum()
    }

    /// Lets time pass; ends early with the failure of a viewer.
    pub fn watch_for(&self, span: Duration) -> anyhow::Result<()> {
        match self.failures.recv_timeout(span) {
            Ok(error) => Err(error.context("a viewer failed")),
            Err(_) => Ok(()),
        }
    }

    /// Waits until each has got `count` messages.
    pub fn wait_for(&self, count: u64) -> anyhow::Result<()> {
        let behind = |tally: &Arc<Tally>| tally.messages.load(Ordering::Relaxed) < count;
        while self.tallies.iter().any(behind) {
            self.watch_for(Duration::from_millis(5))?;
        }
        Ok(())
    }

    /// Closes them; returns for each message of each viewer the microseconds from the timestamp in its header to the
    /// last byte read here.
    pub fn close(mut self) -> Vec<Vec<u64>> {
        self.shut_down();
        let ended = self
            .threads
            .drain(..)
            .map(|thread| thread.join().unwrap_or_default());
        ended.collect()
    }

    fn shut_down(&self) {
        for socket in &self.sockets {
            // It may be closed from the other side already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Viewers {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn connect(port: u16, ticket: &str) -> anyhow::Result<TcpStream> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    write!(
        socket,
        "GET /api/video HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: Y3Jvc3NkZXNrIGJlbmNoIQ==\r\nOrigin: {ORIGIN}\r\n\r\n"
    )?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket
            .read_exact(&mut byte)
            .context("the handshake was not answered")?;
        head.push(byte[0]);
    }
    if !head.starts_with(b"HTTP/1.1 101 ") {
        bail!("the handshake was refused: {}", String::from_utf8_lossy(&head));
    }
    send_text(&mut socket, &format!(r#"{{"ticket":"{ticket}"}}"#))?;
    Ok(socket)
}

/// Client frames are masked; a mask of zeros leaves them readable.
fn send_text(socket: &mut TcpStream, text: &str) -> std::io::Result<()> {
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    debug_assert!(length < 126, "longer texts need another header");
    let mut frame = vec![0x81, 0x80 | length, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    socket.write_all(&frame)
}

/// Reads and acknowledges until the socket ends. It ends without an error when it was shut down here.
fn watch(mut socket: TcpStream, tally: &Tally, ages: &mut Vec<u64>) -> anyhow::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    while let Some(length) = message_length(&mut socket)? {
        let first = length.min(READ_BYTES);
        socket.read_exact(&mut buffer[..first])?;
        let (generation, sequence, time) = common_header(&buffer[..first])?;
        let mut rest = length - first;
        while rest > 0 {
            let part = rest.min(READ_BYTES);
            socket.read_exact(&mut buffer[..part])?;
            rest -= part;
        }
        ages.push(clock::now().as_micros().saturating_sub(time));
        let ack = format!(r#"{{"type":"ack","generation":{generation},"sequence":{sequence}}}"#);
        send_text(&mut socket, &ack)?;
        tally.messages.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The payload length of the next binary message; `None` at the end.
fn message_length(socket: &mut TcpStream) -> anyhow::Result<Option<usize>> {
    let mut start = [0; 2];
    if socket.read_exact(&mut start).is_err() {
        return Ok(None);
    }
    if start[0] == 0x88 {
        return Ok(None);
    }
    if start[0] != 0x82 {
        bail!("not a binary message in one frame: {start:02x?}");
    }
    let length = match start[1] {
        126 => {
            let mut bytes = [0; 2];
            socket.read_exact(&mut bytes)?;
            u64::from(u16::from_be_bytes(bytes))
        }
        127 => {
            let mut bytes = [0; 8];
            socket.read_exact(&mut bytes)?;
            u64::from_be_bytes(bytes)
        }
        short => u64::from(short),
    };
    Ok(Some(usize::try_from(length)?))
}

/// Generation, sequence and timestamp.
fn common_header(message: &[u8]) -> anyhow::Result<(u32, u32, u64)> {
    let header = message
        .get(..COMMON_HEADER_BYTES)
        .context("a message without a header")?;
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let time = (u64::from(word(12)) << 32) | u64::from(word(16));
    Ok((word(4), word(8), time))
}
