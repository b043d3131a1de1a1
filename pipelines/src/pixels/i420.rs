//! Planes written one after the other, the form in which decoder conformance digests are published.

use crossdesk_core::units::PixelSize;

use super::planes::row;
use crate::picture::{Plane, Planes};

/// Appends the visible samples to `out`: all luma, then all Cb, then all Cr, without padding.
///
/// Odd edges keep their last column and row, chroma keeps its own resolution, and grey gets neutral 4:2:0 chroma,
/// as the reference decoder writes it.
///
/// # Panics
/// When a plane does not cover `size`.
pub fn append_planar(planes: &Planes<'_>, size: PixelSize, out: &mut Vec<u8>) {
    let (width, height) = (size.width as usize, size.height as usize);
    let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
    let mut append = |plane: &Plane<'_>, width: usize, height: usize| {
        for i in 0..height {
            out.extend_from_slice(row(plane, i, width));
        }
    };
    match planes {
        Planes::Nv12 { y, uv } => {
            append(y, width, height);
            for first in [0, 1] {
                for i in 0..half_height {
                    out.extend(row(uv, i, 2 * half_width).iter().skip(first).step_by(2));
                }
            }
        }
        Planes::I420 { y, u, v } => {
            append(y, width, height);
            append(u, half_width, half_height);
            append(v, half_width, half_height);
        }
        Planes::I422 { y, u, v } => {
            append(y, width, height);
            append(u, half_width, height);
            append(v, half_width, height);
        }
        Planes::I444 { y, u, v } => {
            append(y, width, height);
            append(u, width, height);
            append(v, width, height);
        }
        Planes::Gray { y } => {
            append(y, width, height);
            out.resize(out.len() + 2 * half_width * half_height, 128);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planes::testing::{Image, Layout, noise};
    use super::*;

    #[test]
    fn nv12_and_i420_of_the_same_picture_are_the_same_bytes() {
        let size = PixelSize::new(5, 3);
        let [a, b] = [Layout::Nv12, Layout::I420].map(|layout| {
            let mut out = Vec::new();
            append_planar(&Image::new(layout, size, 4, noise).planes(), size, &mut out);
            out
        });
        assert_eq!(a, b);
        assert_eq!(a.len(), 15 + 2 * 6);
        assert_eq!(
            (a[0], a[15], a[21]),
            (noise(0, 0, 0), noise(1, 0, 0), noise(2, 0, 0))
        );
    }

    #[test]
    fn grey_gets_neutral_chroma() {
        let size = PixelSize::new(2, 2);
        let mut out = Vec::new();
        append_planar(
            &Image::new(Layout::Gray, size, 0, |_, _, _| 9).planes(),
            size,
            &mut out,
        );
        assert_eq!(out, [9, 9, 9, 9, 128, 128]);
    }
}
