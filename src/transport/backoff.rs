//! How long to wait before the next attempt.

use std::time::Duration;

/// First wait: a server that restarts is back within a second or two.
const FIRST: Duration = Duration::from_millis(500);
/// Longest wait: a person who plugs the camera back in sees it come back soon.
const LONGEST: Duration = Duration::from_secs(10);

/// Waits that double from half a second to ten seconds, until something works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    attempt: u32,
}

impl Backoff {
    /// Counts one more failure; gives the number of the coming attempt, from 1, and the wait before it.
    pub fn fail(&mut self) -> (u32, Duration) {
        self.attempt = self.attempt.saturating_add(1);
        let doublings = (self.attempt - 1).min(16);
        (self.attempt, (FIRST * 2u32.pow(doublings)).min(LONGEST))
    }

    /// Something worked: the next failure starts over.
    pub fn succeed(&mut self) {
        self.attempt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_ten_seconds_and_start_over_after_success() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..7).map(|_| backoff.fail().1.as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        backoff.succeed();
        assert_eq!(backoff.fail(), (1, FIRST));
    }

    #[test]
    fn counting_never_overflows() {
        let mut backoff = Backoff { attempt: u32::MAX };
        assert_eq!(backoff.fail(), (u32::MAX, LONGEST));
    }
}
