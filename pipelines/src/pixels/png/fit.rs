//! Which source pixels an image shows and how large it becomes: arithmetic only.

use crossdesk_core::units::{PixelRect, PixelSize};

/// The part of `region` that lies inside a picture of `size`, or `None` when they share no pixel.
pub(super) fn clamp_region(region: Option<PixelRect>, size: PixelSize) -> Option<PixelRect> {
    let region = region.unwrap_or(PixelRect::whole(size));
    let span = |start: u32, length: u32, limit: u32| {
        let end = start.saturating_add(length).min(limit);
        (end > start).then(|| end - start)
    };
    Some(PixelRect {
        width: span(region.x, region.width, size.width)?,
        height: span(region.y, region.height, size.height)?,
        ..region
    })
}

/// The largest size of the same shape whose longest edge is at most `edge`, never larger than `size`.
pub(super) fn within_edge(size: PixelSize, edge: u32) -> PixelSize {
    let longest = size.longest_edge();
    let edge = edge.max(1);
    if longest <= edge {
        return size;
    }
    let scaled = |v: u32| {
        let rounded = (u64::from(v) * u64::from(edge) + u64::from(longest) / 2) / u64::from(longest);
        (rounded as u32).max(1)
    };
    PixelSize::new(scaled(size.width), scaled(size.height))
}

/// Most bytes a PNG file of `size` can take: what does not compress is stored as it is.
fn most_bytes(size: PixelSize) -> u64 {
    // Signature, IHDR and IEND (57), zlib and block headers, and chunk headers: all below 200 and a thousandth.
    const OVERHEAD: u64 = 200;
    let raw = (u64::from(size.width) * 3 + 1) * u64::from(size.height);
    raw + raw / 1000 + OVERHEAD
}

/// The longest edge at which any image of the shape of `size` fits into `max_bytes`, if there is one.
pub(super) fn edge_that_surely_fits(size: PixelSize, max_bytes: usize) -> Option<u32> {
    let fits = |edge: u32| most_bytes(within_edge(size, edge)) <= max_bytes as u64;
    let (mut good, mut bad) = (0, size.longest_edge() + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) { good = middle } else { bad = middle }
    }
    (good > 0).then_some(good)
}

/// The next edge to try after an image with the longest edge `edge` took `bytes` instead of `max_bytes`.
///
/// Bytes go with the area, and somewhat slower because details move closer together; five per cent less than the
/// square root says made nearly every second try fit on desktop pictures and noise.
pub(super) fn smaller_edge(edge: u32, bytes: usize, max_bytes: usize) -> u32 {
    let ratio = (max_bytes as f64 / bytes as f64).sqrt() * 0.95;
    ((f64::from(edge) * ratio) as u32).clamp(1, edge.saturating_sub(1).max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: PixelSize = PixelSize::new(1920, 1080);

    fn rect(x: u32, y: u32, width: u32, height: u32) -> PixelRect {
        PixelRect { x, y, width, height }
    }

    #[test]
    fn a_region_is_cut_at_the_edges_of_the_picture() {
        assert_eq!(clamp_region(None, SIZE), Some(rect(0, 0, 1920, 1080)));
        let cut = clamp_region(Some(rect(1900, 1070, 100, 100)), SIZE);
        assert_eq!(cut, Some(rect(1900, 1070, 20, 10)));
        let huge = clamp_region(Some(rect(7, 9, u32::MAX, u32::MAX)), SIZE);
        assert_eq!(huge, Some(rect(7, 9, 1913, 1071)));
    }

    #[test]
    fn a_region_without_a_pixel_of_the_picture_is_nothing() {
        for region in [
            rect(1920, 0, 10, 10),
            rect(0, 1080, 10, 10),
            rect(u32::MAX, u32::MAX, u32::MAX, u32::MAX),
            rect(5, 5, 0, 10),
            rect(5, 5, 10, 0),
        ] {
            assert_eq!(clamp_region(Some(region), SIZE), None, "{region:?}");
        }
        assert_eq!(clamp_region(None, PixelSize::new(0, 0)), None);
    }

    #[test]
    fn sizes_keep_their_shape_and_never_grow() {
        assert_eq!(within_edge(SIZE, 1280), PixelSize::new(1280, 720));
        assert_eq!(within_edge(SIZE, 1920), SIZE);
        assert_eq!(within_edge(SIZE, 2048), SIZE);
        assert_eq!(
            within_edge(PixelSize::new(1080, 1920), 960),
            PixelSize::new(540, 960)
        );
        assert_eq!(
            within_edge(PixelSize::new(1366, 768), 1000),
            PixelSize::new(1000, 562)
        );
        assert_eq!(within_edge(PixelSize::new(4000, 1), 64), PixelSize::new(64, 1));
        assert_eq!(within_edge(SIZE, 0), PixelSize::new(1, 1));
    }

    #[test]
    fn the_sure_edge_is_the_largest_that_surely_fits() {
        let edge = edge_that_surely_fits(SIZE, 256 * 1024).unwrap();
        assert!(most_bytes(within_edge(SIZE, edge)) <= 256 * 1024);
        assert!(most_bytes(within_edge(SIZE, edge + 1)) > 256 * 1024);
        assert_eq!(edge_that_surely_fits(SIZE, 100), None);
        assert_eq!(edge_that_surely_fits(PixelSize::new(10, 10), 1 << 20), Some(10));
    }

    proptest! {
        #[test]
        fn clamped_regions_lie_inside_the_picture_and_the_request(
            x in 0_u32..5000, y in 0_u32..5000, w in 0_u32..5000, h in 0_u32..5000,
            width in 1_u32..4000, height in 1_u32..4000,
        ) {
            let (asked, size) = (rect(x, y, w, h), PixelSize::new(width, height));
            if let Some(got) = clamp_region(Some(asked), size) {
                prop_assert!(got.width > 0 && got.height > 0);
                prop_assert!((got.x, got.y) == (x, y) && got.width <= w && got.height <= h);
                prop_assert!(got.x + got.width <= width && got.y + got.height <= height);
            } else {
                prop_assert!(w == 0 || h == 0 || x >= width || y >= height);
            }
        }

        #[test]
        fn an_edge_limit_costs_less_than_a_pixel_of_shape(
            width in 1_u32..9000, height in 1_u32..9000, edge in 1_u32..3000,
        ) {
            let (size, fit) = (PixelSize::new(width, height), within_edge(PixelSize::new(width, height), edge));
            prop_assert!(fit.longest_edge() == edge.min(size.longest_edge()));
            let scale = f64::from(fit.longest_edge()) / f64::from(size.longest_edge());
            prop_assert!((f64::from(fit.width) - f64::from(width) * scale).abs() < 1.0);
            prop_assert!((f64::from(fit.height) - f64::from(height) * scale).abs() < 1.0);
        }

        #[test]
        fn every_retry_is_smaller(edge in 2_u32..3000, max in 1_usize..5_000_000, over in 1_usize..5_000_000) {
            let next = smaller_edge(edge, max + over, max);
            prop_assert!((1..edge).contains(&next));
        }
    }
}
