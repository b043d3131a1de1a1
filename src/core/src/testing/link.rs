//! A link of packets on virtual time with seeded loss, delay, jitter and a limited rate.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Seeded;
use crate::time::Monotonic;

/// What a link does to packets.
#[derive(Clone, Copy, Debug)]
pub struct LinkKind {
    /// Time on the way.
    pub delay: Duration,
    /// Up to this much more, by chance: packets overtake each other.
    pub jitter: Duration,
    /// Packets lost, in thousandths.
    pub loss_permille: u32,
    /// After a loss, the chance in thousandths that the next one is lost, too; 0 for independent losses.
    pub burst_permille: u32,
    /// Bits per second; 0 is unlimited.
    pub rate: u64,
    /// Most time a packet waits for that rate before it is dropped.
    pub queue: Duration,
}

impl LinkKind {
    /// A clean link with `delay`.
    pub const fn clean(delay: Duration) -> Self {
        Self {
            delay,
            jitter: Duration::ZERO,
            loss_permille: 0,
            burst_permille: 0,
            rate: 0,
            queue: Duration::from_millis(300),
        }
    }
}

/// One direction of a link that carries `T`.
#[derive(Debug)]
pub struct Link<T> {
    /// What it does; may be changed on the way.
    pub kind: LinkKind,
    random: Seeded,
    flying: BTreeMap<(Monotonic, u64), T>,
    sent: u64,
    lost: u64,
    bursting: bool,
    /// When the last byte accepted so far has left.
    free: Monotonic,
}

impl<T> Link<T> {
    /// An empty link; equal seeds lose the same packets.
    pub fn new(kind: LinkKind, seed: u64) -> Self {
        Self {
            kind,
            random: Seeded::new(seed),
            flying: BTreeMap::new(),
            sent: 0,
            lost: 0,
            bursting: false,
            free: Monotonic::ZERO,
        }
    }

    /// Sends a packet of `bytes` bytes.
    pub fn send(&mut self, now: Monotonic, bytes: usize, packet: T) {
        self.sent += 1;
        let chance = if self.bursting && self.kind.burst_permille > 0 {
            self.kind.burst_permille
        } else {
            self.kind.loss_permille
        };
        self.bursting = self.random.below(1000) < chance;
        if self.bursting || !self.accept(now, bytes) {
            self.lost += 1;
            return;
        }
        let extra = self.random.below(self.kind.jitter.as_micros() as u32 + 1);
        let arrival = self.free.max(now) + self.kind.delay + Duration::from_micros(u64::from(extra));
        self.flying.insert((arrival, self.sent), packet);
    }

    /// The next packet that has arrived by `now`.
    pub fn receive(&mut self, now: Monotonic) -> Option<T> {
        let first = self.flying.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// When the next packet arrives.
    pub fn next_arrival(&self) -> Option<Monotonic> {
        self.flying.keys().next().map(|(arrival, _)| *arrival)
    }

    /// Packets sent and lost so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.sent, self.lost)
    }

    /// Puts the packet behind those that wait for the rate, if it has room there.
    fn accept(&mut self, now: Monotonic, bytes: usize) -> bool {
        self.free = self.free.max(now);
        if self.kind.rate == 0 {
            return true;
        }
        if self.free.since(now) > self.kind.queue {
            return false;
        }
        self.free = self.free + Duration::from_micros(bytes as u64 * 8_000_000 / self.kind.rate);
        true
    }
}
