//! An X11 desktop: displays by RandR, pictures by shared memory and damage, input by XTEST.

use std::sync::Arc;

use crossdesk_core::control::ControlMessage;
use crossdesk_core::control::wire::DisplayBounds;
use crossdesk_core::media::AccessUnit;
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::FrameRate;
use crossdesk_pipelines::capture::{CaptureEvent, CaptureOutput, CapturedUnit};
use crossdesk_pipelines::gst::capture::Capture;
use crossdesk_pipelines::plan::capture::{CaptureSettings, Profile};
use crossdesk_pipelines::plan::source::Bitrate;
use crossdesk_platform::desktop::{DesktopError, Display};
use crossdesk_platform::input::Input as _;
use crossdesk_platform::linux::x11::{Displays, X11Screen, XTestInput};

use super::desk::{Desk, Screen, ScreenOutput};

/// Pictures a second at most; a still screen makes none.
const RATE: u32 = 60;
/// Bits for a pixel that changes, in thousandths: text stays sharp, and a moving 1080p desktop takes 9 Mbit/s.
const MILLIBITS_PER_PIXEL: u64 = 70;
/// Below this nothing is readable.
const MIN_KBIT: u64 = 500;
/// What a link of a household carries.
const MAX_KBIT: u64 = 40_000;

/// See the module's description.
pub struct X11Desk {
    /// Name of the server, `:0`; the one in `DISPLAY` when unset.
    server: Option<String>,
    displays: Displays,
    input: XTestInput,
    /// The displays as they were offered: guests name them by position.
    offered: Vec<Display>,
    /// The display that points refer to.
    selected: Option<usize>,
}

impl X11Desk {
    /// Looks at the server `display`, or the one in `DISPLAY`.
    ///
    /// # Errors
    /// When there is no server, or it lacks what is needed.
    pub fn open(display: Option<&str>) -> Result<Self, DesktopError> {
        let displays = Displays::open(display)?;
        Ok(Self {
            server: display.map(str::to_owned),
            offered: displays.list().to_vec(),
            displays,
            input: XTestInput::open(display)?,
            selected: None,
        })
    }

    /// Points of guests that look at display `index` refer to where that display is now.
    fn select(&mut self, index: usize) -> Result<(), DesktopError> {
        let changed = self.displays.poll_change()?.is_some();
        if self.selected == Some(index) && !changed {
            return Ok(());
        }
        let Some(offered) = self.offered.get(index) else {
            return Err(DesktopError::DisplayGone((index + 1).to_string()));
        };
        let here = self
            .displays
            .list()
            .iter()
            .find(|display| display.name == offered.name);
        let area = here
            .ok_or_else(|| DesktopError::DisplayGone(offered.name.clone()))?
            .area;
        self.input.select(area);
        self.selected = Some(index);
        Ok(())
    }
}

impl Desk for X11Desk {
    fn displays(&mut self) -> Vec<DisplayBounds> {
        let edge = |start: i32, length: u32| start.saturating_add_unsigned(length);
        let bounds = |Display { name, area, .. }: &Display| DisplayBounds {
            name: name.clone(),
            left: area.left,
            top: area.top,
            right: edge(area.left, area.size.width),
            bottom: edge(area.top, area.size.height),
        };
        self.offered.iter().map(bounds).collect()
    }

    fn capture(&mut self, index: usize, output: Arc<dyn ScreenOutput>) -> Result<Box<dyn Screen>, String> {
        let offered = self.offered.get(index).ok_or("there is no such display")?;
        // The pointer is painted: that is how guests of the public kind see it.
        let screen = X11Screen::open(self.server.as_deref(), &offered.name, true)
            .map_err(|error| error.to_string())?;
        let size = screen.area().size;
        let pixels = u64::from(size.width) * u64::from(size.height);
        let kbit = (pixels * u64::from(RATE) * MILLIBITS_PER_PIXEL / 1_000_000).clamp(MIN_KBIT, MAX_KBIT);
        let settings = CaptureSettings {
            size: None,
            rate: FrameRate { num: RATE, den: 1 },
            bitrate: Bitrate::from_kbit(u32::try_from(kbit).unwrap_or(u32::MAX)),
            // Browsers take no more, and one encoder serves all guests.
            profile: Profile::ConstrainedBaseline,
            encoder: None,
        };
        let feed = Feed { index, output };
        Ok(Box::new(X11Capture(Capture::start(
            Box::new(screen),
            settings,
            Arc::new(feed),
        ))))
    }

    fn takes_input(&self) -> bool {
        true
    }

    fn inject(&mut self, now: Monotonic, index: usize, message: ControlMessage) -> Result<(), String> {
        self.select(index)
            .and_then(|()| self.input.handle(now, message))
            .map_err(|error| error.to_string())
    }

    fn handle_timeout(&mut self, now: Monotonic) -> Result<(), String> {
        self.input.handle_timeout(now).map_err(|error| error.to_string())
    }

    fn next_deadline(&self) -> Option<Monotonic> {
        self.input.next_deadline()
    }
}

impl Drop for X11Desk {
    fn drop(&mut self) {
        // A server that is gone holds nothing.
        let _ = self.input.release_all();
    }
}

struct X11Capture(Capture);

impl Screen for X11Capture {
    fn request_keyframe(&self) {
        self.0.request_keyframe();
    }

    fn set_bitrate(&self, bits: u32) {
        self.0.set_bitrate(Bitrate::from_kbit(bits / 1000));
    }
}

struct Feed {
    index: usize,
    output: Arc<dyn ScreenOutput>,
}

impl CaptureOutput for Feed {
    fn unit(&self, unit: CapturedUnit) {
        let (data, received) = (unit.data, unit.captured);
        self.output.unit(self.index, AccessUnit { data, received });
    }

    fn event(&self, event: CaptureEvent) {
        match event {
            CaptureEvent::Started {
                encoder,
                hardware,
                size,
            } => tracing::info!(encoder, hardware, ?size, display = self.index + 1, "capturing"),
            CaptureEvent::SizeChanged(size) => {
                tracing::info!(?size, display = self.index + 1, "another size");
            }
            CaptureEvent::EncoderFailed { encoder, reason } => {
                tracing::warn!(encoder, reason, "an encoder failed");
            }
            CaptureEvent::Failed(failure) => self.output.ended(self.index, failure.to_string()),
        }
    }
}
