//! Matrix and range of decoded samples, and the way from one to another without leaving Y'CbCr.

use crossdesk_core::media::{Color, Matrix};

/// Weights of red and blue in luma (ITU-T H.264 table E-5); green has the rest.
const fn red_blue_weights(matrix: Matrix) -> (f64, f64) {
    match matrix {
        Matrix::Bt601 => (0.299, 0.114),
        Matrix::Bt709 => (0.2126, 0.0722),
        Matrix::Bt2020 => (0.2627, 0.0593),
        Matrix::Smpte240 => (0.212, 0.087),
        Matrix::Fcc => (0.30, 0.11),
    }
}

/// How samples of one colour become limited-range BT.601.
///
/// Both ends are linear in R'G'B', so the way between them is one 3x3 matrix; grey stays grey, so luma does not
/// enter chroma. All coefficients are for sample values with 128 taken off chroma.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ToBt601 {
    pub luma_scale: f64,
    pub luma_offset: f64,
    pub luma_from_cb: f64,
    pub luma_from_cr: f64,
    pub cb_from_cb: f64,
    pub cb_from_cr: f64,
    pub cr_from_cb: f64,
    pub cr_from_cr: f64,
}

impl ToBt601 {
    pub fn new(from: Color) -> Self {
        let (luma_range, luma_zero, chroma_range) = if from.full_range {
            (255.0, 0.0, 255.0)
        } else {
            (219.0, 16.0, 224.0)
        };
        // One unit of source Cb or Cr, with luma zero, as R'G'B' and then as BT.601.
        let [luma_from_cb, cb_from_cb, cr_from_cb] = bt601_limited(rgb(from.matrix, 1.0 / chroma_range, 0.0));
        let [luma_from_cr, cb_from_cr, cr_from_cr] = bt601_limited(rgb(from.matrix, 0.0, 1.0 / chroma_range));
        let luma_scale = 219.0 / luma_range;
        Self {
            luma_scale,
            luma_offset: 16.0 - luma_scale * luma_zero,
            luma_from_cb,
            luma_from_cr,
            cb_from_cb,
            cb_from_cr,
            cr_from_cb,
            cr_from_cr,
        }
    }
}

/// How samples of one colour become R'G'B' of one byte each.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToRgb {
    pub luma_scale: f32,
    pub luma_zero: f32,
    pub from_cb: [f32; 3],
    pub from_cr: [f32; 3],
}

impl ToRgb {
    pub fn new(from: Color) -> Self {
        let (luma_range, luma_zero, chroma_range) = if from.full_range {
            (255.0, 0.0, 255.0)
        } else {
            (219.0, 16.0, 224.0)
        };
        let bytes = |v: f64| (255.0 * v) as f32;
        Self {
            luma_scale: bytes(1.0 / luma_range),
            luma_zero,
            from_cb: rgb(from.matrix, 1.0 / chroma_range, 0.0).map(bytes),
            from_cr: rgb(from.matrix, 0.0, 1.0 / chroma_range).map(bytes),
        }
    }

    /// The colour of one sample of each kind; averages keep their fraction.
    pub fn pixel(&self, luma: f32, cb: f32, cr: f32) -> [u8; 3] {
        let luma = (luma - self.luma_zero) * self.luma_scale;
        let (cb, cr) = (cb - 128.0, cr - 128.0);
        // The cast rounds after the addition and stops at both ends.
        [0, 1, 2].map(|i| (luma + self.from_cb[i] * cb + self.from_cr[i] * cr + 0.5) as u8)
    }
}

/// Fraction bits in which luma and what chroma adds to it are summed: the most that leave the brightest colours
/// within 16 bits.
pub(super) const SUM_BITS: u32 = 6;

/// A factor for luma samples, split so that vector units need only 16-bit products.
#[derive(Clone, Copy, Debug)]
pub(super) struct LumaScale {
    whole: u16,
    /// In 256ths.
    rest: u16,
}

impl LumaScale {
    /// The factor `scale`, at most 2.
    pub fn new(scale: f64) -> Self {
        let steps = (scale * f64::from(1 << (SUM_BITS + 8))).round() as u16;
        Self {
            whole: steps >> 8,
            rest: steps & 0xFF,
        }
    }

    /// `luma` times the factor with `SUM_BITS` fraction bits, at most one of them too small.
    pub fn apply(self, luma: u8) -> i16 {
        let luma = u16::from(luma);
        (luma * self.whole + ((luma * self.rest) >> 8)) as i16
    }
}

/// A factor for chroma samples without their offset, split in the same way.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChromaWeight {
    whole: i16,
    /// In 256ths.
    rest: i16,
}

impl ChromaWeight {
    /// The factor `weight`, between -4 and 4.
    pub fn new(weight: f64) -> Self {
        let steps = (weight * f64::from(1 << (SUM_BITS + 8))).round() as i32;
        Self {
            whole: (steps >> 8) as i16,
            rest: (steps & 0xFF) as i16,
        }
    }

    /// `sample`, from -128 to 127, times the factor with `SUM_BITS` fraction bits, at most one of them too small.
    pub fn apply(self, sample: i16) -> i16 {
        sample * self.whole + ((sample * self.rest) >> 8)
    }
}

/// R'G'B' of a colour difference without luma.
fn rgb(matrix: Matrix, pb: f64, pr: f64) -> [f64; 3] {
    let (kr, kb) = red_blue_weights(matrix);
    let red = 2.0 * (1.0 - kr) * pr;
    let blue = 2.0 * (1.0 - kb) * pb;
    [red, -(kr * red + kb * blue) / (1.0 - kr - kb), blue]
}

