//! An output that remembers, and the streams of this suite.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::h264::AccessUnits;
use crossdesk_core::media::{AccessUnit, Color, TapUnit};
use crossdesk_core::units::PixelSize;
use crossdesk_pipelines::clock;
use crossdesk_pipelines::gst::receive::Receiver;
use crossdesk_pipelines::picture::{MapError, Picture, Plane, Planes};
use crossdesk_pipelines::receive::{
    DecoderChoice, Pace, Receive, ReceiveConfig, ReceiveEvent, ReceiveOutput, Refused,
};
use sha1::{Digest, Sha1};

/// Longer than anything here takes on a loaded machine; only a failing test waits this long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What is remembered of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub size: PixelSize,
    pub color: Color,
    pub sequence: u32,
    pub epoch: u32,
    pub received: u64,
    pub sha1: String,
}

#[derive(Default)]
pub struct Log {
    pub units: Vec<TapUnit>,
    pub pictures: Vec<Seen>,
    /// Numbers of pictures that were delivered and could not be read.
    pub unreadable: Vec<u32>,
    pub events: Vec<ReceiveEvent>,
    pub all: Sha1,
}

impl Log {
    pub fn selected(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                ReceiveEvent::DecoderSelected { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    pub fn failures(&self) -> Vec<(&str, &str, &str)> {
        self.events
            .iter()
            .filter_map(|event| match event {
                ReceiveEvent::DecoderFailed(failure) => Some((
                    failure.name.as_str(),
                    failure.stage.as_str(),
                    failure.reason.as_str(),
                )),
                _ => None,
            })
            .collect()
    }

    pub fn drained(&self) -> bool {
        self.events.contains(&ReceiveEvent::Drained)
    }
}

/// Remembers what it is given and wakes who waits for it.
#[derive(Default)]
pub struct Recorder {
    log: Mutex<Log>,
    news: Condvar,
}

impl Recorder {
    fn change(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log.lock().unwrap());
        self.news.notify_all();
    }

    /// Waits until `reached`, then looks once more with `look`; panics when it takes too long.
    #[track_caller]
    pub fn wait<T>(
        &self,
        what: &str,
        mut reached: impl FnMut(&Log) -> bool,
        look: impl FnOnce(&Log) -> T,
    ) -> T {
        let waited = self
            .news
            .wait_timeout_while(self.log.lock().unwrap(), PATIENCE, |log| !reached(log));
        let (log, timeout) = waited.unwrap();
        assert!(
            !timeout.timed_out(),
            "never saw {what}: {} units, {} pictures, events {:?}",
            log.units.len(),
            log.pictures.len(),
            log.events
        );
        look(&log)
    }

    /// Waits for a live picture interval, or until `reached`.
    pub fn wait_briefly(&self, mut reached: impl FnMut(&Log) -> bool) {
        let interval = Duration::from_millis(30);
        drop(
            self.news
                .wait_timeout_while(self.log.lock().unwrap(), interval, |log| !reached(log)),
        );
    }

    pub fn look<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&self.log.lock().unwrap())
    }
}

impl ReceiveOutput for Recorder {
    fn unit(&self, unit: TapUnit) {
        self.change(|log| log.units.push(unit));
    }

    fn picture(&self, picture: Picture) {
        let Ok(samples) = try_samples_of(&picture) else {
            return self.change(|log| log.unreadable.push(picture.sequence));
        };
        let seen = Seen {
            size: picture.size,
            color: picture.color,
            sequence: picture.sequence,
            epoch: picture.geometry_epoch,
            received: picture.received.as_micros(),
            sha1: hex(&Sha1::digest(&samples)),
        };
        self.change(|log| {
            log.all.update(&samples);
            log.pictures.push(seen);
        });
    }

    fn event(&self, event: ReceiveEvent) {
        self.change(|log| log.events.push(event));
    }
}

pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The visible samples as planar Y, Cb, Cr without padding.
pub fn samples_of(picture: &Picture) -> Vec<u8> {
    try_samples_of(picture).unwrap()
}

