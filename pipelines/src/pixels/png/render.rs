//! Part of a picture as RGB: cropped first, then scaled plane by plane, then converted.
//!
//! Scaling before conversion moves half the samples that scaling RGB would.

use crossdesk_core::media::Color;
use crossdesk_core::units::{PixelRect, PixelSize};

use super::super::planes::{ChromaPlanes, Layers};
use super::super::rgb::{Area, RgbRows};
use super::super::scale::{Part, Scaler};
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
}

impl Renderer {
    /// The pixels of `rect` at `size`, three bytes each and without padding.
    ///
    /// `rect` lies inside the picture, `size` is not larger than it, and the planes cover both.
    pub fn render(&mut self, planes: &Planes<'_>, color: Color, rect: PixelRect, size: PixelSize) -> &[u8] {
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
            let layers = scaled.scale(scaler, &layers, rect, size);
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
        rgb
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
    ) -> Layers<'_> {
        let Self {
            luma,
            chroma: [first, second],
        } = self;
        let (step, chroma_size) = if layers.step == (2, 2) {
            let half = PixelSize::new(size.width.div_ceil(2), size.height.div_ceil(2));
            ((2, 2), half)
        } else {
            ((1, 1), size)
        };
        let mut scale = |plane, paired, step, size, out: &mut Vec<u8>| {
            let crop = crop_of(rect, step);
            scaler.scale(&Part { plane, paired, crop }, size, out);
        };
        scale(layers.luma, false, (1, 1), size, luma);
        let chroma = match layers.chroma {
            ChromaPlanes::None => ChromaPlanes::None,
            ChromaPlanes::Pair(uv) => {
                scale(uv, true, layers.step, chroma_size, first);
                ChromaPlanes::Pair(tight(first, 2 * chroma_size.width))
            }
            ChromaPlanes::Split(u, v) => {
                scale(u, false, layers.step, chroma_size, first);
                scale(v, false, layers.step, chroma_size, second);
                ChromaPlanes::Split(tight(first, chroma_size.width), tight(second, chroma_size.width))
            }
        };
        Layers {
            luma: tight(luma, size.width),
            chroma,
            step,
        }
    }
}

/// Rows of `width` bytes without padding.
fn tight(data: &[u8], width: u32) -> Plane<'_> {
    Plane {
        data,
        stride: width as usize,
    }
}

/// `rect` in samples of a plane that has one for every `step` of pixels; chroma of an odd rectangle has halves.
fn crop_of(rect: PixelRect, step: (u32, u32)) -> [f64; 4] {
    let (x, y) = (f64::from(step.0), f64::from(step.1));
    let [left, top, width, height] = [rect.x, rect.y, rect.width, rect.height].map(f64::from);
    [left / x, top / y, width / x, height / y]
}
