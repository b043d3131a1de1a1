//! Monotonic time as a plain number, so that rules run on virtual time.

use std::ops::Add;
use std::time::Duration;

/// Microseconds on the system's monotonic clock (`CLOCK_MONOTONIC`); zero is the clock's own origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(u64);

impl Monotonic {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);

    /// A point `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero when `earlier` lies in the future.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_saturates_instead_of_wrapping() {
        let late = Monotonic::from_micros(u64::MAX - 1) + Duration::MAX;
        assert_eq!(late, Monotonic::from_micros(u64::MAX));
    }

    #[test]
    fn since_a_later_point_is_zero() {
        assert_eq!(Monotonic::ZERO.since(Monotonic::from_micros(5)), Duration::ZERO);
    }
}
