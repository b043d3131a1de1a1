//! Scaled planes beside exact arithmetic.

use proptest::prelude::*;

use super::super::planes::testing::noise;
use super::taps::hamming;
use super::*;

/// Bytes after a row.
const PADDING: usize = 5;

/// A plane with padding after every row but the last, which is foreign to the picture.
struct Source {
    data: Vec<u8>,
    stride: usize,
    kinds: usize,
}

impl Source {
    fn new(columns: usize, rows: usize, kinds: usize, value: impl Fn(usize, usize, usize) -> u8) -> Self {
        let stride = columns * kinds + PADDING;
        let mut data = vec![0xEE; stride * rows - PADDING];
        for y in 0..rows {
            for x in 0..columns * kinds {
                data[y * stride + x] = value(x % kinds, x / kinds, y);
            }
        }
        Self { data, stride, kinds }
    }

    fn scale(&self, crop: [f64; 4], columns: u32, rows: u32) -> Vec<u8> {
        let mut out = Vec::new();
        Scaler::default().scale(&self.part(crop), PixelSize::new(columns, rows), &mut out);
        out
    }

    fn part(&self, crop: [f64; 4]) -> Part<'_> {
        let plane = Plane {
            data: &self.data,
            stride: self.stride,
        };
        Part {
            plane,
            paired: self.kinds == 2,
            crop,
        }
    }

    /// The same in floating point, not rounded.
    fn exact(&self, [left, top, width, height]: [f64; 4], columns: u32, rows: u32) -> Vec<f64> {
        let across = exact_weights(left, width, columns);
        let down = exact_weights(top, height, rows);
        let mut out = Vec::new();
        for (top, down) in &down {
            let column = |x: usize| -> f64 {
                let sample = |y: usize| f64::from(self.data[(top + y) * self.stride + x]);
                down.iter().enumerate().map(|(y, w)| w * sample(y)).sum()
            };
            let summed: Vec<f64> = (0..self.stride - PADDING).map(column).collect();
            for (left, across) in &across {
                for kind in 0..self.kinds {
                    let sample = |x: usize| summed[(left + x) * self.kinds + kind];
                    out.push(across.iter().enumerate().map(|(x, w)| w * sample(x)).sum());
                }
            }
        }
        out
    }
}

/// For every result, the first sample of the part and the weights of all samples of it.
fn exact_weights(start: f64, length: f64, results: u32) -> Vec<(usize, Vec<f64>)> {
    let ratio = length / f64::from(results);
    let samples = start.floor() as usize..(start + length).ceil() as usize;
    let weights = |i: u32| {
        let centre = start + (f64::from(i) + 0.5) * ratio;
        let value = |x: usize| hamming((x as f64 + 0.5 - centre) / ratio.max(1.0));
        let values: Vec<f64> = samples.clone().map(value).collect();
        let sum: f64 = values.iter().sum();
        (samples.start, values.iter().map(|v| v / sum).collect())
    };
    (0..results).map(weights).collect()
}

