//! How soon a new process answers.

use std::time::Instant;

use super::Work;
use crate::Options;
use crate::agent::Agent;
use crate::cpu;
use crate::report::{Bar, Figure, Spec};

pub const WORK: Work = Work {
    specs: &[Spec {
        name: "hello after process start, warm registry",
        unit: "ms",
        bar: Bar::Below(150.0),
    }],
    run,
};

fn run(options: &Options) -> anyhow::Result<Vec<Figure>> {
    // Fills GStreamer's registry and the page cache.
    Agent::start(&["--video-ws", "--source", "test:"])?;
    let mut samples = Vec::new();
    for _ in 0..2 * options.rounds() {
        let start = Instant::now();
        let agent = Agent::start(&["--video-ws", "--source", "test:"])?;
        samples.push(cpu::ms(start.elapsed()));
        drop(agent);
    }
    Ok(vec![Figure::new(&samples, "spawn to reply")])
}
