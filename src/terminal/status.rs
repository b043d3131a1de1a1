//! The last line of the screen: what is shown, how large, how fast, by which decoder and how old.

use crossdesk_core::time::Monotonic;
use crossdesk_core::units::PixelSize;

/// What the status line says.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub title: String,
    pub decoder: Option<String>,
    pub note: Option<String>,
    newest: Option<Newest>,
    rate: Rate,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    size: PixelSize,
    received: Monotonic,
}

/// Decoded pictures per second, over spans long enough to be read.
#[derive(Debug, Default)]
struct Rate {
    /// Sequence number and time at the start of the span.
    start: Option<(u32, Monotonic)>,
    last: Option<f64>,
}

/// Shorter spans make the number jump.
const RATE_SPAN_MICROS: u64 = 1_000_000;

/// A picture older than this is not the present any more; the line then says so in words.
const STALE_MICROS: u64 = 2_000_000;

impl Status {
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            ..Self::default()
        }
    }

    /// Notes a picture that is about to be shown.
    pub fn picture(&mut self, size: PixelSize, sequence: u32, received: Monotonic, decoded: Monotonic) {
        self.newest = Some(Newest { size, received });
        self.rate.picture(sequence, decoded);
    }

    /// The line at `now`.
    pub fn line(&self, now: Monotonic) -> String {
        let mut parts = vec![self.title.clone()];
        if let Some(newest) = self.newest {
            parts.push(format!("{}x{}", newest.size.width, newest.size.height));
            let age = now.as_micros().saturating_sub(newest.received.as_micros());
            if age < STALE_MICROS {
                parts.extend(self.rate.last.map(|rate| format!("{rate:.1} fps")));
                parts.push(format!("age {} ms", age / 1000));
            } else {
                parts.push(format!("NO NEW PICTURE for {} s", age / 1_000_000));
            }
        } else {
            parts.push("waiting for the first picture".to_owned());
        }
        parts.extend(self.decoder.clone());
        parts.extend(self.note.clone().filter(|note| !note.is_empty()));
        parts.push("q quits".to_owned());
        parts.retain(|part| !part.is_empty());
        format!(" {}", parts.join("  |  "))
    }
}

impl Rate {
    fn picture(&mut self, sequence: u32, decoded: Monotonic) {
        let Some((first, since)) = self.start else {
            self.start = Some((sequence, decoded));
            return;
        };
        let span = decoded.as_micros().saturating_sub(since.as_micros());
        if span >= RATE_SPAN_MICROS {
            self.last = Some(f64::from(sequence.wrapping_sub(first)) * 1e6 / span as f64);
            self.start = Some((sequence, decoded));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_micros(millis * 1000)
    }

    #[test]
    fn the_line_tells_size_rate_decoder_and_age() {
        let mut status = Status::new("file:clip.h264");
        assert_eq!(
            status.line(at(0)),
            " file:clip.h264  |  waiting for the first picture  |  q quits"
        );
        status.decoder = Some("avdec_h264".to_owned());
        for i in 0..=60 {
            status.picture(
                PixelSize::new(1920, 1080),
                1 + i,
                at(u64::from(i) * 20),
                at(u64::from(i) * 20 + 3),
            );
        }
        let line = " file:clip.h264  |  1920x1080  |  50.0 fps  |  age 12 ms  |  avdec_h264  |  q quits";
        assert_eq!(status.line(at(1212)), line);
    }

    #[test]
    fn a_frozen_picture_says_so() {
        let mut status = Status::new("rtsp");
        status.picture(PixelSize::new(640, 480), 1, at(0), at(1));
        status.note = Some("reconnecting".to_owned());
        let line = " rtsp  |  640x480  |  NO NEW PICTURE for 3 s  |  reconnecting  |  q quits";
        assert_eq!(status.line(at(3500)), line);
    }
}
