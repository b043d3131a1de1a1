//! Standard output that belongs to a protocol: libraries that print can no longer spoil it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::secret::{Inherited, SecretError};

/// What a program speaking a protocol on its standard output keeps.
#[derive(Debug)]
pub struct ProtocolStdio {
    /// The real standard output, for protocol lines only.
    pub output: File,
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
    Ok(ProtocolStdio { output, password })
}

fn duplicate(fd: impl AsFd) -> io::Result<File> {
    // The lowest number that is not one of the three standard descriptors; closed in child processes.
    let copy: OwnedFd = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
    Ok(File::from(copy))
}
