//! The only place that reads the clocks.

use crossdesk_core::time::Monotonic;

/// The current time on `CLOCK_MONOTONIC`, the clock of every timestamp this project sends.
#[cfg(unix)]
pub fn now() -> Monotonic {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = t.tv_sec.unsigned_abs() * 1_000_000 + t.tv_nsec.unsigned_abs() / 1_000;
    Monotonic::from_micros(micros)
}

/// The current time since the first call, on systems without `CLOCK_MONOTONIC`.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "this file is the exception")]
pub fn now() -> Monotonic {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = ORIGIN.get_or_init(Instant::now);
    let micros = u64::try_from(origin.elapsed().as_micros()).unwrap_or(u64::MAX);
    Monotonic::from_micros(micros)
}

/// Seconds since 1970-01-01 UTC on the system's clock; zero when it is set to before.
#[expect(clippy::disallowed_methods, reason = "this file is the exception")]
pub fn unix_seconds() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// A point from which libraries may count that only know [`std::time::Instant`].
#[expect(clippy::disallowed_methods, reason = "this file is the exception")]
pub fn instant() -> std::time::Instant {
    std::time::Instant::now()
}
