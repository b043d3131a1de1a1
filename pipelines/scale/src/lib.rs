//! Scaling of eight-bit planes with a Hamming filter.
//!
//! A crate of its own because the kernels underneath are generic: they are compiled where they are used, and that
//! takes a minute which every change of `crossdesk-pipelines` would pay again.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x2};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

/// Sharp text without ringing or uneven strokes; see `docs/decisions/screenshots.md` for the comparison.
const FILTER: FilterType = FilterType::Hamming;

/// How many samples lie side by side in one pixel of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// One: luma, or one kind of chroma.
    One,
    /// Two: interleaved chroma.
    Two,
}

impl Samples {
    /// Bytes of one pixel.
    pub const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// A plane without padding and the part of it to scale, all in pixels of the plane.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// At least `columns * rows` pixels.
    pub data: &'a [u8],
    /// Bytes per pixel.
    pub samples: Samples,
    /// Pixels in a row of the plane.
    pub columns: u32,
    /// Rows of the plane.
    pub rows: u32,
    /// Left, top, width and height of the part; edges may lie within a pixel.
    pub crop: [f64; 4],
}

/// The sizes do not fit each other or the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSize;

/// Scales and keeps its working memory.
#[derive(Clone, Debug, Default)]
pub struct Scaler {
    resizer: Resizer,
}

impl Scaler {
    /// Scales `part` to `columns` by `rows` pixels without padding in `out`, which gets exactly that length.
    ///
    /// # Errors
    /// When the data is shorter than the plane or the part is not inside it.
    pub fn scale(
        &mut self,
        part: &Part<'_>,
        columns: u32,
        rows: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), BadSize> {
        out.resize(columns as usize * rows as usize * part.samples.bytes(), 0);
        match part.samples {
            Samples::One => self.scale_typed::<U8>(part, columns, rows, out),
            Samples::Two => self.scale_typed::<U8x2>(part, columns, rows, out),
        }
    }

    fn scale_typed<P: PixelTrait>(
        &mut self,
        part: &Part<'_>,
        columns: u32,
        rows: u32,
        out: &mut [u8],
    ) -> Result<(), BadSize> {
        let source =
            TypedImageRef::<P>::from_buffer(part.columns, part.rows, part.data).map_err(|_| BadSize)?;
        let mut target = TypedImage::<P>::from_buffer(columns, rows, out).map_err(|_| BadSize)?;
        let [left, top, width, height] = part.crop;
        let options = ResizeOptions::new()
            .crop(left, top, width, height)
            .resize_alg(ResizeAlg::Convolution(FILTER))
            .use_alpha(false);
        self.resizer
            .resize_typed(&source, &mut target, &options)
            .map_err(|_| BadSize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_a_step_keeps_its_sides() {
        let data = [[10_u8, 10, 200, 200]; 4].concat();
        let part = Part {
            data: &data,
            samples: Samples::One,
            columns: 4,
            rows: 4,
            crop: [0.0, 0.0, 4.0, 4.0],
        };
        let mut out = Vec::new();
        Scaler::default().scale(&part, 2, 2, &mut out).unwrap();
        assert!(out[0] < 30 && out[1] > 180 && out[..2] == out[2..], "{out:?}");
    }

    #[test]
    fn two_samples_do_not_mix() {
        let data = [7, 240].repeat(36);
        let part = Part {
            data: &data,
            samples: Samples::Two,
            columns: 6,
            rows: 6,
            crop: [0.5, 0.5, 5.0, 5.0],
        };
        let mut out = Vec::new();
        Scaler::default().scale(&part, 3, 2, &mut out).unwrap();
        assert_eq!(out, [7, 240].repeat(6));
    }

    #[test]
    fn parts_outside_the_plane_are_refused() {
        let part = Part {
            data: &[0; 16],
            samples: Samples::One,
            columns: 4,
            rows: 4,
            crop: [1.0, 0.0, 4.0, 4.0],
        };
        assert_eq!(
            Scaler::default().scale(&part, 2, 2, &mut Vec::new()),
            Err(BadSize)
        );
        let short = Part {
            data: &[0; 15],
            crop: [0.0, 0.0, 4.0, 4.0],
            ..part
        };
        assert_eq!(
            Scaler::default().scale(&short, 2, 2, &mut Vec::new()),
            Err(BadSize)
        );
    }
}
