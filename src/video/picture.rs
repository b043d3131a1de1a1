//! A decoded picture becomes the samples of an `nv12/1` message: one pass, into a buffer used before.

use crossdesk_core::video::Nv12Picture;
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::pixels::{Nv12Pool, pack_nv12};

/// Unused buffers kept. With one viewer at most two messages exist: the one being sent and the newest; each further
/// viewer can hold back one more, which is then allocated anew.
const IDLE_BUFFERS: usize = 3;

/// Packs pictures into pooled buffers.
pub(super) struct Packer {
    pool: Nv12Pool,
}

impl Packer {
    pub(super) fn new() -> Self {
        Self {
            pool: Nv12Pool::new(IDLE_BUFFERS),
        }
    }

    /// `None` when the decoder's memory cannot be read; the picture is skipped then.
    pub(super) fn pack(&self, picture: &Picture) -> Option<Nv12Picture> {
        let size = picture.size.even();
        let mut buffer = self.pool.take(0, size);
        let frame = &picture.frame;
        frame
            .map(&mut |planes| pack_nv12(&planes, size, picture.color, buffer.pixels_mut()))
            .ok()?;
        Some(Nv12Picture {
            size,
            sequence: picture.sequence,
            received: picture.received,
            decoded: picture.decoded,
            samples: buffer.freeze(),
        })
    }

    /// Frees the buffers: their size belongs to a session that has ended.
    pub(super) fn clear(&self) {
        self.pool.clear();
    }
}
