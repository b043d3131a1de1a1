//! Descriptors a parent hands down: standard output that belongs to a protocol, so that libraries that print can no
//! longer spoil it, and reading and writing that cope with how the parent left them.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::secret::{Inherited, SecretError};

/// Most bytes that a pipe which reports room is sure to take (`PIPE_BUF`).
const PIECE_BYTES: usize = 4096;

/// What a program speaking a protocol on its standard output keeps.
#[derive(Debug)]
pub struct ProtocolStdio {
    /// The real standard output, for protocol lines only.
    pub output: Waiting<File>,
    /// The descriptor the password comes in on, when one was named.
    pub password: Option<Result<Inherited, SecretError>>,
}

/// Claims the password descriptor and then moves standard output out of everybody's reach.
///
/// Afterwards descriptor 1 is standard error, so whatever a library prints ends up there. Call it before
/// anything opens a descriptor: a password descriptor that the parent forgot to open must be found closed,
/// rather than be mistaken for one that this process opened under the same number.
///
/// # Errors
/// When descriptors cannot be duplicated.
pub fn take_over(password_fd: Option<i32>) -> io::Result<ProtocolStdio> {
    let password = password_fd.map(Inherited::claim);
    let output = duplicate(io::stdout().as_fd())?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(ProtocolStdio {
        output: Waiting(output),
        password,
    })
}

fn duplicate(fd: impl AsFd) -> io::Result<File> {
    // The lowest number that is not one of the three standard descriptors; closed in child processes.
    let copy: OwnedFd = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
    Ok(File::from(copy))
}

/// A stream whose reads and writes wait, though its parent may have left the descriptor in non-blocking mode. The mode
/// itself is left alone: it is shared with whoever else has the descriptor.
#[derive(Debug)]
pub struct Waiting<T>(pub T);

impl<T: Read + AsFd> Read for Waiting<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll(self.0.as_fd(), PollFlags::IN, None)?;
                }
                result => return result,
            }
        }
    }
}

impl<T: Write + AsFd> Write for Waiting<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll(self.0.as_fd(), PollFlags::OUT, None)?;
                }
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes to a descriptor that its reader may have forgotten; gives up when it has no room for `patience`.
///
/// # Errors
/// `TimedOut` when only a part was written, possibly nothing; else what the system says.
pub fn write_within(fd: impl AsFd, bytes: &[u8], patience: Duration) -> io::Result<()> {
    let fd = fd.as_fd();
    for mut piece in bytes.chunks(PIECE_BYTES) {
        while !piece.is_empty() {
            if !poll(fd, PollFlags::OUT, Some(patience))? {
                return Err(ErrorKind::TimedOut.into());
            }
            match rustix::io::write(fd, piece) {
                Ok(count) => piece = &piece[count..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(())
}

/// Waits until `fd` is ready or broken; false when it is neither in time. A signal starts the wait anew.
fn poll(fd: BorrowedFd<'_>, what: PollFlags, patience: Option<Duration>) -> io::Result<bool> {
    let limit = patience.and_then(|patience| Timespec::try_from(patience).ok());
    loop {
        match rustix::event::poll(&mut [PollFd::new(&fd, what)], limit.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::OFlags;

    use super::*;

    #[test]
    fn a_non_blocking_pipe_is_waited_for_in_both_directions() {
        let (reader, writer) = io::pipe().expect("pipes are available");
        for end in [reader.as_fd(), writer.as_fd()] {
            rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK).expect("a pipe can be non-blocking");
        }
        // More than a pipe holds, so the writer waits for the reader and the reader for the writer.
        let sent: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
        let expected = sent.clone();
        let writing = std::thread::spawn(move || Waiting(writer).write_all(&sent));
        let mut got = Vec::new();
        Waiting(reader).read_to_end(&mut got).expect("it ends");
        writing.join().expect("no panic").expect("all is written");
        assert!(got == expected);
    }

    #[test]
    fn a_full_pipe_is_given_up_and_an_empty_one_is_written() {
        let (mut reader, writer) = io::pipe().expect("pipes are available");
        let endless = vec![b'x'; 1 << 20];
        let given_up = write_within(&writer, &endless, Duration::ZERO);
        assert_eq!(given_up.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
        assert!(write_within(&writer, b"more", Duration::from_millis(1)).is_err());
        let mut room = vec![0; 1 << 20];
        let taken = reader.read(&mut room).expect("something is there");
        assert!(taken > 0);
        assert!(write_within(&writer, b"line", Duration::ZERO).is_ok());
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error_and_no_wait() {
        let (reader, writer) = io::pipe().expect("pipes are available");
        drop(reader);
        let broken = write_within(&writer, b"line", Duration::from_secs(60));
        assert_eq!(broken.map_err(|error| error.kind()), Err(ErrorKind::BrokenPipe));
    }
}
