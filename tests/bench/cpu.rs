//! Processor time and memory, of this process and of children.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Processor time this process has used, all threads together.
pub fn of_this_process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Processor time the calling thread has used.
pub fn of_this_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Processor time process `pid` has used in its living threads, to the nanosecond where `/proc/PID/stat` has ticks of
/// 10 ms. Differences are right as long as no thread ends in between.
pub fn of_process(pid: u32) -> anyhow::Result<Duration> {
    let mut nanoseconds = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between being listed and being read.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else {
            continue;
        };
        let first = text.split(' ').next().context("an empty schedstat")?;
        nanoseconds += first.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Memory of process `pid` that is in RAM, in MB (10^6 bytes).
pub fn resident_mb(pid: u32) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix("kB"))
        .context("no VmRSS")?;
    Ok(kib.trim().parse::<f64>()? * 1024.0 / 1e6)
}

/// Milliseconds as a number.
pub fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
