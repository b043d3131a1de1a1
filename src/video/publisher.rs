//! The streaming threads' side: put a unit or picture into the handoff and wake the video thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossdesk_core::media::TapUnit;
use crossdesk_core::time::Monotonic;
use crossdesk_core::video::{Handoff, cdn1_message_bytes};
use crossdesk_pipelines::clock;
use crossdesk_pipelines::picture::Picture;
use tokio::sync::Notify;

/// Delivers to the video thread from streaming threads without ever waiting for it; clones share one handoff.
#[derive(Clone, Debug, Default)]
pub struct Publisher {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Held for a push or a take only.
    handoff: Mutex<Handoff<Picture>>,
    filled: Notify,
}

impl Publisher {
    /// Publishes one access unit of `h264-annexb/1`; ignored outside a session of that protocol.
    pub fn publish_unit(&self, unit: TapUnit) {
        let wake = self.handoff().push_unit(clock::now(), unit);
        self.wake_if(wake);
    }

    /// Publishes one decoded picture of `nv12/1`, holding a reference to it until a newer one comes; ignored outside
    /// a session of that protocol. A picture over the protocol's size limits is counted and skipped.
    pub fn publish_picture(&self, picture: Picture) {
        let Ok(bytes) = cdn1_message_bytes(picture.size.even()) else {
            self.handoff().skip_oversized();
            return;
        };
        let (wake, replaced) = self.handoff().push_picture(picture, bytes);
        drop(replaced);
        self.wake_if(wake);
    }

    pub(super) fn handoff(&self) -> MutexGuard<'_, Handoff<Picture>> {
        // Every change under this lock leaves a valid handoff, so a panic elsewhere does not spoil it.
        self.shared.handoff.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_unit(&self) -> Option<(TapUnit, Monotonic)> {
        self.handoff().take_unit()
    }

    pub(super) fn take_picture(&self) -> Option<Picture> {
        self.handoff().take_picture()
    }

    /// Returns once something was put into an empty handoff.
    pub(super) async fn filled(&self) {
        self.shared.filled.notified().await;
    }

    fn wake_if(&self, wake: bool) {
        if wake {
            self.shared.filled.notify_one();
        }
    }
}
