//! Standard output as a thread that writes one piece at a time and tells how far it got.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use bytes::Bytes;

/// Bytes handed to the kernel at once. A pipe reports room for 4096 bytes (PIPE_BUF), so a larger piece would
/// hide the progress of a slow reader.
const PIECE_BYTES: usize = 4096;

/// What the writer tells its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The bytes handed over last are written.
    All,
    /// Nobody holds the other end any more.
    Closed,
}

/// A thread that owns stdout. Bound: one chunk in flight; the queue in front of it belongs to the owner.
#[derive(Debug)]
pub struct Writer {
    chunks: SyncSender<Bytes>,
    written: Arc<AtomicU64>,
}

impl Writer {
    /// Starts the thread; `tell` is called on it.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        sink: impl Write + Send + 'static,
        tell: impl Fn(Written) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (chunks, inbox) = sync_channel(1);
        let written = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&written);
        thread::Builder::new()
            .name("stdout".into())
            .spawn(move || write_all(sink, &inbox, &counter, &tell))?;
        Ok(Self { chunks, written })
    }

    /// Hands over the next chunk; call it once per [`Written::All`].
    ///
    /// # Errors
    /// Gives the chunk back while another is being written, or after [`Written::Closed`].
    pub fn write(&self, chunk: Bytes) -> Result<(), Bytes> {
        self.chunks.try_send(chunk).map_err(|error| match error {
            TrySendError::Full(chunk) | TrySendError::Disconnected(chunk) => chunk,
        })
    }

    /// Bytes written so far, pieces of an unfinished chunk included.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

fn write_all(mut sink: impl Write, inbox: &Receiver<Bytes>, written: &AtomicU64, tell: &impl Fn(Written)) {
    for chunk in inbox {
        for piece in chunk.chunks(PIECE_BYTES) {
            if sink.write_all(piece).is_err() {
                return tell(Written::Closed);
            }
            written.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        if sink.flush().is_err() {
            return tell(Written::Closed);
        }
        tell(Written::All);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn chunks_come_out_whole_and_in_order() {
        let (reader, sink) = std::io::pipe().expect("pipe");
        let (told, tells) = channel();
        let writer =
            Writer::start(sink, move |event| told.send(event).expect("test listens")).expect("thread");
        writer.write(Bytes::from(vec![b'a'; 10_000])).expect("idle");
        assert_eq!(tells.recv(), Ok(Written::All));
        writer.write(Bytes::from_static(b"end")).expect("idle");
        assert_eq!(tells.recv(), Ok(Written::All));
        assert_eq!(writer.written(), 10_003);
        drop(writer);
        let text = std::io::read_to_string(reader).expect("text");
        assert_eq!((text.len(), &text[10_000..]), (10_003, "end"));
    }

    #[test]
    fn a_closed_reader_is_told_once() {
        let (reader, sink) = std::io::pipe().expect("pipe");
        drop(reader);
        let (told, tells) = channel();
        let writer =
            Writer::start(sink, move |event| told.send(event).expect("test listens")).expect("thread");
        writer.write(Bytes::from_static(b"x")).expect("idle");
        assert_eq!(tells.recv(), Ok(Written::Closed));
    }
}