/// Y', Cb and Cr of limited-range BT.601, in sample steps, without their offsets.
fn bt601_limited([red, green, blue]: [f64; 3]) -> [f64; 3] {
    let (kr, kb) = red_blue_weights(Matrix::Bt601);
    let luma = kr * red + (1.0 - kr - kb) * green + kb * blue;
    [
        219.0 * luma,
        224.0 * (blue - luma) / (2.0 * (1.0 - kb)),
        224.0 * (red - luma) / (2.0 * (1.0 - kr)),
    ]
}

/// The float conversions that tests compare with; written from the definition, sharing nothing with the code.
#[cfg(test)]
pub(super) mod reference {
    use super::*;

    pub const COLORS: [Color; 10] = {
        let mut colors = [Color::BT601_LIMITED; 10];
        let matrices = [
            Matrix::Bt601,
            Matrix::Bt709,
            Matrix::Bt2020,
            Matrix::Smpte240,
            Matrix::Fcc,
        ];
        let mut i = 0;
        while i < 10 {
            colors[i] = Color {
                matrix: matrices[i / 2],
                full_range: i % 2 == 1,
            };
            i += 1;
        }
        colors
    };

    fn weights(matrix: Matrix) -> [f64; 3] {
        let (r, b) = match matrix {
            Matrix::Bt601 => (0.299, 0.114),
            Matrix::Bt709 => (0.2126, 0.0722),
            Matrix::Bt2020 => (0.2627, 0.0593),
            Matrix::Smpte240 => (0.212, 0.087),
            Matrix::Fcc => (0.30, 0.11),
        };
        [r, 1.0 - r - b, b]
    }

    /// R'G'B' from 0 to 1 when legal, not clamped.
    pub fn to_rgb(color: Color, [y, cb, cr]: [f64; 3]) -> [f64; 3] {
        let [wr, wg, wb] = weights(color.matrix);
        let (y, cb, cr) = if color.full_range {
            (y / 255.0, (cb - 128.0) / 255.0, (cr - 128.0) / 255.0)
        } else {
            ((y - 16.0) / 219.0, (cb - 128.0) / 224.0, (cr - 128.0) / 224.0)
        };
        let r = y + cr * (2.0 - 2.0 * wr);
        let b = y + cb * (2.0 - 2.0 * wb);
        [r, (y - wr * r - wb * b) / wg, b]
    }

    /// Samples of `color` for R'G'B', neither rounded nor clamped.
    pub fn from_rgb(color: Color, [r, g, b]: [f64; 3]) -> [f64; 3] {
        let [wr, wg, wb] = weights(color.matrix);
        let y = wr * r + wg * g + wb * b;
        let (cb, cr) = ((b - y) / (2.0 - 2.0 * wb), (r - y) / (2.0 - 2.0 * wr));
        if color.full_range {
            [255.0 * y, 128.0 + 255.0 * cb, 128.0 + 255.0 * cr]
        } else {
            [16.0 + 219.0 * y, 128.0 + 224.0 * cb, 128.0 + 224.0 * cr]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::reference::{COLORS, from_rgb, to_rgb};
    use super::*;

    #[test]
    fn the_direct_way_equals_the_way_through_rgb() {
        for color in COLORS {
            let way = ToBt601::new(color);
            for [y, cb, cr] in [
                [16.0, 128.0, 128.0],
                [235.0, 90.0, 240.0],
                [81.0, 90.0, 240.0],
                [0.0, 0.0, 255.0],
            ] {
                let expected = from_rgb(Color::BT601_LIMITED, to_rgb(color, [y, cb, cr]));
                let (b, r) = (cb - 128.0, cr - 128.0);
                let got = [
                    way.luma_scale * y + way.luma_offset + way.luma_from_cb * b + way.luma_from_cr * r,
                    128.0 + way.cb_from_cb * b + way.cb_from_cr * r,
                    128.0 + way.cr_from_cb * b + way.cr_from_cr * r,
                ];
                for (a, e) in got.iter().zip(expected) {
                    assert!((a - e).abs() < 1e-9, "{color:?}: {got:?} instead of {expected:?}");
                }
            }
        }
    }

    #[test]
    fn single_pixels_agree_with_the_reference() {
        for color in COLORS {
            let way = ToRgb::new(color);
            for [y, cb, cr] in [
                [16_u8, 128, 128],
                [235, 128, 128],
                [120, 90, 200],
                [255, 16, 240],
                [0, 255, 0],
            ] {
                let expected =
                    to_rgb(color, [y, cb, cr].map(f64::from)).map(|v| (v * 255.0).clamp(0.0, 255.0));
                let got = way.pixel(f32::from(y), f32::from(cb), f32::from(cr));
                for (g, e) in got.iter().zip(expected) {
                    assert!(
                        (f64::from(*g) - e).abs() <= 0.51,
                        "{color:?} {got:?} {expected:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn limited_bt601_stays_as_it_is() {
        let way = ToBt601::new(Color::BT601_LIMITED);
        let expected = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        let got = [
            way.luma_scale,
            way.luma_offset,
            way.luma_from_cb,
            way.luma_from_cr,
            way.cb_from_cb,
            way.cb_from_cr,
            way.cr_from_cb,
            way.cr_from_cr,
        ];
        for (a, e) in got.iter().zip(expected) {
            assert!((a - e).abs() < 1e-12, "{got:?}");
        }
    }
}
