//! Percentiles over the most recent samples of one kind.

use std::time::Duration;

use crate::automation;

/// Samples remembered: 8 s at 60/s, so that figures follow a change quickly and sorting them stays cheap.
const SAMPLES: usize = 512;

/// Points of a distribution, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// Half of the samples are at most this.
    pub p50_us: u64,
    /// 95 % of the samples are at most this.
    pub p95_us: u64,
    /// 99 % of the samples are at most this.
    pub p99_us: u64,
}

impl From<Percentiles> for automation::Percentiles {
    fn from(points: Percentiles) -> Self {
        Self {
            p50_us: points.p50_us,
            p95_us: points.p95_us,
        }
    }
}

/// A ring of recent durations.
#[derive(Debug, Default)]
pub(super) struct Samples {
    micros: Vec<u32>,
    oldest: usize,
}

impl Samples {
    pub(super) fn add(&mut self, span: Duration) {
        let micros = u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        if self.micros.len() < SAMPLES {
            self.micros.push(micros);
        } else {
            self.micros[self.oldest] = micros;
            self.oldest = (self.oldest + 1) % SAMPLES;
        }
    }

    /// `None` before the first sample.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        // Nearest rank: the smallest sample that at least this share does not exceed.
        let at = |share: usize| {
            let rank = (sorted.len() * share).div_ceil(100);
            sorted.get(rank.checked_sub(1)?).copied().map(u64::from)
        };
        Some(Percentiles {
            p50_us: at(50)?,
            p95_us: at(95)?,
            p99_us: at(99)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut samples = Samples::default();
        assert_eq!(samples.percentiles(), None);
        for ms in (1..=100).rev() {
            samples.add(Duration::from_micros(ms));
        }
        let expected = Percentiles {
            p50_us: 50,
            p95_us: 95,
            p99_us: 99,
        };
        assert_eq!(samples.percentiles(), Some(expected));
    }

    #[test]
    fn old_samples_make_room() {
        let mut samples = Samples::default();
        samples.add(Duration::from_secs(5000));
        for _ in 0..SAMPLES {
            samples.add(Duration::from_micros(3));
        }
        let expected = Percentiles {
            p50_us: 3,
            p95_us: 3,
            p99_us: 3,
        };
        assert_eq!(samples.percentiles(), Some(expected));
    }
}
