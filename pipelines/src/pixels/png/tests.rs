//! Finished files, decoded again and compared with float conversions of their source.

use std::sync::Arc;

use crossdesk_core::media::{Color, Matrix};
use crossdesk_core::time::Monotonic;
use proptest::prelude::*;

use super::super::color::reference::{COLORS, to_rgb};
use super::super::planes::testing::{Image, LAYOUTS, Layout, noise};
use super::*;
use crate::picture::Frame;

const MIB: usize = 1 << 20;

fn request(region: Option<PixelRect>, max_edge: u32) -> PngRequest {
    PngRequest {
        region,
        max_edge,
        max_bytes: 16 * MIB,
    }
}

fn rect(x: u32, y: u32, width: u32, height: u32) -> PixelRect {
    PixelRect { x, y, width, height }
}

fn encode(image: &Image, color: Color, request: &PngRequest) -> Result<Png, PngError> {
    PngEncoder::new().encode_planes(&image.planes(), image.size, color, request)
}

/// The pixels of a PNG file, checked against the size it claims.
fn decode(png: &Png) -> Vec<[u8; 3]> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(&png.data))
        .read_info()
        .unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!(
        (info.width, info.height),
        (png.image_size.width, png.image_size.height)
    );
    assert_eq!(
        (info.color_type, info.bit_depth),
        (png::ColorType::Rgb, png::BitDepth::Eight)
    );
    bytes.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect()
}

/// What pixel (x, y) of `image` looks like.
fn expected(image: &Image, color: Color, x: u32, y: u32) -> [f64; 3] {
    let sample = |plane| f64::from(image.sample(plane, x as usize, y as usize));
    to_rgb(color, [sample(0), sample(1), sample(2)]).map(|v| (v * 255.0).clamp(0.0, 255.0))
}

