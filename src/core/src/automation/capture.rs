//! Screenshots and previews: who waits for a picture, who is encoded next, and what becomes of the result.
//!
//! One job is encoded at a time. Screenshots go in order of arrival and before every preview. A request that already
//! has a usable picture waits for the encoder without limit of time; `timeout_ms` limits only the wait for a picture.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::ErrorCode;
use crate::time::Monotonic;
use crate::units::{PixelRect, PixelSize};

use super::effect::{CaptureJob, CaptureKind, Effect};
use super::event::{CaptureFailure, CaptureImage, PictureInfo};
use super::observation::View;
use super::reply::{self, Metadata, Unchanged};
use super::request::Screenshot;
use super::session::Session;

/// Most requests waiting; at about 6 ms an image the last one still waits less than 100 ms for the encoder.
const MAX_WAITING: usize = 16;
/// Longest edge of a screenshot when the caller does not say: readable text at a size models are made for.
const DEFAULT_SCREENSHOT_EDGE: u32 = 1280;
/// Longest edge of a preview when the caller does not say: the largest allowed.
const DEFAULT_PREVIEW_EDGE: u32 = 960;
/// Wait for a picture when a screenshot does not say: as long as a picture stays usable.
const DEFAULT_SCREENSHOT_WAIT: Duration = Duration::from_secs(2);
/// Largest PNG of a screenshot (protocol, "Images and observations").
const SCREENSHOT_BYTES: usize = 2 * 1024 * 1024;
/// Largest PNG of a preview (protocol, "Images and observations").
const PREVIEW_BYTES: usize = 256 * 1024;
/// How often an image is made again because the geometry changed meanwhile.
const MAX_REPEATS: u8 = 3;

/// A request that waits for a picture or for the encoder.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    request: u64,
    kind: CaptureKind,
    args: Screenshot,
    deadline: Monotonic,
    /// True when no usable picture was there at the last look.
    lacks_picture: bool,
    repeats: u8,
}

impl Wanted {
    fn accepts(&self, picture: &PictureInfo) -> bool {
        self.args
            .after_frame_id
            .is_none_or(|after| picture.frame_id > after)
    }
}

/// The job the encoder works on.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: u64,
    /// `None` when nobody wants the result any more.
    wanted: Option<Wanted>,
}

/// All captures of a session.
#[derive(Debug, Default)]
pub(super) struct Captures {
    screenshots: VecDeque<Wanted>,
    previews: VecDeque<Wanted>,
    running: Option<Running>,
}

impl Captures {
    /// True while a reply to `request` is owed.
    pub(super) fn owes(&self, request: u64) -> bool {
        let running = self.running.as_ref().and_then(|running| running.wanted.as_ref());
        self.waiting()
            .chain(running)
            .any(|wanted| wanted.request == request)
    }

    fn waiting(&self) -> impl Iterator<Item = &Wanted> {
        self.screenshots.iter().chain(&self.previews)
    }

    /// When the next wait for a picture ends.
    pub(super) fn deadline(&self) -> Option<Monotonic> {
        self.waiting()
            .filter(|wanted| wanted.lacks_picture)
            .map(|wanted| wanted.deadline)
            .min()
    }

    fn queue(&mut self, kind: CaptureKind) -> &mut VecDeque<Wanted> {
        match kind {
            CaptureKind::Screenshot => &mut self.screenshots,
            CaptureKind::Preview => &mut self.previews,
        }
    }

    /// Notes who has a usable picture.
    fn look(&mut self, picture: Option<&PictureInfo>) {
        for wanted in self.screenshots.iter_mut().chain(&mut self.previews) {
            wanted.lacks_picture = !picture.is_some_and(|picture| wanted.accepts(picture));
        }
    }

    /// Removes the request to encode next.
    fn next(&mut self) -> Option<Wanted> {
        [&mut self.screenshots, &mut self.previews]
            .into_iter()
            .find_map(|queue| {
                let at = queue.iter().position(|wanted| !wanted.lacks_picture)?;
                queue.remove(at)
            })
    }

    /// Removes the requests that waited long enough.
    fn expired(&mut self, now: Monotonic) -> Vec<Wanted> {
        let mut gone = Vec::new();
        for queue in [&mut self.screenshots, &mut self.previews] {
            queue.retain(|wanted| {
                let late = wanted.lacks_picture && now >= wanted.deadline;
                if late {
                    gone.push(*wanted);
                }
                !late
            });
        }
        gone
    }

    fn take_waiting(&mut self, request: u64) -> Option<Wanted> {
        [&mut self.screenshots, &mut self.previews]
            .into_iter()
            .find_map(|queue| {
                let at = queue.iter().position(|wanted| wanted.request == request)?;
                queue.remove(at)
            })
    }

    /// Turns the running job's result into waste; returns whose it was.
    fn abandon(&mut self, pick: impl FnOnce(&Wanted) -> bool) -> Option<(u64, Wanted)> {
        let running = self.running.as_mut()?;
        let wanted = running.wanted.take_if(|wanted| pick(wanted))?;
        Some((running.job, wanted))
    }

