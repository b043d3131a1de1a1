//! A few thousand pixels of a picture straight from its planes, for showing it in a terminal.

use crossdesk_core::media::Color;
use crossdesk_core::units::PixelSize;

use super::color::ToRgb;
use super::planes::{ChromaPlanes, Layers, covers, row};
use crate::picture::Planes;

/// Most samples looked at in one direction for one pixel: enough against flicker of thin lines, and the work then
/// depends on the size of the result, not of the picture.
const TAPS: usize = 4;

/// Fills `out` with `target` pixels, row by row, that together show the whole picture.
///
/// Each pixel is the mean of at most sixteen samples of the part it stands for; a smaller picture is enlarged.
///
/// # Panics
/// When a plane does not cover `size`.
pub fn thumbnail(
    planes: &Planes<'_>,
    size: PixelSize,
    color: Color,
    target: PixelSize,
    out: &mut Vec<[u8; 3]>,
) {
    assert!(
        covers(planes, size),
        "the planes hold every sample of the picture"
    );
    out.clear();
    if size.area() == 0 || target.area() == 0 {
        return;
    }
    let layers = Layers::of(planes);
    let way = ToRgb::new(color);
    let columns: Vec<Taps> = (0..target.width)
        .map(|x| Taps::new(x, target.width, size.width))
        .collect();
    for y in 0..target.height {
        let rows = Taps::new(y, target.height, size.height);
        for columns in &columns {
            let [luma, cb, cr] = mean(&layers, size, columns.as_slice(), rows.as_slice());
            out.push(way.pixel(luma, cb, cr));
        }
    }
}

/// Positions of the samples looked at along one edge.
struct Taps {
    at: [usize; TAPS],
    count: usize,
}

impl Taps {
    /// Evenly spread over the part of an edge of `length` that belongs to pixel `index` of `pixels`.
    fn new(index: u32, pixels: u32, length: u32) -> Self {
        let edge = |i: u32| (u64::from(i) * u64::from(length) / u64::from(pixels)) as usize;
        let (start, end) = (edge(index), edge(index + 1).max(edge(index) + 1));
        let count = TAPS.min(end - start);
        let mut at = [0; TAPS];
        for (i, at) in at[..count].iter_mut().enumerate() {
            *at = start + (2 * i + 1) * (end - start) / (2 * count);
        }
        Self { at, count }
    }

    fn as_slice(&self) -> &[usize] {
        &self.at[..self.count]
    }
}

/// Mean luma, Cb and Cr over all combinations of `columns` and `rows`.
fn mean(layers: &Layers<'_>, size: PixelSize, columns: &[usize], rows: &[usize]) -> [f32; 3] {
    let (step_x, step_y) = (layers.step.0 as usize, layers.step.1 as usize);
    let chroma_width = (size.width as usize).div_ceil(step_x);
    let (mut luma_sum, mut cb_sum, mut cr_sum) = (0_u32, 0_u32, 0_u32);
    for &y in rows {
        let luma = row(&layers.luma, y, size.width as usize);
        luma_sum += columns.iter().map(|&x| u32::from(luma[x])).sum::<u32>();
        match layers.chroma {
            ChromaPlanes::None => {
                cb_sum += 128 * columns.len() as u32;
                cr_sum += 128 * columns.len() as u32;
            }
            ChromaPlanes::Pair(uv) => {
                let uv = row(&uv, y / step_y, 2 * chroma_width);
                for &x in columns {
                    cb_sum += u32::from(uv[2 * (x / step_x)]);
                    cr_sum += u32::from(uv[2 * (x / step_x) + 1]);
                }
            }
            ChromaPlanes::Split(u, v) => {
                let (u, v) = (
                    row(&u, y / step_y, chroma_width),
                    row(&v, y / step_y, chroma_width),
                );
                for &x in columns {
                    cb_sum += u32::from(u[x / step_x]);
                    cr_sum += u32::from(v[x / step_x]);
                }
            }
        }
    }
    let count = (columns.len() * rows.len()) as f32;
    [luma_sum, cb_sum, cr_sum].map(|sum| sum as f32 / count)
}

#[cfg(test)]
mod tests {
    use super::super::planes::testing::{Image, LAYOUTS, Layout, noise};
    use super::*;

    fn pixels(image: &Image, width: u32, height: u32) -> Vec<[u8; 3]> {
        let mut out = vec![[1; 3]];
        let target = PixelSize::new(width, height);
        thumbnail(
            &image.planes(),
            image.size,
            Color::BT601_LIMITED,
            target,
            &mut out,
        );
        out
    }

    #[test]
    fn quarters_keep_their_place_and_colour_in_every_layout() {
        for layout in LAYOUTS {
            let size = PixelSize::new(203, 101);
            let value = |p: usize, x: usize, y: usize| {
                let full_x = if p > 0 && !matches!(layout, Layout::I444) {
                    2 * x
                } else {
                    x
                };
                let full_y = if p > 0 && matches!(layout, Layout::I420 | Layout::Nv12) {
                    2 * y
                } else {
                    y
                };
                match (p, full_x < 101, full_y < 50) {
                    (0, true, true) => 235,
                    (0, ..) => 16,
                    _ => 128,
                }
            };
            let got = pixels(&Image::new(layout, size, 5, value), 4, 4);
            assert_eq!(
                (got[0], got[3], got[12]),
                ([255; 3], [0; 3], [0; 3]),
                "{layout:?}"
            );
        }
    }

    #[test]
    fn a_small_picture_is_enlarged() {
        let value = |p: usize, x: usize, _: usize| if p == 0 { [16, 235][x] } else { 128 };
        let image = Image::new(Layout::Nv12, PixelSize::new(2, 1), 0, value);
        assert_eq!(
            pixels(&image, 4, 2),
            [[0; 3], [0; 3], [255; 3], [255; 3]].repeat(2)
        );
    }

    #[test]
    fn any_size_gives_exactly_the_pixels_asked_for() {
        for (width, height) in [(1, 1), (7, 5), (640, 3)] {
            let image = Image::new(Layout::I422, PixelSize::new(width, height), 1, noise);
            for (w, h) in [(1, 1), (13, 9), (700, 1)] {
                assert_eq!(pixels(&image, w, h).len(), (w * h) as usize);
            }
            assert!(pixels(&image, 0, 5).is_empty());
        }
    }
}
