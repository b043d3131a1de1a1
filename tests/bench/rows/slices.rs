//! What several slices in a picture bring on two cores.

use super::Work;
use crate::Options;
use crate::clips;
use crate::report::{Bar, Figure, Spec};
use crate::stats::median_of;
use crate::worker::{self, Feed, Kind};

/// Times the clip is decoded in one round.
const REPEATS: usize = 4;

pub const WORK: Work = Work {
    specs: &[
        Spec {
            name: "4 slices / 1 slice, pictures per second at 4K",
            unit: "x",
            bar: Bar::AtLeast(1.4),
        },
        Spec {
            name: "pictures held with 4 slices",
            unit: "pictures",
            bar: Bar::AtMost(0.0),
        },
    ],
    run,
};

fn run(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let (whole, sliced) = (clips::uhd60()?, clips::uhd60_in_slices()?);
    let mut rates = Vec::new();
    for _ in 0..options.rounds() {
        let one = worker::measure(Kind::Receive, Feed::Fast, &whole, REPEATS)?.pictures_per_second();
        let four = worker::measure(Kind::Receive, Feed::Fast, &sliced, REPEATS)?.pictures_per_second();
        rates.push((one, four));
    }
    let ratios: Vec<f64> = rates.iter().map(|(one, four)| four / one).collect();
    let one = median_of(rates.iter().map(|rate| rate.0));
    let four = median_of(rates.iter().map(|rate| rate.1));
    let live = worker::measure(Kind::Receive, Feed::Live, &sliced, 1)?;
    let note = format!(
        "{four:.0} and {one:.0} pictures/s on {} cores",
        std::thread::available_parallelism()?
    );
    Ok(vec![
        Figure::new(&ratios, note),
        Figure::new(&[live.held as f64], format!("of {}", live.pictures)),
    ])
}
