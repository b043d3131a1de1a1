//! When each access unit of a recording is due: the file's own timing, laid out on the local clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crossdesk_core::time::Monotonic;

/// What "no timing signalled" means for a recording: 30 pictures a second.
pub const DEFAULT_INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 30);
/// Faster timing than this is damage, not a recording; following it would only flood the decoder.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// A longer jump between two pictures is a damaged timestamp; playing through beats appearing dead.
const MAX_INTERVAL: Duration = Duration::from_secs(10);
/// Lateness beyond this is not caught up: the machine slept or was overloaded, and real time has moved on.
const MAX_LATENESS: Duration = Duration::from_millis(250);
/// Most pictures an H.264 stream may reorder (ITU-T H.264 A.3.1: `MaxDpbFrames` is at most 16).
const REORDER_DEPTH: usize = 16;

/// Timing of one access unit as the file states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Decoding time from the start of the file.
    pub decode: Option<Duration>,
    /// How long its picture lasts.
    pub duration: Option<Duration>,
    /// True for the first access unit of a round.
    pub round_start: bool,
}

/// Lays successive stamps out on the local clock.
#[derive(Debug, Default)]
pub struct Timeline {
    due: Option<Monotonic>,
    decode: Option<Duration>,
    interval: Option<Duration>,
}

impl Timeline {
    /// When the access unit with this stamp is due; the first is due `now`.
    pub fn schedule(&mut self, now: Monotonic, stamp: Stamp) -> Monotonic {
        let due = match self.due {
            None => now,
            Some(previous) => {
                let due = previous + self.step(stamp);
                if now.since(due) > MAX_LATENESS { now } else { due }
            }
        };
        if let Some(duration) = stamp.duration.filter(|d| plausible(*d)) {
            self.interval = Some(duration);
        }
        self.due = Some(due);
        self.decode = stamp.decode;
        due
    }

    /// Time from the previous access unit to this one.
    fn step(&mut self, stamp: Stamp) -> Duration {
        let fallback = self.interval.unwrap_or(DEFAULT_INTERVAL);
        let (Some(before), Some(after), false) = (self.decode, stamp.decode, stamp.round_start) else {
            return fallback;
        };
        match after.checked_sub(before).filter(|gap| plausible(*gap)) {
            Some(gap) => {
                self.interval = Some(gap);
                gap
            }
            None => fallback,
        }
    }
}

fn plausible(gap: Duration) -> bool {
    (MIN_INTERVAL..=MAX_INTERVAL).contains(&gap)
}

/// Gives decoding times to access units that carry only presentation times (Matroska).
///
/// In decoding order the n-th smallest presentation time is a valid decoding clock, and it needs to look at
/// most `REORDER_DEPTH` access units ahead.
#[derive(Debug)]
pub struct DecodeClock<T> {
    waiting: VecDeque<T>,
    times: BinaryHeap<Reverse<Duration>>,
}

impl<T> Default for DecodeClock<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            times: BinaryHeap::new(),
        }
    }
}

impl<T> DecodeClock<T> {
    /// Takes the next access unit in decoding order; gives back the oldest once its time is certain.
    pub fn push(&mut self, unit: T, presentation: Duration) -> Option<(T, Duration)> {
        self.waiting.push_back(unit);
        self.times.push(Reverse(presentation));
        (self.waiting.len() > REORDER_DEPTH).then(|| self.pop()).flatten()
    }

    /// Gives back the oldest access unit at the end of the stream.
    pub fn pop(&mut self) -> Option<(T, Duration)> {
        let Reverse(time) = self.times.pop()?;
        Some((self.waiting.pop_front()?, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: u64) -> Monotonic {
        Monotonic::from_micros(n * 1000)
    }

    fn stamp(decode: u64) -> Stamp {
        Stamp {
            decode: Some(ms(decode)),
            ..Stamp::default()
        }
    }

    #[test]
    fn the_first_unit_is_due_at_once_and_the_rest_by_the_files_own_gaps() {
        let mut line = Timeline::default();
        let due: Vec<_> = [500, 520, 560, 561]
            .map(|t| line.schedule(at(1000), stamp(t)))
            .into();
        assert_eq!(due, [at(1000), at(1020), at(1060), at(1061)]);
    }

    #[test]
    fn without_timing_there_are_thirty_a_second() {
        let mut line = Timeline::default();
        let first = line.schedule(at(0), Stamp::default());
        let second = line.schedule(at(0), Stamp::default());
        assert_eq!(second.since(first).as_micros(), 33_333);
    }

    #[test]
    fn a_new_round_follows_after_one_interval() {
        let mut line = Timeline::default();
        line.schedule(at(0), stamp(0));
        line.schedule(at(0), stamp(40));
        let again = Stamp {
            round_start: true,
            ..stamp(0)
        };
        assert_eq!(line.schedule(at(0), again), at(80));
    }

    #[test]
    fn damaged_times_are_played_through() {
        let mut line = Timeline::default();
        let due: Vec<_> = [0, 20, 900_000, 900_000, 5, 25]
            .map(|t| line.schedule(at(0), stamp(t)))
            .into();
        assert_eq!(due, [at(0), at(20), at(40), at(60), at(80), at(100)]);
    }

    #[test]
    fn a_long_delay_is_not_caught_up_but_a_short_one_is() {
        let mut line = Timeline::default();
        line.schedule(at(0), stamp(0));
        assert_eq!(line.schedule(at(200), stamp(20)), at(20));
        assert_eq!(line.schedule(at(5000), stamp(40)), at(5000));
        assert_eq!(line.schedule(at(5000), stamp(60)), at(5020));
    }

    #[test]
    fn presentation_times_become_a_rising_decoding_clock() {
        let mut clock = DecodeClock::default();
        // I P B B, four times over, forty milliseconds apart.
        let shown: Vec<u64> = (0..16)
            .map(|n| [0, 3, 1, 2][n % 4] * 40 + (n as u64 / 4) * 160)
            .collect();
        let mut out: Vec<_> = shown.iter().filter_map(|&t| clock.push(t, ms(t))).collect();
        out.extend(std::iter::from_fn(|| clock.pop()));
        let (units, times): (Vec<u64>, Vec<Duration>) = out.into_iter().unzip();
        assert_eq!(units, shown);
        assert_eq!(times, (0..16).map(|n| ms(n * 40)).collect::<Vec<_>>());
    }
}
