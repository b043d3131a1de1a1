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

/// Between two pieces.
const SEPARATOR: &str = " | ";

/// Fewer characters of a title or a reason tell nothing.
const SHORTEST: usize = 8;

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

    /// The line at `now` for a screen of `columns`. When it is too long, what matters least gives way, and the way
    /// out is named whatever happens.
    pub fn line(&self, now: Monotonic, columns: u16) -> String {
        let mut parts = self.parts(now);
        parts.retain(|part| !part.text.is_empty());
        while let Some(over) = width(&parts)
            .checked_sub(usize::from(columns))
            .filter(|over| *over > 0)
        {
            let least = (0..parts.len()).max_by_key(|at| parts[*at].gives_way);
            let Some(at) = least.filter(|at| parts[*at].gives_way > 0) else {
                break;
            };
            if !parts[at].shorten(over) {
                parts.remove(at);
            }
        }
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        format!(" {}", texts.join(SEPARATOR))
    }

    fn parts(&self, now: Monotonic) -> Vec<Part> {
        let mut parts = vec![Part::new(self.title.clone(), 5, true)];
        if let Some(newest) = self.newest {
            let size = format!("{}x{}", newest.size.width, newest.size.height);
            parts.push(Part::new(size, 4, false));
            let age = now.as_micros().saturating_sub(newest.received.as_micros());
            if age < STALE_MICROS {
                let rate = self.rate.last.map(|rate| format!("{rate:.1} fps"));
                parts.push(Part::new(rate.unwrap_or_default(), 3, false));
                parts.push(Part::new(format!("age {} ms", age / 1000), 3, false));
            } else {
                let text = format!("NO NEW PICTURE for {} s", age / 1_000_000);
                parts.push(Part::new(text, 1, false));
            }
        } else {
            parts.push(Part::new("waiting for the first picture".to_owned(), 3, false));
        }
        parts.push(Part::new(self.decoder.clone().unwrap_or_default(), 6, false));
        parts.push(Part::new(self.note.clone().unwrap_or_default(), 2, true));
        parts.push(Part::new("q quits".to_owned(), 0, false));
        parts
    }
}

/// One piece of the line.
struct Part {
    text: String,
    /// What has the largest number goes first when room is short; 0 stays.
    gives_way: u8,
    /// True when a part of it still tells something.
    shortens: bool,
}

impl Part {
    fn new(text: String, gives_way: u8, shortens: bool) -> Self {
        Self {
            text,
            gives_way,
            shortens,
        }
    }

    /// Makes it `over` characters shorter, if it can be; it then stays as it is.
    fn shorten(&mut self, over: usize) -> bool {
        let length = self.text.chars().count();
        let Some(kept) = length.checked_sub(over + 1).filter(|kept| *kept >= SHORTEST) else {
            return false;
        };
        if !self.shortens {
            return false;
        }
        self.text = self.text.chars().take(kept).chain(['…']).collect();
        true
    }
}

/// Columns of the whole line, its leading blank included.
fn width(parts: &[Part]) -> usize {
    let texts: usize = parts.iter().map(|part| part.text.chars().count()).sum();
    1 + texts + SEPARATOR.len() * parts.len().saturating_sub(1)
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
            status.line(at(0), 80),
            " file:clip.h264 | waiting for the first picture | q quits"
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
        let line = " file:clip.h264 | 1920x1080 | 50.0 fps | age 12 ms | avdec_h264 | q quits";
        assert_eq!(status.line(at(1212), 80), line);
    }

    #[test]
    fn a_frozen_picture_says_so() {
        let mut status = Status::new("rtsp");
        status.picture(PixelSize::new(640, 480), 1, at(0), at(1));
        status.note = Some("reconnecting".to_owned());
        let line = " rtsp | 640x480 | NO NEW PICTURE for 3 s | reconnecting | q quits";
        assert_eq!(status.line(at(3500), 80), line);
    }

    #[test]
    fn a_narrow_screen_keeps_what_matters_and_the_way_out() {
        let mut status = Status::new("rtsp://camera.example/a/rather/long/path");
        status.decoder = Some("avdec_h264".to_owned());
        status.picture(PixelSize::new(640, 480), 1, at(0), at(1));
        status.note =
            Some("reconnecting, attempt 3: camera.example port 554 refused the connection".to_owned());
        for (columns, line) in [
            (
                80,
                " NO NEW PICTURE for 3 s | reconnecting, attempt 3: camera.example por… | q quits",
            ),
            (50, " NO NEW PICTURE for 3 s | reconnecting,… | q quits"),
            (20, " q quits"),
        ] {
            assert_eq!(status.line(at(3500), columns), line);
        }
        status.note = None;
        let line = " rtsp://camera.example/a/rather/long/p… | 640x480 | age 500 ms | q quits";
        assert_eq!(status.line(at(500), 72), line);
    }
}
