//! The pointer's picture, painted onto a picture of the screen and taken off again.

use crossdesk_core::units::{PixelRect, PixelSize};
use x11rb::protocol::xfixes::GetCursorImageReply;

use crate::desktop::DisplayArea;

/// Bytes of one pixel.
pub(super) const PIXEL: usize = 4;

/// What the pointer covers, and the pixels that were there.
#[derive(Debug)]
pub(super) struct Painted {
    /// The part of the picture it covers; no larger than the picture.
    pub(super) rect: PixelRect,
    under: Vec<u8>,
}

/// Paints `cursor` onto `pixels`, a picture of `area` with tight rows; `None` when it lies outside.
pub(super) fn paint(pixels: &mut [u8], area: DisplayArea, cursor: &GetCursorImageReply) -> Option<Painted> {
    let left = i32::from(cursor.x) - i32::from(cursor.xhot) - area.left;
    let top = i32::from(cursor.y) - i32::from(cursor.yhot) - area.top;
    let rect = clip(left, top, (cursor.width, cursor.height), area.size)?;
    let skip = (rect.x as i32 - left, rect.y as i32 - top);
    let mut under = Vec::with_capacity(rect.width as usize * rect.height as usize * PIXEL);
    for row in 0..rect.height {
        let place = place(rect, row, area.size);
        let screen = pixels.get_mut(place)?;
        under.extend_from_slice(screen);
        let first = (row as usize + skip.1 as usize) * usize::from(cursor.width) + skip.0 as usize;
        let image = cursor.cursor_image.get(first..first + rect.width as usize)?;
        for (pixel, &over) in screen.chunks_exact_mut(PIXEL).zip(image) {
            blend(pixel, over);
        }
    }
    Some(Painted { rect, under })
}

impl Painted {
    /// Puts back what was under the pointer.
    pub(super) fn remove(&self, pixels: &mut [u8], size: PixelSize) {
        let rows = self.under.chunks_exact(self.rect.width as usize * PIXEL);
        for (row, under) in (0..self.rect.height).zip(rows) {
            pixels[place(self.rect, row, size)].copy_from_slice(under);
        }
    }
}

/// Bytes of row `row` of `rect` in a picture of `size`.
fn place(rect: PixelRect, row: u32, size: PixelSize) -> std::ops::Range<usize> {
    let start = ((rect.y + row) as usize * size.width as usize + rect.x as usize) * PIXEL;
    start..start + rect.width as usize * PIXEL
}

/// The part of a rectangle at `left`, `top` that lies in a picture of `size`.
pub(super) fn clip(left: i32, top: i32, (width, height): (u16, u16), size: PixelSize) -> Option<PixelRect> {
    let edge = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let x = left.clamp(0, edge(size.width));
    let y = top.clamp(0, edge(size.height));
    let right = left.saturating_add(width.into()).clamp(x, edge(size.width));
    let bottom = top.saturating_add(height.into()).clamp(y, edge(size.height));
    let rect = PixelRect {
        x: x.unsigned_abs(),
        y: y.unsigned_abs(),
        width: (right - x).unsigned_abs(),
        height: (bottom - y).unsigned_abs(),
    };
    (rect.width > 0 && rect.height > 0).then_some(rect)
}

/// Lays `over` (alpha, red, green, blue; colours multiplied by alpha) over a pixel.
fn blend(pixel: &mut [u8], over: u32) {
    let [blue, green, red, alpha] = over.to_le_bytes();
    let rest = 255 - u32::from(alpha);
    for (under, over) in pixel.iter_mut().zip([blue, green, red]) {
        let shine = (u32::from(*under) * rest + 127) / 255;
        *under = u8::try_from(shine + u32::from(over)).unwrap_or(u8::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(x: i16, y: i16) -> GetCursorImageReply {
        GetCursorImageReply {
            x,
            y,
            width: 2,
            height: 2,
            xhot: 1,
            yhot: 0,
            cursor_image: vec![0xff00_00ff, 0x8080_0000, 0, 0xff00_ff00],
            ..GetCursorImageReply::default()
        }
    }

    const AREA: DisplayArea = DisplayArea {
        left: 100,
        top: 50,
        size: PixelSize::new(3, 2),
    };

    #[test]
    fn the_pointer_is_painted_with_its_hot_spot_in_place_and_taken_off_again() {
        let mut pixels = vec![100u8; 3 * 2 * PIXEL];
        let painted = paint(&mut pixels, AREA, &cursor(101, 50)).unwrap();
        assert_eq!(
            painted.rect,
            PixelRect {
                x: 0,
                y: 0,
                width: 2,
                height: 2
            }
        );
        assert_eq!(pixels[..3], [255, 0, 0], "opaque blue");
        assert_eq!(pixels[4..7], [50, 50, 178], "half red over grey");
        assert_eq!(pixels[12..15], [100, 100, 100], "nothing");
        assert_eq!(pixels[16..19], [0, 255, 0], "opaque green");
        painted.remove(&mut pixels, AREA.size);
        assert!(pixels.iter().all(|byte| *byte == 100));
    }

    #[test]
    fn a_pointer_at_the_edge_is_cut_and_one_outside_is_not_painted() {
        let mut pixels = vec![0u8; 3 * 2 * PIXEL];
        let cut = paint(&mut pixels, AREA, &cursor(100, 49)).unwrap();
        assert_eq!((cut.rect.width, cut.rect.height), (1, 1));
        assert_eq!(pixels[..3], [0, 255, 0], "its lower right pixel");
        assert!(paint(&mut pixels, AREA, &cursor(90, 50)).is_none());
        assert!(paint(&mut pixels, AREA, &cursor(104, 60)).is_none());
    }
}
