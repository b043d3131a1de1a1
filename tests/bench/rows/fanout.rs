//! What viewers cost: one agent, watched by none, one and eight in turn.

use std::time::Duration;

use super::Work;
use crate::Options;
use crate::agent::{Agent, Carries};
use crate::clips::{self, Clip};
use crate::cpu;
use crate::report::{Bar, Figure, Spec};
use crate::stats::median_of;

pub const RAW_HD60: Work = Work {
    specs: &[
        Spec {
            name: "agent with one nv12 viewer / without, 1080p60",
            unit: "x",
            bar: Bar::AtMost(1.6),
        },
        Spec {
            name: "8 nv12 viewers / 8 runs with one, 1080p60",
            unit: "x",
            bar: Bar::AtMost(0.6),
        },
    ],
    run: |options| {
        let rounds = measure(options, &clips::hd60()?, Carries::Raw, &[0, 1, 8])?;
        Ok(vec![
            figure(&rounds, |round| round[1].cost / round[0].cost),
            figure(&rounds, |round| round[2].cost / (8.0 * round[1].cost)),
        ])
    },
};

pub const RAW_UHD60: Work = Work {
    specs: &[Spec {
        name: "agent with one nv12 viewer / without, 4k60",
        unit: "x",
        bar: Bar::AtMost(1.6),
    }],
    run: |options| {
        let rounds = measure(options, &clips::uhd60()?, Carries::Raw, &[0, 1])?;
        Ok(vec![figure(&rounds, |round| round[1].cost / round[0].cost)])
    },
};

pub const COMPRESSED_HD60: Work = Work {
    specs: &[Spec {
        name: "8 h264 viewers / one, 1080p60",
        unit: "x",
        bar: Bar::AtMost(2.0),
    }],
    run: |options| {
        let rounds = measure(options, &clips::hd60()?, Carries::Compressed, &[0, 1, 8])?;
        Ok(vec![figure(&rounds, |round| round[2].cost / round[1].cost)])
    },
};

/// Pictures per second of the clips.
const RATE: u32 = 60;

/// One agent watched by a number of viewers for a while.
#[derive(Clone, Copy, Debug)]
struct Phase {
    viewers: usize,
    /// CPU ms of the agent for each decoded picture, as if every viewer had got every picture.
    cost: f64,
    /// Share of the pictures that reached the viewers.
    delivered: f64,
}

/// One phase for each of `audiences`, the first of which is nobody.
type Round = Vec<Phase>;

fn measure(
    options: &Options,
    clip: &Clip,
    carries: Carries,
    audiences: &[usize],
) -> anyhow::Result<Vec<Round>> {
    let mut agent = Agent::playing(&clip.path, carries)?;
    let window = window(options, clip)?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds() {
        let mut round: Round = Vec::new();
        for &viewers in audiences {
            let alone = round.first().map(|phase| phase.cost);
            round.push(measure_phase(&mut agent, viewers, window, alone)?);
        }
        rounds.push(round);
    }
    Ok(rounds)
}

/// Whole rounds of the looped clip, because its pictures differ in what they cost.
fn window(options: &Options, clip: &Clip) -> anyhow::Result<Duration> {
    let least = Duration::from_secs(if options.quick { 1 } else { 4 });
    let round = Duration::from_secs(1) * u32::try_from(clip.units()?.len())? / RATE;
    let rounds = least.as_nanos().div_ceil(round.as_nanos());
    Ok(round * u32::try_from(rounds)?)
}

/// A viewer that cannot keep up misses raw pictures, which must not look like a saving: what delivering cost beyond
/// the agent `alone` is charged for every picture.
fn measure_phase(
    agent: &mut Agent,
    viewers: usize,
    window: Duration,
    alone: Option<f64>,
) -> anyhow::Result<Phase> {
    let audience = agent.open(viewers)?;
    let begin = (
        cpu::of_process(agent.pid())?,
        agent.pictures()?,
        audience.messages(),
    );
    audience.watch_for(window)?;
    let end = (
        cpu::of_process(agent.pid())?,
        agent.pictures()?,
        audience.messages(),
    );
    drop(audience);
    agent.until_unwatched()?;
    let pictures = (end.1 - begin.1) as f64;
    let plain = cpu::ms(end.0.saturating_sub(begin.0)) / pictures;
    let due = pictures * viewers as f64;
    let delivered = if viewers == 0 {
        1.0
    } else {
        ((end.2 - begin.2) as f64 / due).min(1.0)
    };
    let base = alone.unwrap_or(plain);
    Ok(Phase {
        viewers,
        cost: base + (plain - base) / delivered,
        delivered,
    })
}

fn figure(rounds: &[Round], ratio: fn(&Round) -> f64) -> Figure {
    let ratios: Vec<f64> = rounds.iter().map(ratio).collect();
    let phases = rounds.first().map_or(0, Vec::len);
    let parts: Vec<String> = (0..phases).map(|index| describe(rounds, index)).collect();
    Figure::new(&ratios, format!("CPU ms a picture: {}", parts.join(", ")))
}

fn describe(rounds: &[Round], index: usize) -> String {
    let cost = median_of(rounds.iter().map(|round| round[index].cost));
    let delivered = median_of(rounds.iter().map(|round| round[index].delivered));
    let viewers = rounds.first().map_or(0, |round| round[index].viewers);
    match viewers {
        0 => format!("{cost:.2} without"),
        _ => format!("{cost:.2} with {viewers} ({:.0} % delivered)", delivered * 100.0),
    }
}
