//! Captures of a screen that tests paint.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crossdesk_core::h264::Conditioner;
use crossdesk_core::screen::{ScreenError, ScreenPixels, Waker};
use crossdesk_core::units::PixelRect;

use super::*;
use crate::capture::{CaptureEvent, CapturedUnit};
use crate::plan::capture::Profile;

/// Nothing takes this long; a test that waits for it fails.
const LONG: Duration = Duration::from_secs(30);

/// One brightness all over; a wish for another comes over a channel, which is also how the wait ends.
struct Painted {
    size: PixelSize,
    news: Receiver<Option<Change>>,
    brush: Brush,
    shade: u8,
}

#[derive(Clone, Copy)]
enum Change {
    Shade(u8),
    Size(PixelSize),
    Gone,
}

#[derive(Clone)]
struct Brush(SyncSender<Option<Change>>);

impl Brush {
    fn paint(&self, change: Change) {
        self.0.send(Some(change)).expect("a screen that is watched");
    }
}

impl Waker for Brush {
    fn wake(&self) {
        // Full means that the screen is awake.
        let _ = self.0.try_send(None);
    }
}

impl Screen for Painted {
    fn size(&self) -> PixelSize {
        self.size
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ScreenError> {
        match self.news.recv_timeout(timeout) {
            Ok(Some(Change::Shade(shade))) => self.shade = shade,
            Ok(Some(Change::Size(size))) => self.size = size,
            Ok(Some(Change::Gone)) => return Err(ScreenError::ServerGone("it ended".to_owned())),
            Ok(None) | Err(_) => return Ok(false),
        }
        Ok(true)
    }

    fn grab(&mut self, read: &mut dyn FnMut(ScreenPixels<'_>, &[PixelRect])) -> Result<(), ScreenError> {
        let stride = self.size.width as usize * 4;
        let data = vec![self.shade; stride * self.size.height as usize];
        let size = self.size;
        let pixels = ScreenPixels {
            data: &data,
            stride,
            size,
        };
        read(pixels, &[PixelRect::whole(size)]);
        Ok(())
    }

    fn waker(&self) -> Arc<dyn Waker> {
        Arc::new(self.brush.clone())
    }
}

enum Came {
    Unit(CapturedUnit),
    Event(CaptureEvent),
}

struct Output(SyncSender<Came>);

impl CaptureOutput for Output {
    fn unit(&self, unit: CapturedUnit) {
        // A test that is over listens no more.
        let _ = self.0.send(Came::Unit(unit));
    }

    fn event(&self, event: CaptureEvent) {
        let _ = self.0.send(Came::Event(event));
    }
}

fn start(encoder: &str) -> (Capture, Brush, Receiver<Came>) {
    let (tell, news) = sync_channel(64);
    let brush = Brush(tell);
    let screen = Painted {
        size: PixelSize::new(320, 240),
        news,
        brush: brush.clone(),
        shade: 40,
    };
    let settings = CaptureSettings {
        size: None,
        rate: FrameRate { num: 60, den: 1 },
        bitrate: Bitrate::from_kbit(1000),
        profile: Profile::ConstrainedBaseline,
        encoder: Some(encoder.to_owned()),
    };
    let (tell, came) = sync_channel(1024);
    let capture = Capture::start(Box::new(screen), settings, Arc::new(Output(tell)));
    (capture, brush, came)
}

fn unit(came: &Receiver<Came>) -> CapturedUnit {
    loop {
        match came.recv_timeout(LONG).expect("a unit") {
            Came::Unit(unit) => return unit,
            Came::Event(CaptureEvent::Failed(failure)) => panic!("{failure}"),
            Came::Event(_) => {}
        }
    }
}

fn event(came: &Receiver<Came>) -> CaptureEvent {
    loop {
        if let Came::Event(event) = came.recv_timeout(LONG).expect("an event") {
            return event;
        }
    }
}

#[test]
fn the_first_unit_is_an_idr_that_browsers_take_and_the_next_one_is_not() {
    for encoder in ["x264enc", "openh264enc"] {
        let (_capture, brush, came) = start(encoder);
        let size = PixelSize::new(320, 240);
        let started = event(&came);
        assert!(
            matches!(started, CaptureEvent::Started { size: found, .. } if found == size),
            "{started:?}"
        );
        let first = unit(&came);
        assert!(first.idr);
        let conditioned = Conditioner::new().condition(first.data).expect("a unit");
        let sps = conditioned.sps.expect("an IDR has one");
        assert_eq!(sps.profile_idc, 66);
        brush.paint(Change::Shade(200));
        let second = unit(&came);
        // OpenH264 makes an IDR of a screen that is all new.
        let expected = encoder == "openh264enc" || !second.idr;
        assert!(second.captured > first.captured && expected, "{encoder}");
    }
}

#[test]
fn a_wish_for_a_key_frame_is_granted_by_the_next_unit_of_a_still_screen() {
    let (capture, _brush, came) = start("x264enc");
    assert!(unit(&came).idr);
    // Pictures that sharpen the still screen may come first.
    capture.request_keyframe();
    while !unit(&came).idr {}
    capture.request_keyframe();
    while !unit(&came).idr {}
}

#[test]
fn another_size_of_the_screen_and_of_the_pictures_needs_no_other_capture() {
    let (capture, brush, came) = start("x264enc");
    unit(&came);
    brush.paint(Change::Size(PixelSize::new(200, 100)));
    assert_eq!(size_change(&came), PixelSize::new(200, 100));
    capture.set_size(Some(PixelSize::new(160, 80)));
    assert_eq!(size_change(&came), PixelSize::new(160, 80));
}

fn size_change(came: &Receiver<Came>) -> PixelSize {
    loop {
        match event(came) {
            CaptureEvent::SizeChanged(size) => return size,
            CaptureEvent::Started { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_screen_that_goes_and_an_encoder_that_is_unknown_end_a_capture_with_a_reason() {
    let (_capture, brush, came) = start("x264enc");
    unit(&came);
    brush.paint(Change::Gone);
    let failed =
        std::iter::from_fn(|| Some(event(&came))).find(|event| matches!(event, CaptureEvent::Failed(_)));
    let gone = CaptureFailure::Screen(ScreenError::ServerGone("it ended".to_owned()));
    assert_eq!(failed, Some(CaptureEvent::Failed(gone)));

    let (_capture, _brush, came) = start("noencoder");
    assert!(matches!(
        event(&came),
        CaptureEvent::Failed(CaptureFailure::NoEncoder(_))
    ));
}
