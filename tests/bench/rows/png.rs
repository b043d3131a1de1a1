//! Screenshots from recorded desktop pictures on one core, and libpng at level 1 on the pixels they hold.

use std::io::{Cursor, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Channel, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, bail};
use crossdesk_core::media::{AccessUnit, Color, TapUnit};
use crossdesk_core::units::{PixelRect, PixelSize};
use crossdesk_pipelines::clock;
use crossdesk_pipelines::gst::receive::Receiver;
use crossdesk_pipelines::picture::{Frame, MapError, Picture, Plane, Planes};
use crossdesk_pipelines::pixels::png::{Png, PngEncoder, PngRequest};
use crossdesk_pipelines::pixels::{nv12_len, pack_nv12};
use crossdesk_pipelines::receive::{
    DecoderChoice, Pace, Receive, ReceiveConfig, ReceiveEvent, ReceiveOutput,
};

use super::Work;
use crate::Options;
use crate::clips::{self, Clip};
use crate::cpu;
use crate::paths;
use crate::report::{Bar, Figure, Spec};
use crate::stats::{Spread, median_of};

/// Screenshots in one group; the middle one counts. Few, so that libpng's turn comes before the machine changes pace.
const SHOTS: usize = 5;

/// Groups of each side in a round.
const GROUPS: usize = 3;

/// Bytes of an observation (protocol).
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// Which picture of a clip is shot: the scrolling has begun and text fills it.
const PICTURE: usize = 45;

const fn time(name: &'static str, limit: f64) -> Spec {
    Spec {
        name,
        unit: "ms",
        bar: Bar::Below(limit),
    }
}

const fn against_libpng(name: &'static str) -> Spec {
    Spec {
        name,
        unit: "x",
        bar: Bar::AtLeast(2.0),
    }
}

pub const HD: Work = Work {
    specs: &[
        time("PNG of 1080p to edge 1280", 6.5),
        against_libpng("libpng level 1 / PNG of 1080p to edge 1280"),
    ],
    run: |options| measure(options, &clips::desktop_1080p(), &request(None, 1280)),
};

pub const UHD: Work = Work {
    specs: &[
        time("PNG of 4K to edge 1280", 9.0),
        against_libpng("libpng level 1 / PNG of 4K to edge 1280"),
    ],
    run: |options| measure(options, &clips::desktop_4k(), &request(None, 1280)),
};

pub const CROP: Work = Work {
    specs: &[
        time("PNG of a 321x241 crop of 1080p", 0.35),
        against_libpng("libpng level 1 / PNG of a 321x241 crop"),
    ],
    run: |options| {
        let region = PixelRect {
            x: 301,
            y: 201,
            width: 321,
            height: 241,
        };
        measure(options, &clips::desktop_1080p(), &request(Some(region), 2048))
    },
};

const fn request(region: Option<PixelRect>, max_edge: u32) -> PngRequest {
    PngRequest {
        region,
        max_edge,
        max_bytes: MAX_BYTES,
    }
}

fn measure(options: &Options, clip: &Clip, request: &PngRequest) -> anyhow::Result<Vec<Figure>> {
    let picture = nv12_picture(clip)?;
    let libpng = build_libpng()?;
    let _pinned = cpu::Pinned::start()?;
    let mut encoder = PngEncoder::new();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut shot = encoder.encode(&picture, request)?;
    for _ in 0..options.rounds() * GROUPS {
        let mut times = Vec::new();
        for _ in 0..SHOTS {
            let start = cpu::of_this_thread();
            shot = encoder.encode(&picture, request)?;
            times.push(cpu::ms(cpu::of_this_thread().saturating_sub(start)));
        }
        ours.push(Spread::of(&times).median);
        theirs.push(encode_with_libpng(&libpng, &shot)?);
    }
    let ratios: Vec<f64> = theirs
        .iter()
        .zip(&ours)
        .map(|(theirs, ours)| theirs.0 / ours)
        .collect();
    let size = shot.image_size;
    let note = format!("{}x{}, {} kB", size.width, size.height, shot.data.len() / 1000);
    let middle = median_of(theirs.iter().map(|their| their.0));
    let other = format!(
        "libpng's encoding alone {middle:.2} ms, {} kB",
        theirs[0].1 / 1000
    );
    Ok(vec![Figure::new(&ours, note), Figure::new(&ratios, other)])
}