    /// True when nobody waits for anything.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn is_idle(&self) -> bool {
        self.waiting().next().is_none() && self.running.is_none_or(|running| running.wanted.is_none())
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn check_invariants(&self) {
        // One more than the limit may wait while an image is made again.
        assert!(
            self.waiting().count() <= MAX_WAITING + 1,
            "the capture queue is bounded"
        );
        assert!(
            self.screenshots
                .iter()
                .all(|wanted| wanted.kind == CaptureKind::Screenshot)
        );
        assert!(
            self.previews
                .iter()
                .all(|wanted| wanted.kind == CaptureKind::Preview)
        );
        let idle = self.running.is_none();
        let ready = self.waiting().any(|wanted| !wanted.lacks_picture);
        assert!(!(idle && ready), "the encoder rests while a picture waits for it");
    }
}

impl Session {
    pub(super) fn screenshot(&mut self, now: Monotonic, id: u64, args: Screenshot) {
        self.want_image(now, id, CaptureKind::Screenshot, args);
    }

    pub(super) fn preview(&mut self, now: Monotonic, id: u64, args: Screenshot) {
        self.want_image(now, id, CaptureKind::Preview, args);
    }

    fn want_image(&mut self, now: Monotonic, id: u64, kind: CaptureKind, args: Screenshot) {
        let Some(connection) = self.active() else {
            return self.refuse(id, ErrorCode::NotConnected);
        };
        if args
            .generation
            .is_some_and(|generation| generation != connection.generation)
        {
            return self.refuse(id, ErrorCode::GenerationChanged);
        }
        if self.captures.waiting().count() >= MAX_WAITING {
            return self.refuse(id, ErrorCode::Busy);
        }
        let usual = match kind {
            CaptureKind::Screenshot => DEFAULT_SCREENSHOT_WAIT,
            CaptureKind::Preview => Duration::ZERO,
        };
        let wait = args
            .timeout_ms
            .map_or(usual, |ms| Duration::from_millis(u64::from(ms)));
        self.captures.queue(kind).push_back(Wanted {
            request: id,
            kind,
            args,
            deadline: now + wait,
            lacks_picture: true,
            repeats: 0,
        });
        self.pump_captures(now);
    }

    /// Gives the encoder its next job and answers whoever waited long enough.
    pub(super) fn pump_captures(&mut self, now: Monotonic) {
        let picture = self.fresh_picture(now);
        self.captures.look(picture.as_ref());
        if let Some(picture) = picture {
            while self.captures.running.is_none() {
                let Some(wanted) = self.captures.next() else { break };
                self.start_capture(wanted, picture.size);
            }
        }
        for wanted in self.captures.expired(now) {
            self.answer_expired(now, &wanted);
        }
    }

    fn start_capture(&mut self, wanted: Wanted, size: PixelSize) {
        let region = match wanted.args.region.map(|region| clip(region, size)) {
            Some(None) => return self.refuse(wanted.request, ErrorCode::RegionOutOfBounds),
            Some(clipped) => clipped,
            None => None,
        };
        let (edge, max_bytes) = match wanted.kind {
            CaptureKind::Screenshot => (DEFAULT_SCREENSHOT_EDGE, SCREENSHOT_BYTES),
            CaptureKind::Preview => (DEFAULT_PREVIEW_EDGE, PREVIEW_BYTES),
        };
        let job = self.number();
        self.captures.running = Some(Running {
            job,
            wanted: Some(wanted),
        });
        self.push(Effect::Capture(CaptureJob {
            job,
            kind: wanted.kind,
            region,
            max_edge: wanted.args.max_edge.unwrap_or(edge),
            max_bytes,
        }));
    }

    fn answer_expired(&mut self, now: Monotonic, wanted: &Wanted) {
        let shown = self.active().and_then(|connection| {
            let picture = connection.picture?;
            (wanted.kind == CaptureKind::Preview
                && wanted.args.after_frame_id.is_some()
                && !wanted.accepts(&picture))
            .then_some((connection.generation, picture))
        });
        let Some((generation, picture)) = shown else {
            return self.refuse(wanted.request, ErrorCode::FrameTimeout);
        };
        let unchanged = Unchanged {
            unchanged: true,
            frame_age_ms: age_ms(now, &picture),
            stale: Self::is_stale(now, &picture),
            generation,
            frame_id: picture.frame_id,
        };
        self.answer(wanted.request, &unchanged);
    }

    pub(super) fn capture_done(
        &mut self,
        now: Monotonic,
        job: u64,
        result: Result<CaptureImage, CaptureFailure>,
    ) {
        if self.captures.running.is_none_or(|running| running.job != job) {
            return;
        }
        let wanted = self.captures.running.take().and_then(|running| running.wanted);
        if let Some(wanted) = wanted {
            match result {
                Ok(image) => self.answer_image(now, wanted, &image),
                Err(failure) => self.refuse(wanted.request, failure_code(failure)),
            }
        }
        self.pump_captures(now);
    }

