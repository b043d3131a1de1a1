//! Samples of one figure, and what is told about them.

use serde::Serialize;

/// Smallest, middle and largest of the samples of one row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
    pub rounds: usize,
}

impl Spread {
    /// Of at least one sample.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self {
            min: sorted.first().copied().unwrap_or(f64::NAN),
            median: median(&sorted),
            max: sorted.last().copied().unwrap_or(f64::NAN),
            rounds: sorted.len(),
        }
    }
}

/// The middle of sorted samples, or the mean of the two in the middle.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The middle of samples in any order.
pub fn median_of(samples: impl IntoIterator<Item = f64>) -> f64 {
    let samples: Vec<f64> = samples.into_iter().collect();
    Spread::of(&samples).median
}
