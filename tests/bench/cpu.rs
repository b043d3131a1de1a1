//! Processor time and memory, of this process and of children.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
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

/// Length of a tick in `/proc/PID/stat`: Linux tells user programs 100 a second whatever the kernel runs at.
const TICK: Duration = Duration::from_millis(10);

/// Processor time process `pid` has used, ended threads included, to the tick.
pub fn of_process(pid: u32) -> anyhow::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; the fields behind it are numbers, user and system time 12th and 13th.
    let (_, fields) = text.rsplit_once(')').context("a stat without a name")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let (user, system) = fields.get(11).zip(fields.get(12)).context("a short stat")?;
    Ok(TICK * (user.parse::<u32>()? + system.parse::<u32>()?))
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

/// Keeps the calling thread, and processes it starts, on one processor until it is dropped.
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// On the last processor this thread may use: the first is where most interrupts go.
    pub fn start() -> anyhow::Result<Self> {
        let before = sched_getaffinity(None)?;
        let last = (0..CpuSet::MAX_CPU).rfind(|&processor| before.is_set(processor));
        let mut one = CpuSet::new();
        one.set(last.context("a thread without a processor")?);
        sched_setaffinity(None, &one)?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It was allowed before; should it fail, the next rows are measured on one processor.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Milliseconds as a number.
pub fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
