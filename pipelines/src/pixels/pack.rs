//! Planes of any supported layout and colour into tightly packed NV12 in limited-range BT.601.
//!
//! The loops are plain iterator chains because those become vector code at the baseline of x86-64; written by hand
//! with AVX2 the whole pass was no faster than the memory it moves.

use crossdesk_core::media::Color;
use crossdesk_core::units::PixelSize;

use super::bt601;
use super::planes::{covers, row};
use crate::picture::{Plane, Planes};

/// Chroma of grey.
pub(super) const NEUTRAL: u8 = 128;

/// Bytes of NV12 for a picture of `size`, which is cut to even edges first.
pub const fn nv12_len(size: PixelSize) -> usize {
    let area = size.even().area() as usize;
    area + area / 2
}

/// Packs `planes` as NV12 in limited-range BT.601 into `out`: rows of luma, then rows of interleaved Cb Cr.
///
/// `size` is the visible size of the picture; an odd edge is cut to even, as 4:2:0 needs. Costs one pass over the
/// samples and no conversion when `color` already is limited-range BT.601. Other colours are converted at the
/// chroma sites of 4:2:0 to within one step; finer chroma is averaged.
///
/// # Panics
/// When `out` is not `nv12_len(size)` bytes long or a plane does not cover `size` (see `covers`).
pub fn pack_nv12(planes: &Planes<'_>, size: PixelSize, color: Color, out: &mut [u8]) {
    assert_eq!(
        out.len(),
        nv12_len(size),
        "the output has room for exactly one picture"
    );
    assert!(
        covers(planes, size),
        "the planes hold every sample of the picture"
    );
    let size = size.even();
    if size.area() == 0 {
        return;
    }
    let (luma, chroma) = out.split_at_mut(size.area() as usize);
    let out = Output {
        width: size.width as usize,
        luma,
        chroma,
    };
    if keeps_samples(planes, color) {
        copy(planes, out);
    } else {
        bt601::convert(planes, color, out);
    }
}

/// True when samples of `color` mean the same in limited-range BT.601; grey has no use for a matrix.
fn keeps_samples(planes: &Planes<'_>, color: Color) -> bool {
    match planes {
        Planes::Gray { .. } => !color.full_range,
        _ => color == Color::BT601_LIMITED,
    }
}

/// The two planes being written, both `width` bytes a row.
pub(super) struct Output<'a> {
    pub width: usize,
    pub luma: &'a mut [u8],
    pub chroma: &'a mut [u8],
}

fn copy(planes: &Planes<'_>, out: Output<'_>) {
    let Output { width, luma, chroma } = out;
    let rows = chroma.chunks_exact_mut(width).enumerate();
    match planes {
        Planes::Nv12 { y, uv } => {
            copy_rows(y, width, luma);
            copy_rows(uv, width, chroma);
        }
        Planes::I420 { y, u, v } => {
            copy_rows(y, width, luma);
            rows.for_each(|(i, out)| interleave(row(u, i, width / 2), row(v, i, width / 2), out));
        }
        Planes::I422 { y, u, v } => {
            copy_rows(y, width, luma);
            rows.for_each(|(i, out)| average_rows(two_rows(u, i, width / 2), two_rows(v, i, width / 2), out));
        }
        Planes::I444 { y, u, v } => {
            copy_rows(y, width, luma);
            rows.for_each(|(i, out)| average_blocks(two_rows(u, i, width), two_rows(v, i, width), out));
        }
        Planes::Gray { y } => {
            copy_rows(y, width, luma);
            chroma.fill(NEUTRAL);
        }
    }
}

fn copy_rows(plane: &Plane<'_>, width: usize, out: &mut [u8]) {
    if plane.stride == width {
        out.copy_from_slice(&plane.data[..out.len()]);
        return;
    }
    for (i, out) in out.chunks_exact_mut(width).enumerate() {
        out.copy_from_slice(row(plane, i, width));
    }
}

/// Rows `2 * index` and `2 * index + 1`.
pub(super) fn two_rows<'a>(plane: &Plane<'a>, index: usize, width: usize) -> [&'a [u8]; 2] {
    [row(plane, 2 * index, width), row(plane, 2 * index + 1, width)]
}

