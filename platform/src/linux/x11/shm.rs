//! Memory that the X server writes pictures into.

use std::os::fd::OwnedFd;
use std::ptr;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use x11rb::connection::Connection;
use x11rb::protocol::shm::ConnectionExt as _;
use x11rb::protocol::shm::Seg;

use super::Server;
use crate::desktop::DesktopError;

/// A block of memory shared with a server.
pub(super) struct Shared {
    start: *mut u8,
    len: usize,
    seg: Seg,
}

// SAFETY: the block belongs to this value alone, whichever thread holds it.
unsafe impl Send for Shared {}

impl Shared {
    /// `len` bytes that `server` can write; `len` is not zero.
    pub(super) fn new(server: &Server, len: usize) -> Result<Self, DesktopError> {
        let memory =
            |error: rustix::io::Errno| DesktopError::Refused(format!("no memory for pictures: {error}"));
        let file = memfd_create("crossdesk-screen", MemfdFlags::CLOEXEC).map_err(memory)?;
        ftruncate(&file, len as u64).map_err(memory)?;
        let start = map(&file, len).map_err(memory)?;
        let seg = server.connection.generate_id()?;
        // From here on the block is unmapped by Drop, whatever the server says.
        let shared = Self { start, len, seg };
        server.connection.shm_attach_fd(seg, file, false)?.check()?;
        Ok(shared)
    }

    /// What the server calls it.
    pub(super) fn seg(&self) -> Seg {
        self.seg
    }

    /// The bytes; no request that writes into them may be unanswered.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `start` is the address of `len` mapped bytes that live as long as `self`, every value of a byte is
        // valid, and the borrow of `self` keeps other references away. The server is the only other writer; it
        // writes only while it handles a request of ours, and we wait for each answer before we come here.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

fn map(file: &OwnedFd, len: usize) -> rustix::io::Result<*mut u8> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address the kernel chooses touches nothing that exists.
    let start = unsafe { mmap(ptr::null_mut(), len, access, MapFlags::SHARED, file, 0)? };
    Ok(start.cast())
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the block was mapped with this length, and no reference to it outlives `self`.
        // Unmapping what was mapped cannot fail.
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}