fn assert_shows(image: &Image, color: Color, png: &Png, tolerance: f64) {
    let pixels = decode(png);
    for (i, got) in pixels.iter().enumerate() {
        let (x, y) = (i as u32 % png.image_size.width, i as u32 / png.image_size.width);
        let want = expected(image, color, png.source_rect.x + x, png.source_rect.y + y);
        let near = got
            .iter()
            .zip(want)
            .all(|(&g, w)| (f64::from(g) - w).abs() <= tolerance);
        assert!(
            near,
            "{color:?} {:?} ({x},{y}) of {:?}: {got:?} {want:?}",
            image.layout, png.source_rect
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_crop_shows_exactly_the_pixels_asked_for(
        layout in prop::sample::select(&LAYOUTS[..]), color in prop::sample::select(&COLORS[..]),
        width in 1_u32..90, height in 1_u32..40, padding in 0_usize..6,
        x in 0_u32..90, y in 0_u32..40, w in 1_u32..90, h in 1_u32..40,
    ) {
        let image = Image::new(layout, PixelSize::new(width, height), padding, noise);
        let asked = rect(x, y, w, h);
        match encode(&image, color, &request(Some(asked), 4096)) {
            Ok(png) => {
                let cut = rect(x, y, w.min(width - x), h.min(height - y));
                prop_assert_eq!(png.source_rect, cut);
                prop_assert_eq!(png.image_size, cut.size());
                prop_assert_eq!(png.source_size, image.size);
                assert_shows(&image, color, &png, 0.6);
            }
            Err(error) => {
                prop_assert_eq!(error, PngError::OutsidePicture);
                prop_assert!(x >= width || y >= height);
            }
        }
    }

    #[test]
    fn scaling_keeps_flat_colours_at_every_size(
        layout in prop::sample::select(&LAYOUTS[..]), color in prop::sample::select(&COLORS[..]),
        width in 1_u32..200, height in 1_u32..200, padding in 0_usize..6,
        x in 0_u32..50, y in 0_u32..50, edge in 1_u32..80, luma in 16_u8..236, cb in 16_u8..240, cr in 16_u8..240,
    ) {
        let image = Image::new(layout, PixelSize::new(width, height), padding, |p, _, _| [luma, cb, cr][p]);
        let asked = rect(x.min(width - 1), y.min(height - 1), width, height);
        let png = encode(&image, color, &request(Some(asked), edge)).unwrap();
        prop_assert!(png.image_size.longest_edge() <= edge);
        let want = expected(&image, color, 0, 0);
        for got in decode(&png) {
            prop_assert!(got.iter().zip(want).all(|(&g, w)| (f64::from(g) - w).abs() <= 0.6), "{:?} {:?}", got, want);
        }
    }
}

#[test]
fn every_matrix_and_range_is_the_nearest_step() {
    for color in COLORS {
        for layout in LAYOUTS {
            let image = Image::new(layout, PixelSize::new(321, 47), 3, noise);
            assert_shows(
                &image,
                color,
                &encode(&image, color, &request(None, 4096)).unwrap(),
                1.51,
            );
        }
    }
}

#[test]
fn black_and_white_are_exact() {
    for color in COLORS {
        for layout in LAYOUTS {
            let (black, white) = if color.full_range { (0, 255) } else { (16, 235) };
            let value = |p: usize, x: usize, _: usize| match (p, x < 32) {
                (0, true) => black,
                (0, false) => white,
                _ => 128,
            };
            let image = Image::new(layout, PixelSize::new(64, 8), 0, value);
            let pixels = decode(&encode(&image, color, &request(None, 64)).unwrap());
            assert_eq!(
                (pixels[0], pixels[63]),
                ([0; 3], [255; 3]),
                "{color:?} {layout:?}"
            );
        }
    }
}

#[test]
fn primaries_come_back_as_primaries() {
    use super::super::color::reference::from_rgb;
    for matrix in [Matrix::Bt601, Matrix::Bt709] {
        for full_range in [false, true] {
            let color = Color { matrix, full_range };
            for rgb in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
                let samples = from_rgb(color, rgb).map(|v| v.round().clamp(0.0, 255.0) as u8);
                let image = Image::new(Layout::Nv12, PixelSize::new(16, 16), 0, |p, _, _| samples[p]);
                let got = decode(&encode(&image, color, &request(None, 16)).unwrap())[100];
                for (g, w) in got.iter().zip(rgb) {
                    assert!(
                        (f64::from(*g) - w * 255.0).abs() <= 3.0,
                        "{color:?} {rgb:?}: {got:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_mark_lands_where_its_rectangle_says() {
    // A white 12x12 mark at (601, 303) of a black picture, seen through an odd region at a third of its size.
    let value = |p: usize, x: usize, y: usize| match p {
        0 if (601..613).contains(&x) && (303..315).contains(&y) => 235,
        0 => 16,
        _ => 128,
    };
    let image = Image::new(Layout::I420, PixelSize::new(1280, 720), 0, value);
    let png = encode(
        &image,
        Color::BT601_LIMITED,
        &request(Some(rect(301, 151, 901, 451)), 300),
    )
    .unwrap();
    let scale = f64::from(png.image_size.width) / f64::from(png.source_rect.width);
    let (mut sum, mut weight) = ([0.0, 0.0], 0.0);
    for (i, pixel) in decode(&png).iter().enumerate() {
        let (x, y) = (i as u32 % png.image_size.width, i as u32 / png.image_size.width);
        let v = f64::from(pixel[0]);
        sum[0] += v * (f64::from(x) + 0.5);
        sum[1] += v * (f64::from(y) + 0.5);
        weight += v;
    }
    let centre = sum.map(|s| s / weight / scale);
    assert!((centre[0] - (607.0 - 301.0)).abs() < 0.3, "{centre:?}");
    assert!((centre[1] - (309.0 - 151.0)).abs() < 0.3, "{centre:?}");
}

#[test]
fn chroma_follows_luma_through_an_odd_scaled_crop() {
    // Left half red, right half blue; the border at x = 401 must be at the same place in every layout.
    for layout in [Layout::Nv12, Layout::I420, Layout::I422, Layout::I444] {
        let value = |p: usize, x: usize, _: usize| {
            let x = if p > 0 && layout != Layout::I444 { 2 * x } else { x };
            if x < 401 {
                [81, 90, 240][p]
            } else {
                [41, 240, 110][p]
            }
        };
        let image = Image::new(layout, PixelSize::new(800, 90), 0, value);
        for edge in [500, 200] {
            let png = encode(
                &image,
                Color::BT601_LIMITED,
                &request(Some(rect(101, 1, 601, 81)), edge),
            )
            .unwrap();
            let row = &decode(&png)[..png.image_size.width as usize];
            let border = row.iter().position(|p| p[2] > p[0]).unwrap() as f64;
            let exact = 300.0 * f64::from(edge) / 601.0;
            assert!(
                (border - exact).abs() <= 1.5,
                "{layout:?} {edge}: {border} for {exact}"
            );
        }
    }
}

#[test]
fn byte_limits_hold_on_noise_and_are_used_well() {
    let image = Image::new(Layout::I420, PixelSize::new(1921, 1081), 0, noise);
    for (edge, max_bytes) in [(2048, 2 * MIB), (960, 256 * 1024), (960, 20_000), (64, 1000)] {
        let png = encode(
            &image,
            Color::BT601_LIMITED,
            &PngRequest {
                region: None,
                max_edge: edge,
                max_bytes,
            },
        );
        let png = png.unwrap();
        assert!(
            png.data.len() <= max_bytes,
            "{} bytes for {max_bytes}",
            png.data.len()
        );
        assert!(
            png.data.len() * 3 > max_bytes * 2,
            "{} bytes for {max_bytes}",
            png.data.len()
        );
        assert_eq!(png.source_rect, rect(0, 0, 1921, 1081));
        let shape = |s: PixelSize| f64::from(s.width) / f64::from(s.height);
        let off =
            (f64::from(png.image_size.width) / shape(image.size) - f64::from(png.image_size.height)).abs();
        assert!(off <= 1.0, "{:?}", png.image_size);
        decode(&png);
    }
}

#[test]
fn the_same_request_gives_the_same_file_whatever_came_before() {
    let image = Image::new(Layout::Nv12, PixelSize::new(640, 360), 0, noise);
    let small = PngRequest {
        region: None,
        max_edge: 960,
        max_bytes: 100_000,
    };
    let mut encoder = PngEncoder::new();
    let mut once =
        |request| encoder.encode_planes(&image.planes(), image.size, Color::BT601_LIMITED, &request);
    let first = once(small).unwrap();
    once(request(None, 4096)).unwrap();
    once(request(Some(rect(3, 5, 7, 9)), 4)).unwrap();
    assert_eq!(once(small).unwrap(), first);
}

#[test]
fn nothing_fits_into_a_few_bytes() {
    let image = Image::new(Layout::Gray, PixelSize::new(64, 64), 0, noise);
    let tiny = PngRequest {
        region: None,
        max_edge: 64,
        max_bytes: 20,
    };
    assert_eq!(
        encode(&image, Color::BT601_LIMITED, &tiny),
        Err(PngError::TooFewBytes)
    );
}

#[test]
fn planes_smaller_than_their_picture_are_refused() {
    let image = Image::new(Layout::I420, PixelSize::new(64, 64), 0, noise);
    let size = PixelSize::new(64, 66);
    let result =
        PngEncoder::new().encode_planes(&image.planes(), size, Color::BT601_LIMITED, &request(None, 64));
    assert_eq!(result, Err(PngError::ShortPlanes));
}

struct Memory(Option<Image>);

impl Frame for Memory {
    fn map(&self, read: &mut dyn FnMut(Planes<'_>)) -> Result<(), MapError> {
        let image = self.0.as_ref().ok_or(MapError("lost"))?;
        read(image.planes());
        Ok(())
    }
}

fn picture(frame: Memory) -> Picture {
    Picture {
        size: PixelSize::new(4, 2),
        color: Color::BT601_LIMITED,
        sequence: 1,
        geometry_epoch: 1,
        received: Monotonic::from_micros(0),
        decoded: Monotonic::from_micros(0),
        frame: Arc::new(frame),
    }
}

#[test]
fn a_picture_is_read_through_its_frame() {
    let image = Image::new(Layout::Nv12, PixelSize::new(4, 2), 0, |p, x, _| {
        if p == 0 { 16 + 73 * x as u8 } else { 128 }
    });
    let png = PngEncoder::new()
        .encode(&picture(Memory(Some(image))), &request(None, 64))
        .unwrap();
    assert_eq!(decode(&png)[..4], [[0; 3], [85; 3], [170; 3], [255; 3]]);
    let lost = PngEncoder::new().encode(&picture(Memory(None)), &request(None, 64));
    assert_eq!(lost, Err(PngError::Map(MapError("lost"))));
}