pub(super) fn interleave(u: &[u8], v: &[u8], out: &mut [u8]) {
    for ((out, &u), &v) in out.chunks_exact_mut(2).zip(u).zip(v) {
        out[0] = u;
        out[1] = v;
    }
}

fn average_rows(u: [&[u8]; 2], v: [&[u8]; 2], out: &mut [u8]) {
    let mean = |a: u8, b: u8| ((u16::from(a) + u16::from(b) + 1) >> 1) as u8;
    let sources = u[0].iter().zip(u[1]).zip(v[0].iter().zip(v[1]));
    for (out, ((&u0, &u1), (&v0, &v1))) in out.chunks_exact_mut(2).zip(sources) {
        out[0] = mean(u0, u1);
        out[1] = mean(v0, v1);
    }
}

fn average_blocks(u: [&[u8]; 2], v: [&[u8]; 2], out: &mut [u8]) {
    let sums = block_sums(u).zip(block_sums(v));
    for (out, (u, v)) in out.chunks_exact_mut(2).zip(sums) {
        out[0] = ((u + 2) >> 2) as u8;
        out[1] = ((v + 2) >> 2) as u8;
    }
}

/// Sums of 2x2 samples along two rows.
pub(super) fn block_sums<'a>(rows: [&'a [u8]; 2]) -> impl Iterator<Item = i16> + 'a {
    let pairs = rows[0].chunks_exact(2).zip(rows[1].chunks_exact(2));
    pairs.map(|(a, b)| i16::from(a[0]) + i16::from(a[1]) + i16::from(b[0]) + i16::from(b[1]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::color::reference::{COLORS, from_rgb, to_rgb};
    use super::super::planes::testing::{Image, LAYOUTS, Layout, noise};
    use super::*;

    fn pack(image: &Image, color: Color) -> Vec<u8> {
        let mut out = vec![0x55; nv12_len(image.size)];
        pack_nv12(&image.planes(), image.size, color, &mut out);
        out
    }

    /// The mean of the samples of `plane` over the 2x2 pixels of a chroma site.
    fn site(image: &Image, plane: usize, x: usize, y: usize) -> f64 {
        let corners = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let samples = corners.map(|(dx, dy)| f64::from(image.sample(plane, 2 * x + dx, 2 * y + dy)));
        samples.iter().sum::<f64>() / 4.0
    }

    fn to_step(v: f64) -> i32 {
        v.round().clamp(0.0, 255.0) as i32
    }

    fn check_against_reference(image: &Image, color: Color) -> Result<(), TestCaseError> {
        let size = image.size.even();
        let (width, height) = (size.width as usize, size.height as usize);
        let out = pack(image, color);
        let near = |got: u8, expected: f64| (i32::from(got) - to_step(expected)).abs() <= 1;
        for y in 0..height {
            for x in 0..width {
                let (cb, cr) = (site(image, 1, x / 2, y / 2), site(image, 2, x / 2, y / 2));
                let luma = f64::from(image.sample(0, x, y));
                let expected = from_rgb(Color::BT601_LIMITED, to_rgb(color, [luma, cb, cr]));
                let chroma = width * height + y / 2 * width + x / 2 * 2;
                let got = [out[y * width + x], out[chroma], out[chroma + 1]];
                let fine = got.iter().zip(expected).all(|(&g, e)| near(g, e));
                prop_assert!(
                    fine,
                    "{color:?} {:?} ({x},{y}): {got:?} {expected:?}",
                    image.layout
                );
            }
        }
        Ok(())
    }

    fn layout() -> impl Strategy<Value = Layout> {
        prop::sample::select(&LAYOUTS[..])
    }

    proptest! {
        #[test]
        fn every_layout_size_stride_and_colour_is_within_one_step(
            layout in layout(), width in 1_u32..70, height in 1_u32..9, padding in 0_usize..5,
            color in prop::sample::select(&COLORS[..]), seed in 0_usize..1000,
        ) {
            let image = Image::new(layout, PixelSize::new(width, height), padding, |p, x, y| noise(p, x + seed, y));
            check_against_reference(&image, color)?;
        }
    }

    #[test]
    fn four_by_two_i420_is_copied_and_interleaved() {
        let image = Image::new(Layout::I420, PixelSize::new(4, 2), 3, |p, x, y| {
            (100 * p + 10 * y + x) as u8
        });
        let expected = [0, 1, 2, 3, 10, 11, 12, 13, 100, 200, 101, 201];
        assert_eq!(pack(&image, Color::BT601_LIMITED), expected);
    }

    #[test]
    fn odd_edges_are_cut() {
        let image = Image::new(Layout::Nv12, PixelSize::new(5, 3), 0, |p, x, y| {
            (100 * p + 10 * y + x) as u8
        });
        let expected = [0, 1, 2, 3, 10, 11, 12, 13, 100, 200, 101, 201];
        assert_eq!(pack(&image, Color::BT601_LIMITED), expected);
        let line = Image::new(Layout::Nv12, PixelSize::new(9, 1), 0, noise);
        assert!(pack(&line, Color::BT601_LIMITED).is_empty());
    }

    #[test]
    fn finer_chroma_is_averaged_with_rounding() {
        let value = |p: usize, x: usize, y: usize| if p == 0 { 50 } else { (p * 10 + x + 2 * y) as u8 };
        let full = Image::new(Layout::I444, PixelSize::new(2, 2), 1, value);
        assert_eq!(pack(&full, Color::BT601_LIMITED), [50, 50, 50, 50, 12, 22]);
        let half = Image::new(Layout::I422, PixelSize::new(2, 2), 1, value);
        assert_eq!(pack(&half, Color::BT601_LIMITED), [50, 50, 50, 50, 11, 21]);
    }

    #[test]
    fn black_and_white_keep_their_ends_in_every_colour() {
        for color in COLORS {
            for layout in LAYOUTS {
                let (black, white) = if color.full_range { (0, 255) } else { (16, 235) };
                let value = |p: usize, x: usize, _: usize| match (p, x) {
                    (0, 0 | 1) => black,
                    (0, _) => white,
                    _ => NEUTRAL,
                };
                let image = Image::new(layout, PixelSize::new(4, 2), 0, value);
                let expected = [16, 16, 235, 235, 16, 16, 235, 235, 128, 128, 128, 128];
                assert_eq!(pack(&image, color), expected, "{color:?} {layout:?}");
            }
        }
    }

    #[test]
    fn every_luma_value_of_a_full_range_picture_is_right() {
        let image = Image::new(Layout::Gray, PixelSize::new(256, 2), 0, |_, x, _| x as u8);
        let out = pack(
            &image,
            Color {
                full_range: true,
                ..Color::BT601_LIMITED
            },
        );
        for (y, &got) in out[..256].iter().enumerate() {
            let exact = 16.0 + y as f64 * 219.0 / 255.0;
            assert!((f64::from(got) - exact).abs() < 0.52, "{y}: {got} for {exact}");
        }
    }

    #[test]
    fn primaries_of_bt709_arrive_as_primaries_of_bt601() {
        let bt709 = Color {
            matrix: crossdesk_core::media::Matrix::Bt709,
            full_range: false,
        };
        for rgb in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]] {
            let source = from_rgb(bt709, rgb).map(|v| v.round() as u8);
            let expected = from_rgb(Color::BT601_LIMITED, rgb).map(f64::round);
            let image = Image::new(Layout::I420, PixelSize::new(16, 2), 0, |p, _, _| source[p]);
            let out = pack(&image, bt709);
            for (got, expected) in [out[0], out[32], out[33]].iter().zip(expected) {
                assert!(
                    (f64::from(*got) - expected).abs() <= 1.0,
                    "{rgb:?}: {got} for {expected}"
                );
            }
        }
    }

    #[test]
    #[should_panic(expected = "the planes hold every sample")]
    fn short_planes_are_a_mistake_of_the_caller() {
        let image = Image::new(Layout::I420, PixelSize::new(8, 8), 0, noise);
        let size = PixelSize::new(8, 10);
        pack_nv12(
            &image.planes(),
            size,
            Color::BT601_LIMITED,
            &mut vec![0; nv12_len(size)],
        );
    }
}
