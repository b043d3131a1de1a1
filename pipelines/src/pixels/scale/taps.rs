//! Which samples along one axis make each sample of the result, and how much each of them counts.

use std::f64::consts::PI;

/// Steps of the filter's table; values between them are interpolated, within a millionth.
const STEPS: usize = 1024;

/// Taps from which weights get another bit each time their number doubles, so that they keep their precision.
const COARSE: usize = 16;

/// One, as a sum of weights without extra bits.
const ONE: u32 = 1 << 16;

/// The right half of the Hamming-windowed sinc, from its middle to its end, as a table: sines cost more than all
/// else here.
pub struct Hamming {
    values: Vec<f32>,
}

impl Default for Hamming {
    fn default() -> Self {
        let value = |i: usize| hamming(i as f64 / STEPS as f64) as f32;
        Self {
            values: (0..=STEPS).map(value).collect(),
        }
    }
}

impl Hamming {
    /// The value at `x`, counted in radii from the middle.
    fn at(&self, x: f64) -> f64 {
        let place = x.abs() * STEPS as f64;
        let step = place as usize;
        match self.values.get(step..step + 2) {
            Some(&[a, b]) => f64::from(a) + f64::from(b - a) * (place - step as f64),
            _ => 0.0,
        }
    }
}

/// The filter itself: sharp text without ringing or uneven strokes; see `docs/decisions/screenshots.md`.
pub fn hamming(x: f64) -> f64 {
    let turn = PI * x.abs();
    if turn == 0.0 {
        1.0
    } else if turn >= PI {
        0.0
    } else {
        (0.54 + 0.46 * turn.cos()) * turn.sin() / turn
    }
}

/// The weights of one axis. All results have the same number of taps; some may weigh nothing.
#[derive(Default)]
pub struct Taps {
    first: usize,
    samples: usize,
    count: usize,
    extra: u32,
    starts: Vec<usize>,
    weights: Vec<u16>,
}

impl Taps {
    /// Makes `results` samples of the `[start, length]` of an axis, counted in samples of it.
    pub fn set(&mut self, filter: &Hamming, [start, length]: [f64; 2], results: usize) {
        let ratio = length / results as f64;
        let radius = ratio.max(1.0);
        self.first = start as usize;
        self.samples = ((start + length).ceil() as usize)
            .saturating_sub(self.first)
            .max(1);
        let copied = ratio == 1.0 && start.fract() == 0.0;
        let reached = if copied { 1 } else { (2.0 * radius).ceil() as usize };
        self.count = reached.min(self.samples);
        self.extra = (self.count / COARSE).checked_ilog2().unwrap_or(0);
        self.starts.clear();
        self.weights.clear();
        let mut values = Vec::with_capacity(self.count);
        for i in 0..results {
            // Of the first sample's middle.
            let centre = start - self.first as f64 + (i as f64 + 0.5) * ratio - 0.5;
            // The cast rounds down what is not negative; casts are cheaper than `floor`.
            let begin = ((centre - radius + 1.0).max(0.0) as usize).min(self.samples - self.count);
            values.clear();
            values.extend((begin..begin + self.count).map(|x| filter.at((x as f64 - centre) / radius)));
            self.starts.push(begin);
            self.push_weights(&values);
        }
    }

    /// Rounds `values` to weights that add up to one exactly.
    fn push_weights(&mut self, values: &[f64]) {
        let scale = f64::from(ONE << self.extra) / values.iter().sum::<f64>();
        let (mut sum, mut given) = (0.0, 0);
        for value in values {
            sum += value;
            let until = (sum * scale + 0.5) as u32;
            // A lone weight of one is cut by what no sample shows.
            self.weights.push((until - given).min(ONE - 1) as u16);
            given = until;
        }
    }

    /// The first sample that counts.
    pub fn first(&self) -> usize {
        self.first
    }

    /// How many samples count from there.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Weights of each result. A single one means a copy.
    pub fn count(&self) -> usize {
        self.count
    }

    /// By how many bits the sum of weights is larger than 16 bits.
    pub fn extra(&self) -> u32 {
        self.extra
    }

    /// What products lose on average when their fractions are cut off, all taps of a result together.
    pub fn cut(&self) -> u32 {
        self.count as u32 / 2
    }

    /// The first sample for a result, counted from `first`, and the weights from there.
    pub fn of(&self, result: usize) -> (usize, &[u16]) {
        let weights = &self.weights[result * self.count..][..self.count];
        (self.starts[result], weights)
    }
}
