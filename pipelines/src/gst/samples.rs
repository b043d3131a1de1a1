//! The samples of a picture in one canonical order, to compare decoders with each other and with digests.

use crossdesk_core::units::PixelSize;

use crate::picture::{Frame, MapError, Plane, Planes};

/// Appends the visible samples of `frame` to `out`: all of Y, then Cb, then Cr, rows without padding. NV12
/// gives the same bytes as I420.
///
/// # Errors
/// When the memory cannot be mapped.
pub(super) fn append(frame: &dyn Frame, size: PixelSize, out: &mut Vec<u8>) -> Result<(), MapError> {
    frame.map(&mut |planes| append_planes(&planes, size, out))
}

fn append_planes(planes: &Planes<'_>, size: PixelSize, out: &mut Vec<u8>) {
    let (width, height) = (size.width as usize, size.height as usize);
    let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
    match planes {
        Planes::Nv12 { y, uv } => {
            append_plane(y, width, height, out);
            for offset in 0..2 {
                for row in rows(uv, half_width * 2, half_height) {
                    out.extend(row[offset..].iter().step_by(2));
                }
            }
        }
        Planes::I420 { y, u, v } => {
            append_plane(y, width, height, out);
            append_plane(u, half_width, half_height, out);
            append_plane(v, half_width, half_height, out);
        }
        Planes::I422 { y, u, v } => {
            append_plane(y, width, height, out);
            append_plane(u, half_width, height, out);
            append_plane(v, half_width, height, out);
        }
        Planes::I444 { y, u, v } => {
            for plane in [y, u, v] {
                append_plane(plane, width, height, out);
            }
        }
        Planes::Gray { y } => append_plane(y, width, height, out),
    }
}

fn rows<'a>(plane: &Plane<'a>, width: usize, height: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let Plane { data, stride } = *plane;
    (0..height).map(move |row| &data[row * stride..row * stride + width])
}

fn append_plane(plane: &Plane<'_>, width: usize, height: usize, out: &mut Vec<u8>) {
    for row in rows(plane, width, height) {
        out.extend_from_slice(row);
    }
}

/// Where two pictures differ first: the index of the sample in canonical order; `None` when they are equal.
pub(super) fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a.len() != b.len() {
        return Some(a.len().min(b.len()));
    }
    a.iter().zip(b).position(|(a, b)| a != b)
}

/// True when all luma samples are nearly the same: the grey or green surface of a decoder that decodes nothing.
pub(super) fn is_flat(samples: &[u8], size: PixelSize) -> bool {
    /// A solid colour stays within this after any rounding.
    const SPREAD: u8 = 2;
    let luma = &samples[..samples.len().min(size.width as usize * size.height as usize)];
    let (low, high) = luma.iter().fold((u8::MAX, u8::MIN), |(low, high), &sample| {
        (low.min(sample), high.max(sample))
    });
    high.saturating_sub(low) <= SPREAD
}

/// True when an IDR of `bytes` bytes cannot be a picture of one colour.
///
/// A flat IDR of x264, OpenH264 or a hardware encoder costs well under one byte a macroblock.
pub(super) fn has_detail(bytes: usize, coded: PixelSize) -> bool {
    bytes as u64 > coded.area() / 256 * 2 + 256
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::PlainFrame;

    #[test]
    fn canonical_order_is_planar() {
        let size = PixelSize::new(3, 2);
        let frame = PlainFrame::from_fn(size, |x, y| (y * 10 + x) as u8, |x, _| [100 + x as u8, 200]);
        let mut out = Vec::new();
        append(&frame, size, &mut out).unwrap();
        assert_eq!(out, [0, 1, 2, 10, 11, 12, 100, 101, 200, 200]);
        let nv12 = Planes::Nv12 {
            y: Plane {
                data: &[0, 1, 2, 9, 10, 11, 12],
                stride: 4,
            },
            uv: Plane {
                data: &[100, 200, 101, 200],
                stride: 4,
            },
        };
        let mut same = Vec::new();
        append_planes(&nv12, size, &mut same);
        assert_eq!(first_difference(&out, &same), None);
        same[7] += 1;
        assert_eq!(first_difference(&out, &same), Some(7));
    }

    #[test]
    fn flat_pictures_are_seen_and_small_idrs_may_be_flat() {
        let size = PixelSize::new(4, 4);
        assert!(is_flat(&[128; 24], size));
        let mut picture = [128; 24];
        picture[5] = 16;
        assert!(!is_flat(&picture, size));
        assert!(!has_detail(700, PixelSize::new(1920, 1088)));
        assert!(has_detail(40_000, PixelSize::new(1920, 1088)));
    }
}
