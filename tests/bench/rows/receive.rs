//! What our receive graph costs per picture, beside the shortest GStreamer line and beside ffmpeg.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::Work;
use crate::Options;
use crate::clips::{self, Clip};
use crate::report::{Bar, Figure, Spec};
use crate::stats::median_of;
use crate::worker::{self, Cost, Feed, Kind};

const fn against_bare(name: &'static str) -> Spec {
    Spec {
        name,
        unit: "x",
        bar: Bar::AtMost(1.08),
    }
}

const fn against_ffmpeg(name: &'static str) -> Spec {
    Spec {
        name,
        unit: "x",
        bar: Bar::AtMost(1.35),
    }
}

pub const DESKTOP_1080P: Work = Work {
    specs: &[
        against_bare("receive desktop-1080p30 / bare"),
        against_ffmpeg("receive desktop-1080p30 / ffmpeg"),
    ],
    run: |options| compare(options, &clips::desktop_1080p(), 4),
};

pub const HD60: Work = Work {
    specs: &[
        against_bare("receive 1080p60 / bare"),
        against_ffmpeg("receive 1080p60 / ffmpeg"),
    ],
    run: |options| compare(options, &clips::hd60()?, 4),
};

pub const DESKTOP_4K: Work = Work {
    specs: &[
        against_bare("receive desktop-4k / bare"),
        against_ffmpeg("receive desktop-4k / ffmpeg"),
    ],
    run: |options| compare(options, &clips::desktop_4k(), 4),
};

pub const UHD60: Work = Work {
    specs: &[
        against_bare("receive 4k60 / bare"),
        against_ffmpeg("receive 4k60 / ffmpeg"),
    ],
    run: |options| compare(options, &clips::uhd60()?, 4),
};

/// Bare, ours and ffmpeg in turn, each decoding `repeats` times the clip.
fn compare(options: &Options, clip: &Clip, repeats: usize) -> anyhow::Result<Vec<Figure>> {
    let mut rounds = Vec::new();
    for _ in 0..options.rounds() {
        let bare = worker::measure(Kind::Bare, Feed::Live, clip, repeats)?.cpu_per_picture();
        let ours = worker::measure(Kind::Receive, Feed::Live, clip, repeats)?;
        let ffmpeg = with_ffmpeg(&clip.path, repeats).unwrap_or(f64::NAN);
        rounds.push((bare, ours, ffmpeg));
    }
    let held = rounds
        .iter()
        .map(|(_, ours, _): &(f64, Cost, f64)| ours.held)
        .max()
        .unwrap_or(0);
    if held > 0 {
        bail!("{held} pictures did not come before the next access unit");
    }
    if rounds.iter().any(|(_, _, ffmpeg)| ffmpeg.is_nan()) {
        with_ffmpeg(&clip.path, 1)?;
    }
    let middle = |pick: fn(&(f64, Cost, f64)) -> f64| median_of(rounds.iter().map(pick));
    let ours = middle(|round| round.1.cpu_per_picture());
    let figure = |other: fn(&(f64, Cost, f64)) -> f64, what: &str| {
        let ratios: Vec<f64> = rounds
            .iter()
            .map(|round| round.1.cpu_per_picture() / other(round))
            .collect();
        Figure::new(
            &ratios,
            format!("{ours:.2} ms CPU a picture, {what} {:.2}", middle(other)),
        )
    };
    Ok(vec![
        figure(|round| round.0, "bare"),
        figure(|round| round.2, "ffmpeg"),
    ])
}

/// CPU ms per picture of `ffmpeg -threads 1`, start-up left out: its own `-benchmark` counts from the first packet.
fn with_ffmpeg(clip: &Path, repeats: usize) -> anyhow::Result<f64> {
    let path = clip.display().to_string();
    // Copies one after the other, as the workers see them.
    let input = format!("concat:{}", vec![path.as_str(); repeats].join("|"));
    let output = Command::new("ffmpeg")
        .args([
            "-nostdin",
            "-hide_banner",
            "-benchmark",
            "-threads",
            "1",
            "-f",
            "h264",
            "-i",
            &input,
        ])
        .args(["-f", "null", "-"])
        .stdout(Stdio::null())
        .output()
        .context("ffmpeg is not installed")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let after = |key: &str| {
        let (_, rest) = text.rsplit_once(key)?;
        let number = rest
            .trim_start()
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .next()?;
        number.parse::<f64>().ok()
    };
    let pictures = after("frame=").context("ffmpeg does not say how many pictures")?;
    let (user, system) = after("utime=")
        .zip(after("stime="))
        .context("ffmpeg does not say what it used")?;
    Ok((user + system) * 1e3 / pictures)
}