    fn answer_image(&mut self, now: Monotonic, wanted: Wanted, image: &CaptureImage) {
        // The encoder may have taken a picture this machine was not told of yet.
        self.note_picture(image.picture);
        let connection = self.active().expect("captures end with the connection");
        let (generation, display_index) = (connection.generation, connection.display);
        if image.picture.geometry_epoch != connection.geometry_epoch {
            return self.repeat_capture(wanted);
        }
        let max_bytes = match wanted.kind {
            CaptureKind::Screenshot => SCREENSHOT_BYTES,
            CaptureKind::Preview => PREVIEW_BYTES,
        };
        if image.png.len() > max_bytes {
            return self.refuse(wanted.request, ErrorCode::ImageTooLarge);
        }
        let view = View {
            source_size: image.picture.size,
            source_rect: image.source_rect,
            image_size: image.image_size,
        };
        let observation =
            (wanted.kind == CaptureKind::Screenshot).then(|| self.observations.add(now, generation, view));
        let metadata = Metadata {
            generation,
            geometry_epoch: image.picture.geometry_epoch,
            frame_id: image.picture.frame_id,
            display_index,
            source_size: view.source_size,
            source_rect: view.source_rect,
            image_size: view.image_size,
            frame_age_ms: age_ms(now, &image.picture),
            observation_id: observation.as_deref(),
        };
        let line = reply::image(wanted.request, &image.png, &metadata);
        self.answer_with(line);
    }

    /// The image shows a geometry that is gone: make it again, first in its queue.
    fn repeat_capture(&mut self, mut wanted: Wanted) {
        if wanted.repeats == MAX_REPEATS {
            return self.refuse(wanted.request, ErrorCode::CaptureFailed);
        }
        wanted.repeats += 1;
        self.captures.queue(wanted.kind).push_front(wanted);
    }

    /// Ends a capture on request; false when there is none of that id.
    pub(super) fn cancel_capture(&mut self, request: u64) -> bool {
        if self.captures.take_waiting(request).is_some() {
            self.refuse(request, ErrorCode::Cancelled);
            return true;
        }
        let Some((job, _)) = self.captures.abandon(|wanted| wanted.request == request) else {
            return false;
        };
        self.push(Effect::CancelCapture { job });
        self.refuse(request, ErrorCode::Cancelled);
        true
    }

    /// Ends all captures.
    pub(super) fn fail_captures(&mut self, code: ErrorCode) {
        if let Some((job, wanted)) = self.captures.abandon(|_| true) {
            self.push(Effect::CancelCapture { job });
            self.refuse(wanted.request, code);
        }
        let screenshots = std::mem::take(&mut self.captures.screenshots);
        let previews = std::mem::take(&mut self.captures.previews);
        for wanted in screenshots.into_iter().chain(previews) {
            self.refuse(wanted.request, code);
        }
    }
}

/// Milliseconds since the picture's access unit arrived.
pub(super) fn age_ms(now: Monotonic, picture: &PictureInfo) -> u64 {
    u64::try_from(now.since(picture.received).as_millis()).unwrap_or(u64::MAX)
}

/// The part of `region` inside a picture of `size`; `None` when there is none.
fn clip(region: PixelRect, size: PixelSize) -> Option<PixelRect> {
    let width = region.width.min(size.width.checked_sub(region.x)?);
    let height = region.height.min(size.height.checked_sub(region.y)?);
    (width > 0 && height > 0).then_some(PixelRect {
        x: region.x,
        y: region.y,
        width,
        height,
    })
}

const fn failure_code(failure: CaptureFailure) -> ErrorCode {
    match failure {
        CaptureFailure::NoPicture => ErrorCode::FrameTimeout,
        CaptureFailure::RegionOutOfBounds => ErrorCode::RegionOutOfBounds,
        CaptureFailure::TooLarge => ErrorCode::ImageTooLarge,
        CaptureFailure::Failed => ErrorCode::CaptureFailed,
        CaptureFailure::Cancelled => ErrorCode::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_cut_to_the_picture() {
        let size = PixelSize::new(100, 50);
        let rect = |x, y, width, height| PixelRect { x, y, width, height };
        assert_eq!(clip(rect(10, 10, 5, 5), size), Some(rect(10, 10, 5, 5)));
        assert_eq!(clip(rect(90, 40, 50, 50), size), Some(rect(90, 40, 10, 10)));
        assert_eq!(
            clip(rect(0, 0, u32::MAX, u32::MAX), size),
            Some(rect(0, 0, 100, 50))
        );
        assert_eq!(clip(rect(100, 0, 1, 1), size), None);
        assert_eq!(clip(rect(0, u32::MAX, 1, 1), size), None);
    }
}
