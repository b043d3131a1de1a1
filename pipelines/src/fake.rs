//! A scripted receiver and made-up pictures, for tests of everything above this crate.
//!
//! [`FakeReceiver`] records what is pushed and delivers what the test tells it to; [`PlainFrame`] is a picture
//! made of bytes the test can predict.

use std::sync::{Arc, Mutex, PoisonError};

use crossdesk_core::media::{AccessUnit, Color, MAX_ACCESS_UNIT_BYTES, TapUnit};
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::PixelSize;

use crate::picture::{Frame, MapError, Picture, Plane, Planes};
use crate::receive::{Receive, ReceiveEvent, ReceiveOutput, Refused};

/// An I420 picture in ordinary memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFrame {
    size: PixelSize,
    y: Vec<u8>,
    u: Vec<u8>,
    v: Vec<u8>,
}

impl PlainFrame {
    /// A picture of one colour, given as Y, Cb, Cr.
    pub fn solid(size: PixelSize, [y, u, v]: [u8; 3]) -> Self {
        Self::from_fn(size, |_, _| y, |_, _| [u, v])
    }

    /// A picture whose samples come from the column and row of luma and of chroma.
    pub fn from_fn(
        size: PixelSize,
        luma: impl Fn(u32, u32) -> u8,
        chroma: impl Fn(u32, u32) -> [u8; 2],
    ) -> Self {
        let places = |width: u32, height: u32| (0..height).flat_map(move |y| (0..width).map(move |x| (x, y)));
        let half = PixelSize::new(size.width.div_ceil(2), size.height.div_ceil(2));
        Self {
            size,
            y: places(size.width, size.height).map(|(x, y)| luma(x, y)).collect(),
            u: places(half.width, half.height)
                .map(|(x, y)| chroma(x, y)[0])
                .collect(),
            v: places(half.width, half.height)
                .map(|(x, y)| chroma(x, y)[1])
                .collect(),
        }
    }

    /// Its visible size.
    pub fn size(&self) -> PixelSize {
        self.size
    }

    /// This frame as a picture numbered `sequence` in geometry epoch 1, received and decoded at `at`.
    pub fn into_picture(self, sequence: u32, at: Monotonic) -> Picture {
        Picture {
            size: self.size,
            color: Color::BT601_LIMITED,
            sequence,
            geometry_epoch: 1,
            received: at,
            decoded: at,
            frame: Arc::new(self),
        }
    }
}

impl Frame for PlainFrame {
    fn map(&self, read: &mut dyn FnMut(Planes<'_>)) -> Result<(), MapError> {
        let chroma_stride = self.size.width.div_ceil(2) as usize;
        read(Planes::I420 {
            y: Plane {
                data: &self.y,
                stride: self.size.width as usize,
            },
            u: Plane {
                data: &self.u,
                stride: chroma_stride,
            },
            v: Plane {
                data: &self.v,
                stride: chroma_stride,
            },
        });
        Ok(())
    }
}

#[derive(Default)]
struct Script {
    pushed: Vec<AccessUnit>,
    finished: u32,
    refuse: Option<Refused>,
}

/// A receiver without GStreamer: the test says what comes out.
#[derive(Clone)]
pub struct FakeReceiver {
    output: Arc<dyn ReceiveOutput>,
    script: Arc<Mutex<Script>>,
}

impl FakeReceiver {
    /// A receiver that delivers to `output`; a clone kept by the test drives it.
    pub fn new(output: Arc<dyn ReceiveOutput>) -> Self {
        Self {
            output,
            script: Arc::default(),
        }
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers a tapped access unit.
    pub fn deliver_unit(&self, unit: TapUnit) {
        self.output.unit(unit);
    }

    /// Delivers a picture.
    pub fn deliver_picture(&self, picture: Picture) {
        self.output.picture(picture);
    }

    /// Delivers an event.
    pub fn deliver_event(&self, event: ReceiveEvent) {
        self.output.event(event);
    }

    /// Makes every later push fail with `refused`, or succeed again with `None`.
    pub fn refuse(&self, refused: Option<Refused>) {
        self.script().refuse = refused;
    }

    /// Takes what was pushed since the last call.
    pub fn take_pushed(&self) -> Vec<AccessUnit> {
        std::mem::take(&mut self.script().pushed)
    }

    /// How often [`Receive::finish`] was called.
    pub fn finished(&self) -> u32 {
        self.script().finished
    }
}

impl Receive for FakeReceiver {
    fn push(&self, unit: AccessUnit) -> Result<(), Refused> {
        if unit.data.len() > MAX_ACCESS_UNIT_BYTES {
            return Err(Refused::TooLarge);
        }
        let mut script = self.script();
        if let Some(refused) = script.refuse {
            return Err(refused);
        }
        script.pushed.push(unit);
        Ok(())
    }

    fn finish(&self) {
        self.script().finished += 1;
    }
}
