//! Looking at borrowed planes: how many samples a layout has, whether they are all there, one row at a time.

use crossdesk_core::units::PixelSize;

use crate::picture::{Plane, Planes};

/// True when every plane holds all samples of a picture of `size`.
///
/// Everything in `pixels` relies on it, so a decoder's memory is checked once where it is mapped.
pub fn covers(planes: &Planes<'_>, size: PixelSize) -> bool {
    let (width, height) = (size.width as usize, size.height as usize);
    let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
    match planes {
        Planes::Nv12 { y, uv } => holds(y, width, height) && holds(uv, half_width * 2, half_height),
        Planes::I420 { y, u, v } => {
            holds(y, width, height) && [u, v].iter().all(|p| holds(p, half_width, half_height))
        }
        Planes::I422 { y, u, v } => {
            holds(y, width, height) && [u, v].iter().all(|p| holds(p, half_width, height))
        }
        Planes::I444 { y, u, v } => [y, u, v].iter().all(|p| holds(p, width, height)),
        Planes::Gray { y } => holds(y, width, height),
    }
}

/// True when `plane` has `rows` rows of `width` bytes; its last row need not fill the stride.
fn holds(plane: &Plane<'_>, width: usize, rows: usize) -> bool {
    width <= plane.stride && (rows == 0 || plane.data.len() >= (rows - 1) * plane.stride + width)
}

/// The first `width` bytes of row `index`.
pub(super) fn row<'a>(plane: &Plane<'a>, index: usize, width: usize) -> &'a [u8] {
    &plane.data[index * plane.stride..][..width]
}

/// Where a layout keeps its chroma.
pub(super) enum ChromaPlanes<'a> {
    None,
    Pair(Plane<'a>),
    Split(Plane<'a>, Plane<'a>),
}

/// A layout taken apart.
pub(super) struct Layers<'a> {
    pub luma: Plane<'a>,
    pub chroma: ChromaPlanes<'a>,
    /// Luma columns and rows per chroma sample.
    pub step: (u32, u32),
}

impl<'a> Layers<'a> {
    pub fn of(planes: &Planes<'a>) -> Self {
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

/// The planes of a test picture, owned.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// The layouts of `Planes`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Layout {
        Nv12,
        I420,
        I422,
        I444,
        Gray,
    }

    pub const LAYOUTS: [Layout; 5] = [
        Layout::Nv12,
        Layout::I420,
        Layout::I422,
        Layout::I444,
        Layout::Gray,
    ];

    /// Samples with padding after every row except the last.
    #[derive(Clone, Debug)]
    pub struct Image {
        pub layout: Layout,
        pub size: PixelSize,
        planes: Vec<(Vec<u8>, usize)>,
    }

    impl Image {
        /// Every sample from `value(plane, x, y)`, Cb being plane 1 and Cr plane 2 in every layout.
        pub fn new(
            layout: Layout,
            size: PixelSize,
            padding: usize,
            value: impl Fn(usize, usize, usize) -> u8,
        ) -> Self {
            let (width, height) = (size.width as usize, size.height as usize);
            let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
            let plane = |width: usize, height: usize, value: &dyn Fn(usize, usize) -> u8| {
                let stride = width + padding;
                let mut data = vec![0xEE; stride * height];
                for y in 0..height {
                    for x in 0..width {
                        data[y * stride + x] = value(x, y);
                    }
                }
                data.truncate(data.len() - if height > 0 { padding } else { 0 });
                (data, stride)
            };
            let mut planes = vec![plane(width, height, &|x, y| value(0, x, y))];
            let (chroma_width, chroma_height) = match layout {
                Layout::Nv12 | Layout::I420 => (half_width, half_height),
                Layout::I422 => (half_width, height),
                Layout::I444 | Layout::Gray => (width, height),
            };
            match layout {
                Layout::Nv12 => planes.push(plane(chroma_width * 2, chroma_height, &|x, y| {
                    value(1 + x % 2, x / 2, y)
                })),
                Layout::Gray => {}
                _ => {
                    planes.extend([1, 2].map(|c| plane(chroma_width, chroma_height, &|x, y| value(c, x, y))));
                }
            }
            Self { layout, size, planes }
        }

        pub fn planes(&self) -> Planes<'_> {
            let plane = |i: usize| Plane {
                data: &self.planes[i].0,
                stride: self.planes[i].1,
            };
            let y = plane(0);
            match self.layout {
                Layout::Nv12 => Planes::Nv12 { y, uv: plane(1) },
                Layout::I420 => Planes::I420 {
                    y,
                    u: plane(1),
                    v: plane(2),
                },
                Layout::I422 => Planes::I422 {
                    y,
                    u: plane(1),
                    v: plane(2),
                },
                Layout::I444 => Planes::I444 {
                    y,
                    u: plane(1),
                    v: plane(2),
                },
                Layout::Gray => Planes::Gray { y },
            }
        }

        /// The sample of `plane` that belongs to pixel (x, y); 128 where there is no chroma.
        pub fn sample(&self, plane: usize, x: usize, y: usize) -> u8 {
            let (shift_x, shift_y) = match (plane, self.layout) {
                (0, _) | (_, Layout::I444) => (0, 0),
                (_, Layout::Gray) => return 128,
                (_, Layout::I422) => (1, 0),
                (_, Layout::Nv12 | Layout::I420) => (1, 1),
            };
            let (x, y) = (x >> shift_x, y >> shift_y);
            match (plane, self.layout) {
                (1 | 2, Layout::Nv12) => self.planes[1].0[y * self.planes[1].1 + 2 * x + plane - 1],
                _ => self.planes[plane].0[y * self.planes[plane].1 + x],
            }
        }
    }

    /// Bytes without visible pattern, the same for the same arguments.
    pub fn noise(plane: usize, x: usize, y: usize) -> u8 {
        let mut v = (plane as u64 + 1) << 60 | (x as u64) << 30 | y as u64;
        v = (v ^ (v >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        v = (v ^ (v >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (v >> 40) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{Image, LAYOUTS, noise};
    use super::*;

    #[test]
    fn planes_cover_their_size_and_nothing_larger() {
        for layout in LAYOUTS {
            for (width, height) in [(2, 2), (5, 3), (16, 7)] {
                let image = Image::new(layout, PixelSize::new(width, height), 3, noise);
                assert!(covers(&image.planes(), image.size), "{layout:?} {width}x{height}");
                assert!(
                    !covers(&image.planes(), PixelSize::new(width, height + 2)),
                    "{layout:?}"
                );
                assert!(
                    !covers(&image.planes(), PixelSize::new(width + 4, height)),
                    "{layout:?}"
                );
            }
        }
    }

    #[test]
    fn an_empty_picture_is_always_covered() {
        let y = Plane { data: &[], stride: 0 };
        assert!(covers(&Planes::Gray { y }, PixelSize::new(0, 0)));
    }
}
