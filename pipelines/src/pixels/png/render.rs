//! Part of a picture as RGB: cropped first, then scaled plane by plane, then converted.
//!
//! Scaling before conversion moves half the samples that scaling RGB would.

use crossdesk_core::media::{Color, Matrix};
use crossdesk_core::units::{PixelRect, PixelSize};
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use yuv::{
    YuvBiPlanarImage, YuvConversionMode, YuvError, YuvGrayImage, YuvPlanarImage, YuvRange, YuvStandardMatrix,
};

use super::super::planes::{row, without};
use crate::picture::{Plane, Planes};

/// Sharp text without ringing or uneven strokes; see `docs/decisions/screenshots.md` for the comparison.
const FILTER: FilterType = FilterType::Hamming;

/// Bytes of one RGB pixel.
const RGB: usize = 3;

/// Renders and keeps its working memory.
#[derive(Default)]
pub(super) struct Renderer {
    resizer: Resizer,
    scaled: Scaled,
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

/// Samples were promised that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short;

impl From<YuvError> for Short {
    fn from(_: YuvError) -> Self {
        Self
    }
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
    ) -> Result<&[u8], Short> {
        if size == rect.size() {
            self.render_unscaled(planes, color, rect)
        } else {
            self.render_scaled(planes, color, rect, size)
        }
    }

    /// Converts the rectangle, grown to the left and up until it starts on a chroma sample, and drops the surplus.
    fn render_unscaled(
        &mut self,
        planes: &Planes<'_>,
        color: Color,
        rect: PixelRect,
    ) -> Result<&[u8], Short> {
        let (step_x, step_y) = Layers::of(planes).step;
        let (extra_x, extra_y) = ((rect.x % step_x) as usize, (rect.y % step_y) as usize);
        let (width, height) = (rect.width as usize, rect.height as usize);
        let grown = PixelSize::new(rect.width + extra_x as u32, rect.height + extra_y as u32);
        let part = from_corner(planes, rect.x as usize - extra_x, rect.y as usize - extra_y);
        self.rgb.resize(grown.area() as usize * RGB, 0);
        convert(&part, color, grown, &mut self.rgb)?;
        let grown_row = grown.width as usize * RGB;
        if extra_x > 0 {
            for y in 0..height {
                let start = (y + extra_y) * grown_row + extra_x * RGB;
                self.rgb.copy_within(start..start + width * RGB, y * width * RGB);
            }
            return Ok(&self.rgb[..width * height * RGB]);
        }
        Ok(&self.rgb[extra_y * grown_row..])
    }

    /// Scales luma to `size`, chroma to `size` or to half of it, and converts.
    fn render_scaled(
        &mut self,
        planes: &Planes<'_>,
        color: Color,
        rect: PixelRect,
        size: PixelSize,
    ) -> Result<&[u8], Short> {
        let Self { resizer, scaled, rgb } = self;
        let Scaled {
            luma,
            chroma: [first, second],
            compact,
        } = scaled;
        let layers = Layers::of(planes);
        // 4:2:0 that shrinks to less than half has chroma for every pixel of the result; else half of it is enough.
        let full = layers.step != (2, 2) || rect.width >= 2 * size.width;
        let chroma_size = if full {
            size
        } else {
            PixelSize::new(size.width.div_ceil(2), size.height.div_ceil(2))
        };
        let mut scale = |plane: Plane<'_>, kind, step, size, out: &mut Vec<u8>| {
            Part::new(plane, kind, rect, step).scale(resizer, compact, size, out)
        };
        scale(layers.luma, PixelType::U8, (1, 1), size, luma)?;
        rgb.resize(size.area() as usize * RGB, 0);
        let y = tight(luma, size.width);
        match layers.chroma {
            ChromaPlanes::None => convert(&Planes::Gray { y }, color, size, rgb)?,
            ChromaPlanes::Pair(uv) => {
                scale(uv, PixelType::U8x2, layers.step, chroma_size, first)?;
                let uv = tight(first, 2 * chroma_size.width);
                convert_pair(&bi_planar(&y, &uv, size), full, color, rgb)?;
            }
            ChromaPlanes::Split(u, v) => {
                scale(u, PixelType::U8, layers.step, chroma_size, first)?;
                scale(v, PixelType::U8, layers.step, chroma_size, second)?;
                let (u, v) = (tight(first, chroma_size.width), tight(second, chroma_size.width));
                let planes = if full {
                    Planes::I444 { y, u, v }
                } else {
                    Planes::I420 { y, u, v }
                };
                convert(&planes, color, size, rgb)?;
            }
        }
        Ok(rgb)
    }
}

