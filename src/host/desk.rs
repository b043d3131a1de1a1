//! What a host shares: a desktop, or any source of H.264.

use std::sync::Arc;

use crossdesk_core::control::ControlMessage;
use crossdesk_core::control::wire::DisplayBounds;
use crossdesk_core::media::AccessUnit;
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::gst::source::{Source, SourceEvent, SourceOutput};
use crossdesk_pipelines::plan::source::SourceSpec;

/// Where a screen delivers. Called on its own threads; must not block.
pub trait ScreenOutput: Send + Sync {
    /// One whole access unit of display `index`.
    fn unit(&self, index: usize, unit: AccessUnit);
    /// The display shows nothing any more, for a reason fit for people.
    fn ended(&self, index: usize, reason: String);
}

/// A display that is being captured; dropping it stops that.
pub trait Screen: Send {
    /// Asks for a key frame soon; never blocks.
    fn request_keyframe(&self);

    /// Sets the bits per second to aim for, where that can be set; never blocks.
    fn set_bitrate(&self, bits: u32);
}

/// A desktop.
pub trait Desk: Send {
    /// Its displays, in the order in which they are offered.
    fn displays(&mut self) -> Vec<DisplayBounds>;

    /// Begins to capture a display.
    ///
    /// # Errors
    /// A reason fit for people.
    fn capture(&mut self, index: usize, output: Arc<dyn ScreenOutput>) -> Result<Box<dyn Screen>, String>;

    /// True when input reaches it.
    fn takes_input(&self) -> bool;

    /// Injects input that refers to display `index`.
    ///
    /// # Errors
    /// A reason fit for people.
    fn inject(&mut self, now: Monotonic, index: usize, message: ControlMessage) -> Result<(), String>;

    /// Goes on with input that takes time.
    ///
    /// # Errors
    /// A reason fit for people.
    fn handle_timeout(&mut self, now: Monotonic) -> Result<(), String>;

    /// When [`Self::handle_timeout`] is due.
    fn next_deadline(&self) -> Option<Monotonic>;
}

/// A source in place of a desktop: one display, no input.
pub struct SourceDesk {
    spec: SourceSpec,
}

impl SourceDesk {
    /// Shares `spec`.
    pub const fn new(spec: SourceSpec) -> Self {
        Self { spec }
    }
}

impl Desk for SourceDesk {
    fn displays(&mut self) -> Vec<DisplayBounds> {
        // Only the generated desktop knows its size before it runs; guests learn the size from the stream.
        let (right, bottom) = match &self.spec {
            SourceSpec::Test(test) => (test.size.width, test.size.height),
            _ => (1920, 1080),
        };
        vec![DisplayBounds {
            name: "Display1".to_owned(),
            left: 0,
            top: 0,
            right: i32::try_from(right).unwrap_or(i32::MAX),
            bottom: i32::try_from(bottom).unwrap_or(i32::MAX),
        }]
    }

    fn capture(&mut self, index: usize, output: Arc<dyn ScreenOutput>) -> Result<Box<dyn Screen>, String> {
        let feed = Feed { index, output };
        Ok(Box::new(SourceScreen(Source::start(
            self.spec.clone(),
            None,
            Arc::new(feed),
        ))))
    }

    fn takes_input(&self) -> bool {
        false
    }

    fn inject(&mut self, _: Monotonic, _: usize, _: ControlMessage) -> Result<(), String> {
        Ok(())
    }

    fn handle_timeout(&mut self, _: Monotonic) -> Result<(), String> {
        Ok(())
    }

    fn next_deadline(&self) -> Option<Monotonic> {
        None
    }
}

struct SourceScreen(Source);

impl Screen for SourceScreen {
    fn request_keyframe(&self) {
        self.0.request_keyframe();
    }

    /// A source has its own bit rate.
    fn set_bitrate(&self, _bits: u32) {}
}

struct Feed {
    index: usize,
    output: Arc<dyn ScreenOutput>,
}

impl SourceOutput for Feed {
    fn unit(&self, unit: AccessUnit) {
        self.output.unit(self.index, unit);
    }

    fn event(&self, event: SourceEvent) {
        match event {
            SourceEvent::Opened { .. } => {}
            SourceEvent::Waiting { reason } => tracing::warn!(reason, "the shared source stands still"),
            SourceEvent::Ended => self
                .output
                .ended(self.index, "it was played to its end".to_owned()),
            SourceEvent::Failed(failure) => self.output.ended(self.index, failure.reason),
        }
    }
}