fn try_samples_of(picture: &Picture) -> Result<Vec<u8>, MapError> {
    let mut out = Vec::new();
    let (width, height) = (picture.size.width as usize, picture.size.height as usize);
    let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
    let mut plane = |plane: Plane<'_>, width: usize, height: usize, step: usize, from: usize| {
        for row in 0..height {
            let row = &plane.data[row * plane.stride..row * plane.stride + width * step];
            out.extend(row.iter().skip(from).step_by(step));
        }
    };
    picture.frame.map(&mut |planes| match planes {
        Planes::Nv12 { y, uv } => {
            plane(y, width, height, 1, 0);
            plane(uv, half_width, half_height, 2, 0);
            plane(uv, half_width, half_height, 2, 1);
        }
        Planes::I420 { y, u, v } => {
            plane(y, width, height, 1, 0);
            plane(u, half_width, half_height, 1, 0);
            plane(v, half_width, half_height, 1, 0);
        }
        Planes::I422 { y, u, v } => {
            plane(y, width, height, 1, 0);
            plane(u, half_width, height, 1, 0);
            plane(v, half_width, height, 1, 0);
        }
        Planes::I444 { y, u, v } => {
            for full in [y, u, v] {
                plane(full, width, height, 1, 0);
            }
        }
        Planes::Gray { y } => plane(y, width, height, 1, 0),
    })?;
    Ok(out)
}

/// A receiver and what it says.
pub struct Bench {
    pub receiver: Receiver,
    pub seen: Arc<Recorder>,
}

impl Bench {
    pub fn start(decoder: DecoderChoice, pace: Pace) -> Self {
        let seen = Arc::new(Recorder::default());
        let receiver = Receiver::start(&ReceiveConfig { decoder, pace }, seen.clone()).unwrap();
        Self { receiver, seen }
    }

    pub fn software() -> Self {
        Self::start(DecoderChoice::Software, Pace::Lossless)
    }

    /// Pushes one unit, waiting for room when it must.
    pub fn push(&self, data: &Bytes) {
        let unit = AccessUnit {
            data: data.clone(),
            received: clock::now(),
        };
        loop {
            match self.receiver.push(unit.clone()) {
                Ok(()) => return,
                Err(Refused::Full) => self.receiver.wait_for_room(data.len(), PATIENCE),
                Err(refused) => panic!("{refused}"),
            }
        }
    }

    /// Pushes all units, drains, and waits for the end.
    #[track_caller]
    pub fn play(&self, units: &[Bytes]) {
        for unit in units {
            self.push(unit);
        }
        self.receiver.finish();
        self.seen.wait("the end", Log::drained, |_| ());
    }

    /// Pushes units one at a time, each after the picture of the one before.
    #[track_caller]
    pub fn step(&self, units: &[Bytes]) {
        for unit in units {
            let before = self.seen.look(|log| log.pictures.len());
            self.push(unit);
            self.seen.wait(
                "the unit's own picture",
                |log| log.pictures.len() > before,
                |_| (),
            );
        }
    }

    /// Pushes units one at a time, each after the picture of the one before, but without waiting longer than
    /// a viewer's patience while a decoder is being replaced.
    #[track_caller]
    pub fn step_or_follow(&self, units: &[Bytes]) {
        for (n, unit) in units.iter().enumerate() {
            self.push(unit);
            self.seen.wait_briefly(|log| log.pictures.len() > n);
        }
        self.seen
            .wait("all pictures", |log| log.pictures.len() >= units.len(), |_| ());
    }

    pub fn digests(&self) -> Vec<String> {
        self.seen
            .look(|log| log.pictures.iter().map(|picture| picture.sha1.clone()).collect())
    }
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub fn read(path: impl AsRef<Path>) -> Vec<u8> {
    let path = path.as_ref();
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn split(stream: &[u8]) -> Vec<Bytes> {
    AccessUnits::new(stream).map(Bytes::copy_from_slice).collect()
}

/// A stream of this suite (`tests/data`), and the SHA-1 of each of its pictures as FFmpeg decodes it.
pub struct Clip {
    pub stream: Vec<u8>,
    pub units: Vec<Bytes>,
    pub digests: Vec<String>,
}

pub fn clip(name: &str) -> Clip {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let stream = read(folder.join(format!("{name}.h264")));
    let digests = String::from_utf8(read(folder.join(format!("{name}.sha1")))).unwrap();
    Clip {
        units: split(&stream),
        stream,
        digests: digests.lines().map(str::to_owned).collect(),
    }
}