/// Rows of `width` bytes without padding.
fn tight(data: &[u8], width: u32) -> Plane<'_> {
    Plane {
        data,
        stride: width as usize,
    }
}

/// Where a layout keeps its chroma.
enum ChromaPlanes<'a> {
    None,
    Pair(Plane<'a>),
    Split(Plane<'a>, Plane<'a>),
}

/// A layout taken apart.
struct Layers<'a> {
    luma: Plane<'a>,
    chroma: ChromaPlanes<'a>,
    /// Luma columns and rows per chroma sample.
    step: (u32, u32),
}

impl<'a> Layers<'a> {
    fn of(planes: &Planes<'a>) -> Self {
        let (luma, chroma, step) = match *planes {
            Planes::Nv12 { y, uv } => (y, ChromaPlanes::Pair(uv), (2, 2)),
            Planes::I420 { y, u, v } => (y, ChromaPlanes::Split(u, v), (2, 2)),
            Planes::I422 { y, u, v } => (y, ChromaPlanes::Split(u, v), (2, 1)),
            Planes::I444 { y, u, v } => (y, ChromaPlanes::Split(u, v), (1, 1)),
            Planes::Gray { y } => (y, ChromaPlanes::None, (1, 1)),
        };
        Self { luma, chroma, step }
    }
}

/// `planes` starting at a pixel that is the first of its chroma sample.
fn from_corner<'a>(planes: &Planes<'a>, x: usize, y: usize) -> Planes<'a> {
    let at = |plane: Plane<'a>, columns, rows| without(&plane, rows, columns);
    match *planes {
        Planes::Nv12 { y: luma, uv } => Planes::Nv12 {
            y: at(luma, x, y),
            uv: at(uv, x, y / 2),
        },
        Planes::I420 { y: luma, u, v } => Planes::I420 {
            y: at(luma, x, y),
            u: at(u, x / 2, y / 2),
            v: at(v, x / 2, y / 2),
        },
        Planes::I422 { y: luma, u, v } => Planes::I422 {
            y: at(luma, x, y),
            u: at(u, x / 2, y),
            v: at(v, x / 2, y),
        },
        Planes::I444 { y: luma, u, v } => Planes::I444 {
            y: at(luma, x, y),
            u: at(u, x, y),
            v: at(v, x, y),
        },
        Planes::Gray { y: luma } => Planes::Gray { y: at(luma, x, y) },
    }
}

/// A plane and the part of it that is wanted, in its own samples.
struct Part<'a> {
    plane: Plane<'a>,
    kind: PixelType,
    /// Left, top, width and height; chroma of an odd rectangle has halves.
    crop: [f64; 4],
}

impl<'a> Part<'a> {
    fn new(plane: Plane<'a>, kind: PixelType, rect: PixelRect, (step_x, step_y): (u32, u32)) -> Self {
        let (x, y) = (f64::from(step_x), f64::from(step_y));
        let [left, top, width, height] = [rect.x, rect.y, rect.width, rect.height].map(f64::from);
        let crop = [left / x, top / y, width / x, height / y];
        Self { plane, kind, crop }
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
        resizer: &mut Resizer,
        compact: &mut Vec<u8>,
        size: PixelSize,
        out: &mut Vec<u8>,
    ) -> Result<(), Short> {
        let bytes = self.kind.size();
        let stride = self.plane.stride;
        let (data, columns) = if stride.is_multiple_of(bytes) && self.plane.data.len() >= stride * self.rows()
        {
            (self.plane.data, stride / bytes)
        } else {
            // The scaler knows no stride: it takes padding for pixels, so every row must be whole.
            compact.clear();
            for i in 0..self.rows() {
                compact.extend_from_slice(row(&self.plane, i, self.columns() * bytes));
            }
            (&compact[..], self.columns())
        };
        let source = ImageRef::new(columns as u32, self.rows() as u32, data, self.kind).map_err(|_| Short)?;
        out.resize(size.area() as usize * bytes, 0);
        let mut target = Image::from_slice_u8(size.width, size.height, out, self.kind).map_err(|_| Short)?;
        let [left, top, width, height] = self.crop;
        let options = ResizeOptions::new()
            .crop(left, top, width, height)
            .resize_alg(ResizeAlg::Convolution(FILTER))
            .use_alpha(false);
        resizer.resize(&source, &mut target, &options).map_err(|_| Short)
    }
}

