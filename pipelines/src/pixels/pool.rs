//! Reused buffers for pictures on their way to viewers.
//!
//! A fresh 12 MB allocation for every 4K picture costs several milliseconds of page faults, many times the packing
//! itself. A buffer taken here comes back by itself when the last clone of its `Bytes` is dropped.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use crossdesk_core::units::PixelSize;

use super::nv12_len;

/// Buffers for NV12 pictures with room for a header in front; clones share the same buffers.
#[derive(Clone, Debug)]
pub struct Nv12Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Most buffers kept while nobody uses them.
    keep: usize,
    idle: Mutex<Idle>,
}

/// Buffers of one length; buffers of other lengths are freed instead of kept.
#[derive(Debug, Default)]
struct Idle {
    length: usize,
    buffers: Vec<Vec<u8>>,
}

impl Nv12Pool {
    /// A pool that keeps at most `keep` unused buffers, all of the length asked for last.
    pub fn new(keep: usize) -> Self {
        let idle = Mutex::new(Idle::default());
        Self {
            shared: Arc::new(Shared { keep, idle }),
        }
    }

    /// A buffer for `header` bytes followed by one NV12 picture of `size` (cut to even).
    ///
    /// Its contents are whatever an earlier picture left there.
    pub fn take(&self, header: usize, size: PixelSize) -> Nv12Buffer {
        let length = header + nv12_len(size);
        let reused = self.shared.lend(length);
        Nv12Buffer {
            header,
            bytes: Pooled {
                bytes: reused.unwrap_or_else(|| vec![0; length]),
                home: Arc::clone(&self.shared),
            },
        }
    }

    /// Frees the unused buffers; buffers still in use come back as before.
    pub fn clear(&self) {
        self.shared.lock().buffers.clear();
    }

    /// How many buffers wait unused.
    pub fn idle(&self) -> usize {
        self.shared.lock().buffers.len()
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Idle> {
        // Every change under this lock leaves a valid list, so a panic elsewhere does not spoil it.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lend(&self, length: usize) -> Option<Vec<u8>> {
        let mut idle = self.lock();
        if idle.length != length {
            idle.length = length;
            idle.buffers.clear();
        }
        idle.buffers.pop()
    }

    fn give_back(&self, buffer: Vec<u8>) {
        let mut idle = self.lock();
        if idle.length == buffer.len() && idle.buffers.len() < self.keep {
            idle.buffers.push(buffer);
        }
    }
}

/// A buffer that is still being written.
#[derive(Debug)]
pub struct Nv12Buffer {
    header: usize,
    bytes: Pooled,
}

impl Nv12Buffer {
    /// The header bytes and the picture bytes.
    pub fn split_mut(&mut self) -> (&mut [u8], &mut [u8]) {
        self.bytes.bytes.split_at_mut(self.header)
    }

    /// The header bytes.
    pub fn header_mut(&mut self) -> &mut [u8] {
        self.split_mut().0
    }

    /// The picture bytes, as long as `nv12_len` says.
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        self.split_mut().1
    }

    /// Header and picture as one immutable message; clones are free and the last one returns the buffer.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self.bytes)
    }
}

#[derive(Debug)]
struct Pooled {
    bytes: Vec<u8>,
    home: Arc<Shared>,
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: PixelSize = PixelSize::new(4, 2);

    #[test]
    fn header_and_picture_become_one_message() {
        let pool = Nv12Pool::new(1);
        let mut buffer = pool.take(3, PixelSize::new(5, 3));
        buffer.header_mut().copy_from_slice(b"abc");
        buffer.pixels_mut().copy_from_slice(b"YYYYYYYYUVUV");
        assert_eq!(&buffer.freeze()[..], b"abcYYYYYYYYUVUV");
    }

    #[test]
    fn a_buffer_comes_back_when_its_last_clone_is_gone() {
        let pool = Nv12Pool::new(2);
        let message = pool.take(32, SIZE).freeze();
        let address = message.as_ptr();
        let slice = message.slice(32..);
        drop(message);
        assert_eq!(pool.idle(), 0);
        drop(slice);
        assert_eq!(pool.idle(), 1);
        assert_eq!(pool.take(32, SIZE).freeze().as_ptr(), address);
    }

    #[test]
    fn an_unfinished_buffer_comes_back_too() {
        let pool = Nv12Pool::new(2);
        drop(pool.take(0, SIZE));
        assert_eq!(pool.idle(), 1);
    }

    #[test]
    fn no_more_than_the_bound_is_kept() {
        let pool = Nv12Pool::new(2);
        let used: Vec<Bytes> = (0..5).map(|_| pool.take(0, SIZE).freeze()).collect();
        drop(used);
        assert_eq!(pool.idle(), 2);
        pool.clear();
        assert_eq!(pool.idle(), 0);
    }

    #[test]
    fn buffers_of_an_earlier_size_are_freed() {
        let pool = Nv12Pool::new(4);
        let (old, older) = (pool.take(0, SIZE), pool.take(0, SIZE));
        drop(older);
        let new = pool.take(0, PixelSize::new(8, 8));
        assert_eq!(pool.idle(), 0);
        drop(old);
        assert_eq!(pool.idle(), 0);
        drop(new);
        assert_eq!(pool.idle(), 1);
    }

    #[test]
    fn a_message_outlives_its_pool() {
        let pool = Nv12Pool::new(1);
        let message = pool.take(0, SIZE).freeze();
        drop(pool);
        assert_eq!(message.len(), 12);
    }
}
