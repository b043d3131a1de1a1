//! Part of a picture as RGB: cropped first, then scaled plane by plane, then converted.
//!
//! Scaling before conversion moves half the samples that scaling RGB would.

use crossdesk_core::media::Color;
use crossdesk_core::units::{PixelRect, PixelSize};
use crossdesk_scale::{BadSize, Samples, Scaler};

use super::super::planes::{ChromaPlanes, Layers, row};
use super::super::rgb::{Area, RgbRows};
use crate::picture::{Plane, Planes};

/// Renders and keeps its working memory.
#[derive(Default)]
pub(super) struct Renderer {
    scaler: Scaler,
    scaled: Scaled,
    rows: RgbRows,
    rgb: Vec<u8>,
}

/// Samples of a scaled picture, without padding.
#[derive(Default)]
struct Scaled {
    luma: Vec<u8>,
    /// Cb and Cr, or both interleaved in the first.
    chroma: [Vec<u8>; 2],
    /// A source plane copied without padding, for the few that the scaler cannot read in place.
    compact: Vec<u8>,
}

impl Renderer {
    /// The pixels of `rect` at `size`, three bytes each and without padding.
    ///
    /// `rect` lies inside the picture, `size` is not larger than it, and the planes cover both.
    pub fn render(
        &mut self,
        planes: &Planes<'_>,
        color: Color,
        rect: PixelRect,
        size: PixelSize,
    ) -> Result<&[u8], BadSize> {
        let Self {
            scaler,
            scaled,
            rows,
            rgb,
        } = self;
        let layers = Layers::of(planes);
        let [x, y, width, height] = [rect.x, rect.y, size.width, size.height].map(|v| v as usize);
        if size == rect.size() {
            rows.convert(&layers, color, Area { x, y, width, height }, rgb);
        } else {
            let layers = scaled.scale(scaler, &layers, rect, size)?;
            rows.convert(
                &layers,
                color,
                Area {
                    x: 0,
                    y: 0,
                    width,
                    height,
                },
                rgb,
            );
        }
        Ok(rgb)
    }
}

impl Scaled {
    /// Scales luma to `size`, and chroma to `size` or, where it had half the resolution, to half of it.
    fn scale(
        &mut self,
        scaler: &mut Scaler,
        layers: &Layers<'_>,
        rect: PixelRect,
        size: PixelSize,
    ) -> Result<Layers<'_>, BadSize> {
        let Self {
            luma,
            chroma: [first, second],
            compact,
        } = self;
        let (step, chroma_size) = if layers.step == (2, 2) {
            let half = PixelSize::new(size.width.div_ceil(2), size.height.div_ceil(2));
            ((2, 2), half)
        } else {
            ((1, 1), size)
        };
        let mut scale = |plane, samples, step, size: PixelSize, out: &mut Vec<u8>| {
            Part::new(plane, samples, rect, step).scale(scaler, compact, size, out)
        };
        scale(layers.luma, Samples::One, (1, 1), size, luma)?;
        let chroma = match layers.chroma {
            ChromaPlanes::None => ChromaPlanes::None,
            ChromaPlanes::Pair(uv) => {
                scale(uv, Samples::Two, layers.step, chroma_size, first)?;
                ChromaPlanes::Pair(tight(first, 2 * chroma_size.width))
            }
            ChromaPlanes::Split(u, v) => {
                scale(u, Samples::One, layers.step, chroma_size, first)?;
                scale(v, Samples::One, layers.step, chroma_size, second)?;
                ChromaPlanes::Split(tight(first, chroma_size.width), tight(second, chroma_size.width))
            }
        };
        Ok(Layers {
            luma: tight(luma, size.width),
            chroma,
            step,
        })
    }
}

/// Rows of `width` bytes without padding.
fn tight(data: &[u8], width: u32) -> Plane<'_> {
    Plane {
        data,
        stride: width as usize,
    }
}

/// A plane and the part of it that is wanted, in its own samples.
struct Part<'a> {
    plane: Plane<'a>,
    samples: Samples,
    /// Left, top, width and height; chroma of an odd rectangle has halves.
    crop: [f64; 4],
}

impl<'a> Part<'a> {
    fn new(plane: Plane<'a>, samples: Samples, rect: PixelRect, (step_x, step_y): (u32, u32)) -> Self {
        let (x, y) = (f64::from(step_x), f64::from(step_y));
        let [left, top, width, height] = [rect.x, rect.y, rect.width, rect.height].map(f64::from);
        let crop = [left / x, top / y, width / x, height / y];
        Self { plane, samples, crop }
    }

    /// Rows that the part touches, counted from the top of the plane.
    fn rows(&self) -> usize {
        (self.crop[1] + self.crop[3]).ceil() as usize
    }

    /// Samples from the left edge of the plane to the right edge of the part.
    fn columns(&self) -> usize {
        (self.crop[0] + self.crop[2]).ceil() as usize
    }

    /// Scales the part to `size`.
    fn scale(
        &self,
        scaler: &mut Scaler,
        compact: &mut Vec<u8>,
        size: PixelSize,
        out: &mut Vec<u8>,
    ) -> Result<(), BadSize> {
        let (bytes, stride, rows) = (self.samples.bytes(), self.plane.stride, self.rows());
        let (data, columns) = if stride.is_multiple_of(bytes) && self.plane.data.len() >= stride * rows {
            (self.plane.data, stride / bytes)
        } else {
            // The scaler knows no stride: it takes padding for pixels, so every row must be whole.
            compact.clear();
            for i in 0..rows {
                compact.extend_from_slice(row(&self.plane, i, self.columns() * bytes));
            }
            (&compact[..], self.columns())
        };
        let part = crossdesk_scale::Part {
            data,
            samples: self.samples,
            columns: columns as u32,
            rows: rows as u32,
            crop: self.crop,
        };
        scaler.scale(&part, size.width, size.height, out)
    }
}