/// Converts whole planes to RGB.
fn convert(planes: &Planes<'_>, color: Color, size: PixelSize, rgb: &mut [u8]) -> Result<(), Short> {
    let (range, matrix) = (range(color), matrix(color));
    let stride = size.width * RGB as u32;
    match planes {
        Planes::Nv12 { y, uv } => convert_pair(&bi_planar(y, uv, size), false, color, rgb)?,
        Planes::I420 { y, u, v } => {
            yuv::yuv420_to_rgb(&planar([y, u, v], size), rgb, stride, range, matrix)?;
        }
        Planes::I422 { y, u, v } => {
            yuv::yuv422_to_rgb(&planar([y, u, v], size), rgb, stride, range, matrix)?;
        }
        Planes::I444 { y, u, v } => {
            yuv::yuv444_to_rgb(&planar([y, u, v], size), rgb, stride, range, matrix)?;
        }
        Planes::Gray { y } => {
            let image = YuvGrayImage {
                y_plane: y.data,
                y_stride: y.stride as u32,
                width: size.width,
                height: size.height,
            };
            yuv::yuv400_to_rgb(&image, rgb, stride, range, matrix)?;
        }
    }
    Ok(())
}

/// Converts luma and interleaved chroma, which is as large as luma when `full`.
fn convert_pair(
    image: &YuvBiPlanarImage<'_, u8>,
    full: bool,
    color: Color,
    rgb: &mut [u8],
) -> Result<(), Short> {
    let stride = image.width * RGB as u32;
    let convert = if full {
        yuv::yuv_nv24_to_rgb
    } else {
        yuv::yuv_nv12_to_rgb
    };
    Ok(convert(
        image,
        rgb,
        stride,
        range(color),
        matrix(color),
        YuvConversionMode::Balanced,
    )?)
}

fn bi_planar<'a>(y: &Plane<'a>, uv: &Plane<'a>, size: PixelSize) -> YuvBiPlanarImage<'a, u8> {
    YuvBiPlanarImage {
        y_plane: y.data,
        y_stride: y.stride as u32,
        uv_plane: uv.data,
        uv_stride: uv.stride as u32,
        width: size.width,
        height: size.height,
    }
}

fn planar<'a>([y, u, v]: [&Plane<'a>; 3], size: PixelSize) -> YuvPlanarImage<'a, u8> {
    YuvPlanarImage {
        y_plane: y.data,
        y_stride: y.stride as u32,
        u_plane: u.data,
        u_stride: u.stride as u32,
        v_plane: v.data,
        v_stride: v.stride as u32,
        width: size.width,
        height: size.height,
    }
}

fn range(color: Color) -> YuvRange {
    if color.full_range {
        YuvRange::Full
    } else {
        YuvRange::Limited
    }
}

fn matrix(color: Color) -> YuvStandardMatrix {
    match color.matrix {
        Matrix::Bt601 => YuvStandardMatrix::Bt601,
        Matrix::Bt709 => YuvStandardMatrix::Bt709,
        Matrix::Bt2020 => YuvStandardMatrix::Bt2020,
        Matrix::Smpte240 => YuvStandardMatrix::Smpte240,
        Matrix::Fcc => YuvStandardMatrix::Fcc,
    }
}
