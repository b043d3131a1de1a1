//! A password handed down on an inherited descriptor: read once, bounded, wiped after use.
#![expect(unsafe_code, reason = "an inherited descriptor is known by its number only")]

use std::fmt;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Longest password accepted, in bytes. Passwords are typed by people; more is a wrong descriptor, and an
/// endless one must not fill the memory.
pub const MAX_SECRET_BYTES: usize = 4096;

/// Why no password could be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretError {
    /// The parent did not open the descriptor.
    NotOpen(i32),
    /// The descriptor is open for writing only, or is a directory.
    NotReadable(i32),
    /// It ended before the first byte of a password.
    Empty,
    /// More than [`MAX_SECRET_BYTES`] came without a newline.
    TooLong,
    /// It is not UTF-8.
    NotText,
    /// The system refused the read, with its reason.
    Read(std::io::ErrorKind),
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen(fd) => write!(
                f,
                "descriptor {fd} is not open; the parent has to open it for reading and let it be inherited"
            ),
            Self::NotReadable(fd) => {
                write!(
                    f,
                    "descriptor {fd} cannot be read; hand down the reading end of a pipe"
                )
            }
            Self::Empty => f.write_str("the password descriptor ended without a password"),
            Self::TooLong => write!(f, "the password is longer than {MAX_SECRET_BYTES} bytes"),
            Self::NotText => f.write_str("the password is not UTF-8"),
            Self::Read(kind) => write!(f, "the password cannot be read: {kind}"),
        }
    }
}

impl std::error::Error for SecretError {}

/// A password; never printed, wiped when dropped.
pub struct Secret {
    // One allocation for its whole life, so that growing leaves no copies behind.
    bytes: Box<[u8; MAX_SECRET_BYTES]>,
    len: usize,
}

impl Secret {
    fn empty() -> Self {
        Self {
            bytes: Box::new([0; MAX_SECRET_BYTES]),
            len: 0,
        }
    }

    /// The password itself. Borrow it for the moment it is used and do not keep a copy.
    pub fn expose(&self) -> &str {
        // `Inherited::read` checked it; nothing changes it afterwards.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.fill(0);
        // Keeps the optimiser from calling the wipe dead.
        std::hint::black_box(&self.bytes);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A readable descriptor taken over from the parent process.
#[derive(Debug)]
pub struct Inherited {
    fd: OwnedFd,
}

impl Inherited {
    /// Takes over descriptor `number`, which the parent opened for this process.
    ///
    /// Call it before this process opens anything itself; see [`stdio::take_over`](crate::stdio::take_over).
    ///
    /// # Errors
    /// When it is a standard descriptor, not open, or not readable.
    pub fn claim(number: i32) -> Result<Self, SecretError> {
        if number < 3 {
            return Err(SecretError::NotReadable(number));
        }
        // SAFETY: borrowed for one query that answers EBADF when the number is not open.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let flags = rustix::fs::fcntl_getfl(fd).map_err(|_| SecretError::NotOpen(number))?;
        if flags & OFlags::RWMODE == OFlags::WRONLY {
            return Err(SecretError::NotReadable(number));
        }
        // SAFETY: it is open, was opened by the parent for this use, and nothing else in this process owns it
        // because this runs before the process opens descriptors of its own.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        // Child processes have no business with it; a refusal here costs nothing else.
        let _ = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC);
        Ok(Self { fd })
    }

    /// Waits for the password and closes the descriptor. Blocks until the parent has written it, so call it on
    /// a thread of its own when something else must go on.
    ///
    /// The password ends before the first newline (or carriage return and newline), or where the input ends.
    ///
    /// # Errors
    /// When there is no password to be had; see [`SecretError`].
    pub fn read(self) -> Result<Secret, SecretError> {
        let mut secret = Secret::empty();
        let end = loop {
            let room = &mut secret.bytes[secret.len..];
            if room.is_empty() {
                return Err(SecretError::TooLong);
            }
            let fresh = secret.len;
            match rustix::io::read(&self.fd, room) {
                Ok(0) => break secret.len,
                Ok(count) => secret.len += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait()?,
                Err(Errno::ISDIR) => return Err(SecretError::Read(std::io::ErrorKind::IsADirectory)),
                Err(errno) => return Err(SecretError::Read(errno.kind())),
            }
            if let Some(newline) = secret.bytes[fresh..secret.len].iter().position(|&b| b == b'\n') {
                break fresh + newline;
            }
        };
        secret.len = end;
        if secret.bytes[..end].ends_with(b"\r") {
            secret.len -= 1;
        }
        check(secret)
    }

    /// Waits until a descriptor that was left in non-blocking mode has something to read.
    fn wait(&self) -> Result<(), SecretError> {
        let mut poll = [PollFd::new(&self.fd, PollFlags::IN)];
        match rustix::event::poll(&mut poll, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(SecretError::Read(errno.kind())),
        }
    }
}

fn check(secret: Secret) -> Result<Secret, SecretError> {
    if secret.len == 0 {
        return Err(SecretError::Empty);
    }
    if std::str::from_utf8(&secret.bytes[..secret.len]).is_err() {
        return Err(SecretError::NotText);
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claimed descriptor from which `written` can be read, then its end.
    fn inherited(written: &[u8]) -> Inherited {
        let (reader, writer) = rustix::pipe::pipe().expect("pipes are available");
        rustix::io::write(&writer, written).expect("a pipe takes a few bytes");
        Inherited { fd: reader }
    }

    #[test]
    fn the_password_ends_before_the_newline() {
        let secret = inherited(b"pass word\nrest")
            .read()
            .expect("a password was written");
        assert_eq!(secret.expose(), "pass word");
    }

    #[test]
    fn the_end_of_input_ends_it_too() {
        assert_eq!(
            inherited("pä55".as_bytes()).read().expect("written").expose(),
            "pä55"
        );
    }

    #[test]
    fn a_carriage_return_before_the_newline_is_not_part_of_it() {
        assert_eq!(inherited(b"abc\r\n").read().expect("written").expose(), "abc");
    }

    #[test]
    fn nothing_and_an_empty_line_are_no_password() {
        assert_eq!(inherited(b"").read().err(), Some(SecretError::Empty));
        assert_eq!(inherited(b"\n").read().err(), Some(SecretError::Empty));
    }

    #[test]
    fn an_endless_password_is_refused() {
        let long = vec![b'x'; MAX_SECRET_BYTES];
        assert_eq!(inherited(&long).read().err(), Some(SecretError::TooLong));
        let mut fits = vec![b'x'; MAX_SECRET_BYTES - 1];
        fits.push(b'\n');
        assert!(inherited(&fits).read().is_ok());
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(inherited(b"\xff\n").read().err(), Some(SecretError::NotText));
    }

    #[test]
    fn a_non_blocking_descriptor_is_waited_for() {
        let (reader, writer) = rustix::pipe::pipe().expect("pipes are available");
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK).expect("a pipe can be non-blocking");
        let waiting = std::thread::spawn(|| Inherited { fd: reader }.read());
        rustix::io::write(&writer, b"late\n").expect("a pipe takes a few bytes");
        let secret = waiting.join().expect("no panic").expect("a password was written");
        assert_eq!(secret.expose(), "late");
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_named() {
        // Far above anything a test process opens.
        assert_eq!(Inherited::claim(60_000).err(), Some(SecretError::NotOpen(60_000)));
        assert_eq!(Inherited::claim(1).err(), Some(SecretError::NotReadable(1)));
    }

    #[test]
    fn neither_debug_output_nor_errors_show_it() {
        let secret = inherited(b"hunter2\n").read().expect("written");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
