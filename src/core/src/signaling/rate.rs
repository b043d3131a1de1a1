//! Who may try again when: failed checks per target and per source, and work per source.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use super::{FAILURE_WINDOW, MAX_TRACKED, QUOTA_WINDOW};
use crate::time::Monotonic;

/// Where a socket comes from: an IPv4 address, or the /64 network that one IPv6 customer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(u128);

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self(v4.to_bits().into()),
            IpAddr::V6(v6) => Self(v6.to_bits() >> 64 << 64 | 1 << 63),
        }
    }
}

#[derive(Debug, Default)]
struct Entry {
    failures: VecDeque<Monotonic>,
    blocked_until: Option<Monotonic>,
    newest: Monotonic,
}

/// Failures per key within [`FAILURE_WINDOW`]; at the limit the key is blocked for as long.
#[derive(Debug)]
pub struct Failures<K> {
    limit: usize,
    entries: BTreeMap<K, Entry>,
}

impl<K: Ord + Copy> Failures<K> {
    /// Blocks a key at its `limit`-th failure.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            entries: BTreeMap::new(),
        }
    }

    /// How long `key` stays blocked; `None` when it may be tried.
    pub fn blocked(&self, now: Monotonic, key: K) -> Option<Duration> {
        let until = self.entries.get(&key)?.blocked_until?;
        (until > now).then(|| until.since(now))
    }

    /// A check of `key` has failed.
    pub fn note(&mut self, now: Monotonic, key: K) {
        self.make_room(now, key);
        let entry = self.entries.entry(key).or_default();
        entry.newest = now;
        entry.failures.push_back(now);
        while entry
            .failures
            .front()
            .is_some_and(|at| *at + FAILURE_WINDOW <= now)
        {
            entry.failures.pop_front();
        }
        if entry.failures.len() >= self.limit {
            entry.failures.clear();
            entry.blocked_until = Some(now + FAILURE_WINDOW);
        }
    }

    /// Forgets the oldest when every place is taken.
    fn make_room(&mut self, now: Monotonic, key: K) {
        if self.entries.len() < MAX_TRACKED || self.entries.contains_key(&key) {
            return;
        }
        self.expire(now);
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.newest);
        if let Some(key) = oldest.map(|(key, _)| *key).filter(|_| self.len() >= MAX_TRACKED) {
            self.entries.remove(&key);
        }
    }

    /// Forgets what no longer counts.
    pub fn expire(&mut self, now: Monotonic) {
        self.entries
            .retain(|_, entry| entry.newest + FAILURE_WINDOW > now);
    }

    /// Keys remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Work per source: a burst of a whole window's quota, then evenly spaced.
#[derive(Debug)]
pub struct Quota {
    spacing: Duration,
    /// When each source will have earned back all it has used.
    whole_at: BTreeMap<Source, Monotonic>,
}

impl Quota {
    /// Allows `per_window` pieces of work each [`QUOTA_WINDOW`].
    pub fn new(per_window: u32) -> Self {
        Self {
            spacing: QUOTA_WINDOW / per_window.max(1),
            whole_at: BTreeMap::new(),
        }
    }

    /// When `source` may cause the next piece.
    pub fn ready_at(&self, source: Source) -> Monotonic {
        let whole = self.whole_at.get(&source).copied().unwrap_or_default();
        let after = (whole + self.spacing).since(Monotonic::ZERO);
        Monotonic::ZERO + after.saturating_sub(QUOTA_WINDOW)
    }

    /// `source` causes one.
    pub fn spend(&mut self, now: Monotonic, source: Source) {
        let whole = self.whole_at.entry(source).or_default();
        *whole = (*whole).max(now) + self.spacing;
    }

    /// True when a source that is not known yet could be remembered.
    pub fn has_room(&self, source: Source) -> bool {
        self.whole_at.len() < MAX_TRACKED || self.whole_at.contains_key(&source)
    }

    /// Forgets sources that have everything back.
    pub fn expire(&mut self, now: Monotonic) {
        self.whole_at.retain(|_, whole| *whole > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn the_block_starts_at_the_limit_and_lasts_its_time() {
        let mut failures = Failures::new(3);
        for second in [10, 20, 30] {
            assert_eq!(failures.blocked(at(second), 1), None);
            failures.note(at(second), 1);
        }
        assert_eq!(failures.blocked(at(30), 1), Some(Duration::from_secs(900)));
        assert_eq!(failures.blocked(at(929), 1), Some(Duration::from_secs(1)));
        assert_eq!(failures.blocked(at(930), 1), None);
        assert_eq!(failures.blocked(at(30), 2), None);
    }

    #[test]
    fn failures_outside_the_window_do_not_count() {
        let mut failures = Failures::new(2);
        failures.note(at(0), 1);
        failures.note(at(900), 1);
        assert_eq!(failures.blocked(at(900), 1), None);
        failures.note(at(1799), 1);
        assert!(failures.blocked(at(1799), 1).is_some());
    }

    #[test]
    fn remembering_has_a_bound_and_forgets_the_oldest() {
        let mut failures = Failures::new(1);
        for key in 0..=MAX_TRACKED {
            failures.note(at(key as u64 / 100), key);
        }
        assert_eq!(failures.len(), MAX_TRACKED);
        assert_eq!(failures.blocked(at(200), 0_usize), None);
        assert!(failures.blocked(at(200), MAX_TRACKED).is_some());
        failures.expire(at(5000));
        assert_eq!(failures.len(), 0);
    }

    #[test]
    fn a_quota_is_a_burst_and_then_a_rate() {
        let mut quota = Quota::new(60);
        let source = Source(1);
        for _ in 0..60 {
            assert!(quota.ready_at(source) <= at(100));
            quota.spend(at(100), source);
        }
        assert_eq!(quota.ready_at(source), at(101));
        quota.spend(at(101), source);
        assert_eq!(quota.ready_at(source), at(102));
        quota.expire(at(161));
        assert_eq!(quota.ready_at(source), Monotonic::ZERO);
    }

    #[test]
    fn a_customers_ipv6_network_is_one_source() {
        let source = |text: &str| Source::from(text.parse::<IpAddr>().expect("an address"));
        assert_eq!(source("2001:db8::1"), source("2001:db8::2:3"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
    }
}