/// A decoded picture, packed as a hardware decoder would deliver it.
struct Nv12Frame {
    size: PixelSize,
    samples: Vec<u8>,
}

impl Frame for Nv12Frame {
    fn map(&self, read: &mut dyn FnMut(Planes<'_>)) -> Result<(), MapError> {
        let stride = self.size.width as usize;
        let (y, uv) = self.samples.split_at(stride * self.size.height as usize);
        read(Planes::Nv12 {
            y: Plane { data: y, stride },
            uv: Plane { data: uv, stride },
        });
        Ok(())
    }
}

fn nv12_picture(clip: &Clip) -> anyhow::Result<Picture> {
    let decoded = decode(clip)?;
    let size = decoded.size.even();
    let mut samples = vec![0; nv12_len(size)];
    decoded
        .frame
        .map(&mut |planes| pack_nv12(&planes, size, decoded.color, &mut samples))?;
    Ok(Picture {
        size,
        color: Color::BT601_LIMITED,
        frame: Arc::new(Nv12Frame { size, samples }),
        ..decoded
    })
}

/// Hands pictures over; the channel holds all that are decoded here.
struct Collect(SyncSender<Picture>);

impl ReceiveOutput for Collect {
    fn unit(&self, _: TapUnit) {}

    fn picture(&self, picture: Picture) {
        // Full or closed once the picture wanted has arrived.
        let _ = self.0.try_send(picture);
    }

    fn event(&self, _: ReceiveEvent) {}
}

fn decode(clip: &Clip) -> anyhow::Result<Picture> {
    let (sender, pictures): (_, Channel<Picture>) = sync_channel(1);
    let config = ReceiveConfig {
        decoder: DecoderChoice::Software,
        pace: Pace::Lossless,
    };
    let receiver = Receiver::start(&config, Arc::new(Collect(sender)))?;
    let mut newest = None;
    for data in clip.units()?.into_iter().take(PICTURE) {
        let received = clock::now();
        receiver.push(AccessUnit { data, received })?;
        let picture = pictures.recv_timeout(Duration::from_secs(5));
        newest = Some(picture.context("the clip does not decode")?);
    }
    newest.context("an empty clip")
}

fn build_libpng() -> anyhow::Result<PathBuf> {
    let program = paths::made("libpng-level1")?;
    let built = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(paths::source("libpng.c"))
        .arg("-lpng")
        .stderr(Stdio::null())
        .status()
        .context("no C compiler for the comparison with libpng")?;
    if !built.success() {
        bail!("the comparison does not build: libpng-dev is missing");
    }
    Ok(program)
}

/// CPU ms and bytes of libpng for the pixels of `shot`.
fn encode_with_libpng(program: &PathBuf, shot: &Png) -> anyhow::Result<(f64, usize)> {
    let rgb = pixels_of(shot)?;
    let PixelSize { width, height } = shot.image_size;
    let mut child = Command::new(program)
        .args([width.to_string(), height.to_string(), SHOTS.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("a piped input")?.write_all(&rgb)?;
    let output = child.wait_with_output()?;
    let text = String::from_utf8(output.stdout)?;
    let (ms, bytes) = text.trim().split_once(' ').context("libpng does not answer")?;
    Ok((ms.parse()?, bytes.parse()?))
}

fn pixels_of(shot: &Png) -> anyhow::Result<Vec<u8>> {
    let mut reader = png::Decoder::new(Cursor::new(&shot.data)).read_info()?;
    if reader.output_color_type() != (png::ColorType::Rgb, png::BitDepth::Eight) {
        bail!("the screenshot is not RGB with 8 bits");
    }
    let mut rgb = vec![0; reader.output_buffer_size().context("a small picture")?];
    reader.next_frame(&mut rgb)?;
    Ok(rgb)
}