fn assert_near(got: &[u8], exact: &[f64]) {
    assert_eq!(got.len(), exact.len());
    for (i, (&got, &exact)) in got.iter().zip(exact).enumerate() {
        assert!(
            (f64::from(got) - exact).abs() <= 1.0,
            "sample {i} is {got} instead of {exact}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn results_are_within_a_step_of_exact_arithmetic(
        columns in 1_usize..150, rows in 1_usize..60, kinds in 1_usize..3,
        cut in prop::array::uniform4(0_usize..40), across in 1_u32..160, down in 1_u32..70,
        black_and_white in any::<bool>(),
    ) {
        let value = |kind, x, y| {
            let noise = noise(kind, x, y);
            if black_and_white { 255 * (noise & 1) } else { noise }
        };
        let source = Source::new(columns, rows, kinds, value);
        // Halves, as chroma of odd rectangles has them.
        let span = |before: usize, after: usize, samples: usize| {
            let start = before.min(2 * samples - 1);
            (start as f64 / 2.0, (2 * samples - start).saturating_sub(after).max(1) as f64 / 2.0)
        };
        let (left, width) = span(cut[0], cut[1], columns);
        let (top, height) = span(cut[2], cut[3], rows);
        let crop = [left, top, width, height];
        // Never larger, but for the half sample that rounding a size up adds.
        let (across, down) = (across.min(width.ceil() as u32), down.min(height.ceil() as u32));
        assert_near(&source.scale(crop, across, down), &source.exact(crop, across, down));
    }
}

#[test]
fn any_number_of_taps_is_within_a_step_of_exact_arithmetic() {
    for (columns, rows, across, down) in [
        (8192, 3, 1, 1),
        (3, 8192, 2, 1),
        (8192, 2, 64, 2),
        (700, 5, 9, 4),
        (5, 700, 5, 9),
        (1024, 1, 1023, 1),
        (400, 400, 12, 13),
    ] {
        for white in [false, true] {
            let source = Source::new(columns, rows, 1, |_, x, y| {
                let noise = noise(0, x, y);
                if white { 255 - noise % 2 } else { 255 * (noise % 2) }
            });
            let crop = [0.0, 0.0, columns as f64, rows as f64];
            assert_near(
                &source.scale(crop, across, down),
                &source.exact(crop, across, down),
            );
        }
    }
}

#[test]
fn any_number_of_rows_longer_than_a_strip_is_within_a_step_of_exact_arithmetic() {
    for columns in [1024, 1055, 1057] {
        for (height, down) in [
            (84.0, 84),
            (83.5, 83),
            (84.0, 60),
            (84.0, 42),
            (84.0, 36),
            (84.0, 28),
            (84.0, 24),
            (84.0, 11),
        ] {
            let source = Source::new(columns, 84, 1, noise);
            let crop = [0.0, 84.0 - height, columns as f64, height];
            assert_near(&source.scale(crop, 33, down), &source.exact(crop, 33, down));
        }
    }
}

#[test]
fn flat_planes_stay_as_they_are() {
    for value in 0..=255 {
        for (columns, rows, across, down) in
            [(9, 7, 6, 5), (64, 48, 7, 3), (300, 150, 1, 4), (20, 20, 20, 19)]
        {
            let source = Source::new(columns, rows, 1, |_, _, _| value);
            let got = source.scale([0.0, 0.0, columns as f64, rows as f64], across, down);
            assert!(
                got.iter().all(|&v| v == value),
                "{value} at {across}x{down}: {got:?}"
            );
        }
    }
}

#[test]
fn the_same_size_is_a_copy() {
    let source = Source::new(33, 19, 2, noise);
    let got = source.scale([2.0, 1.0, 31.0, 18.0], 31, 18);
    for (line, y) in got.chunks(62).zip(1..) {
        assert_eq!(line, &source.data[y * source.stride + 4..][..62]);
    }
}

#[test]
fn halving_a_step_keeps_its_sides() {
    let source = Source::new(4, 4, 1, |_, x, _| if x < 2 { 10 } else { 200 });
    let got = source.scale([0.0, 0.0, 4.0, 4.0], 2, 2);
    assert!(got[0] < 30 && got[1] > 180 && got[..2] == got[2..], "{got:?}");
}

#[test]
fn two_kinds_of_samples_do_not_mix() {
    let source = Source::new(6, 6, 2, |kind, _, _| [7, 240][kind]);
    assert_eq!(source.scale([0.5, 0.5, 5.0, 5.0], 3, 2), [7, 240].repeat(6));
}

#[test]
fn nothing_beyond_the_part_shows() {
    let source = Source::new(40, 30, 1, |_, x, y| {
        if (8..32).contains(&x) && (6..24).contains(&y) {
            90
        } else {
            255
        }
    });
    assert_eq!(source.scale([8.0, 6.0, 24.0, 18.0], 10, 7), [90; 70]);
}

#[test]
fn the_same_part_gives_the_same_samples_whatever_came_before() {
    let source = Source::new(90, 70, 1, noise);
    let crop = [0.0, 0.0, 90.0, 70.0];
    let mut scaler = Scaler::default();
    let mut once = |crop, size| {
        let mut out = Vec::new();
        scaler.scale(&source.part(crop), size, &mut out);
        out
    };
    let first = once(crop, PixelSize::new(50, 41));
    once(crop, PixelSize::new(89, 70));
    once([3.0, 4.0, 7.0, 9.0], PixelSize::new(2, 1));
    assert_eq!(once(crop, PixelSize::new(50, 41)), first);
}
