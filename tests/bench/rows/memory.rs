//! What an agent keeps in memory while a 4K stream runs and nobody watches.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::Work;
use crate::Options;
use crate::agent::{Agent, Carries};
use crate::clips;
use crate::cpu;
use crate::report::{Bar, Figure, Spec};
use crate::stats::{Spread, median_of};

/// Growth below this is what an allocator does anyway, in MB; a leak of one 4K picture is 12 MB.
const FLAT_MB: f64 = 4.0;

/// Seconds watched unless `SOAK` says otherwise; the bar speaks of 600.
const SECONDS: u64 = 60;

pub const WORK: Work = Work {
    specs: &[
        Spec {
            name: "memory of the agent, 4k60 without viewer",
            unit: "MB",
            bar: Bar::Below(250.0),
        },
        Spec {
            name: "its growth from the third to the last quarter",
            unit: "MB",
            bar: Bar::AtMost(FLAT_MB),
        },
    ],
    run,
};

fn run(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let asked = std::env::var("SOAK").ok().map(|text| text.parse()).transpose()?;
    let seconds = asked.unwrap_or(if options.quick { 12 } else { SECONDS });
    let agent = Agent::playing(&clips::uhd60()?.path, Carries::Compressed)?;
    // Nobody ever sends: waiting on it is waiting for the next second.
    let (_quiet, second) = channel::<()>();
    let mut samples = Vec::new();
    for _ in 0..seconds.max(4) {
        let _ = second.recv_timeout(Duration::from_secs(1));
        samples.push(cpu::resident_mb(agent.pid())?);
    }
    let quarter = samples.len() / 4;
    let third = median_of(samples[2 * quarter..3 * quarter].iter().copied());
    let last = median_of(samples[3 * quarter..].iter().copied());
    let most = Spread::of(&samples).max;
    // The bar is for the whole time, so the largest sample is the figure.
    let figure = Figure {
        spread: Spread {
            median: most,
            ..Spread::of(&samples)
        },
        note: format!("largest of {seconds} s"),
    };
    Ok(vec![
        figure,
        Figure::new(&[last - third], format!("{third:.1} to {last:.1} MB")),
    ])
}
