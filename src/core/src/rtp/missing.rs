//! Packets that did not come: when to ask for them, and when they are not worth waiting for.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time::Monotonic;

/// Most packets waited for; more than that is a break, not a loss.
const MAX_MISSING: usize = 2048;

/// A round trip before one was measured.
const GUESSED_ROUND_TRIP: Duration = Duration::from_millis(60);
const MOST_ROUND_TRIP: Duration = Duration::from_millis(500);
/// How long a packet may be overtaken before it counts as lost; grows with the reordering seen.
const LEAST_REORDERING: Duration = Duration::from_millis(2);
const MOST_REORDERING: Duration = Duration::from_millis(80);
/// Packets remembered that came after they were asked for: a second copy tells that the first was only late.
const MAX_ANSWERED: usize = 512;
/// Least time between two requests for the same packet.
const LEAST_RETRY: Duration = Duration::from_millis(10);
/// A hole is waited for a few round trips, within these limits: then a key frame comes sooner.
const LEAST_PATIENCE: Duration = Duration::from_millis(200);
const MOST_PATIENCE: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
struct Hole {
    noticed: Monotonic,
    ask: Monotonic,
    asked: u32,
    first_asked: Monotonic,
    last_asked: Monotonic,
}

/// The holes of one stream.
#[derive(Debug, Default)]
pub(super) struct Missing {
    holes: BTreeMap<u64, Hole>,
    round_trip: Option<Duration>,
    reordering: Duration,
    /// How late they were.
    answered: BTreeMap<u64, Duration>,
}

impl Missing {
    /// The packets `from..to` were overtaken. False when that are too many to be had back.
    pub fn notice(&mut self, now: Monotonic, from: u64, to: u64) -> bool {
        let count = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        if count.saturating_add(self.holes.len()) > MAX_MISSING {
            return false;
        }
        let hole = Hole {
            noticed: now,
            ask: now + self.reordering.max(LEAST_REORDERING),
            asked: 0,
            first_asked: now,
            last_asked: now,
        };
        self.holes.extend((from..to).map(|sequence| (sequence, hole)));
        true
    }

    /// Packet `sequence` came after all; true when it was missing.
    pub fn fill(&mut self, now: Monotonic, sequence: u64) -> bool {
        let Some(hole) = self.holes.remove(&sequence) else {
            return false;
        };
        let late = now.since(hole.noticed);
        if hole.asked == 0 {
            self.overtaken(late);
            return true;
        }
        // Which of several requests was answered cannot be told, so only the first guess is made of that.
        self.round_trip = match (self.round_trip, hole.asked) {
            (None, _) => Some(now.since(hole.first_asked)),
            (Some(known), 1) => Some((known * 7 + now.since(hole.last_asked)) / 8),
            (known, _) => known,
        };
        if self.answered.len() == MAX_ANSWERED {
            self.answered.pop_first();
        }
        self.answered.insert(sequence, late);
        true
    }

    /// Forgets everything below `sequence`.
    pub fn forget_below(&mut self, sequence: u64) {
        self.holes = self.holes.split_off(&sequence);
    }

    /// Packet `sequence` came once more: when it was asked for, that was too soon.
    pub fn repeated(&mut self, sequence: u64) {
        if let Some(late) = self.answered.remove(&sequence) {
            self.overtaken(late);
            self.round_trip = Some((self.round_trip() * 9 / 8).min(MOST_ROUND_TRIP));
        }
    }

    fn overtaken(&mut self, late: Duration) {
        self.reordering = self.reordering.max(late * 5 / 4).min(MOST_REORDERING);
    }

    /// True when packet `sequence` is waited for.
    pub fn contains(&self, sequence: u64) -> bool {
        self.holes.contains_key(&sequence)
    }

    /// Forgets the hole that was waited for longest, and says which it was.
    pub fn forget_oldest(&mut self) -> Option<u64> {
        self.holes.pop_first().map(|(sequence, _)| sequence)
    }

    /// The packets to ask for now, and then again later. Reordering seen long ago stops to count.
    pub fn ask(&mut self, now: Monotonic) -> Vec<u64> {
        let retry = (self.round_trip() * 9 / 8).max(LEAST_RETRY);
        let mut wanted = Vec::new();
        for (sequence, hole) in &mut self.holes {
            if hole.ask <= now {
                hole.ask = now + retry;
                if hole.asked == 0 {
                    hole.first_asked = now;
                }
                hole.asked += 1;
                hole.last_asked = now;
                wanted.push(*sequence);
            }
        }
        if !wanted.is_empty() {
            self.reordering = self.reordering * 31 / 32;
        }
        wanted
    }

    /// True when the oldest hole has been waited for long enough.
    pub fn is_hopeless(&self, now: Monotonic) -> bool {
        let oldest = self.holes.first_key_value();
        oldest.is_some_and(|(_, hole)| now.since(hole.noticed) >= self.patience())
    }

    /// When [`ask`](Self::ask) or [`is_hopeless`](Self::is_hopeless) has something to say.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let end = self
            .holes
            .first_key_value()
            .map(|(_, hole)| hole.noticed + self.patience());
        let ask = self.holes.values().map(|hole| hole.ask).min();
        ask.into_iter().chain(end).min()
    }

    /// Packets waited for.
    pub fn len(&self) -> usize {
        self.holes.len()
    }

    /// The round trip as far as it is known: from how long answers took.
    pub fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or(GUESSED_ROUND_TRIP)
    }

    fn patience(&self) -> Duration {
        (self.round_trip() * 6 + Duration::from_millis(100)).clamp(LEAST_PATIENCE, MOST_PATIENCE)
    }
}
