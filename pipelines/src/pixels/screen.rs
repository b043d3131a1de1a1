//! Pixels of a screen into the planes an encoder takes, only where they changed.

use crossdesk_core::screen::ScreenPixels;
use crossdesk_core::units::{PixelRect, PixelSize};

use super::desktop::Layout;

/// Bytes of one pixel.
const PIXEL: usize = 4;

/// A 4:2:0 picture in limited-range BT.601 that follows a screen.
#[derive(Debug)]
pub struct Canvas {
    size: PixelSize,
    layout: Layout,
    bytes: Vec<u8>,
    cb: Vec<u8>,
    cr: Vec<u8>,
}

impl Canvas {
    /// A black picture of `size`, whose edges are even.
    pub fn new(size: PixelSize, layout: Layout) -> Self {
        let half = size.width as usize / 2;
        Self {
            size,
            layout,
            bytes: vec![0; layout.len],
            cb: vec![0; half],
            cr: vec![0; half],
        }
    }

    /// Its size.
    pub fn size(&self) -> PixelSize {
        self.size
    }

    /// Its bytes, as the layout says.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Draws `area` of `pixels`, which are at least as large as this picture; what lies outside is left out.
    pub fn draw(&mut self, pixels: &ScreenPixels<'_>, area: PixelRect) {
        // Chroma covers two columns and two rows.
        let end = |start: u32, length: u32, limit: u32| (start + length).next_multiple_of(2).min(limit);
        let (left, top) = (area.x & !1, area.y & !1);
        let right = end(area.x, area.width, self.size.width);
        let bottom = end(area.y, area.height, self.size.height);
        if left >= right {
            return;
        }
        let columns = left as usize..right as usize;
        for y in (top as usize..bottom as usize).step_by(2) {
            let row = |y: usize| {
                let start = y * pixels.stride;
                &pixels.data[start + columns.start * PIXEL..start + columns.end * PIXEL]
            };
            let (upper, lower) = (row(y), row(y + 1));
            for (y, pixels) in [(y, upper), (y + 1, lower)] {
                let start = y * self.layout.y_stride;
                luma(
                    pixels,
                    &mut self.bytes[start + columns.start..start + columns.end],
                );
            }
            self.draw_chroma(upper, lower, columns.start / 2, y / 2);
        }
    }

    fn draw_chroma(&mut self, upper: &[u8], lower: &[u8], column: usize, row: usize) {
        let sites = upper.len() / (2 * PIXEL);
        let (cb, cr) = (&mut self.cb[..sites], &mut self.cr[..sites]);
        chroma(upper, lower, [-38, -74, 112], cb);
        chroma(upper, lower, [112, -94, -18], cr);
        let Layout { c_step, c_stride, .. } = self.layout;
        for (plane, samples) in [(self.layout.u, cb), (self.layout.v, cr)] {
            let start = plane + row * c_stride + column * c_step;
            let out = &mut self.bytes[start..];
            if c_step == 1 {
                out[..sites].copy_from_slice(samples);
            } else {
                let out = out.iter_mut().step_by(c_step);
                out.zip(samples).for_each(|(out, sample)| *out = *sample);
            }
        }
    }
}

/// The integer form of the BT.601 equations, in 16 bits without a sign: vector units multiply them fastest.
fn luma(pixels: &[u8], out: &mut [u8]) {
    for (out, pixel) in out.iter_mut().zip(pixels.chunks_exact(PIXEL)) {
        let [blue, green, red] = [pixel[0], pixel[1], pixel[2]].map(u16::from);
        let sum = 66 * red + 129 * green + 25 * blue + 128;
        *out = (sum >> 8) as u8 + 16;
    }
}

/// One chroma plane of two rows: the weights of red, green and blue apply to the mean of four pixels.
fn chroma(upper: &[u8], lower: &[u8], [red, green, blue]: [i32; 3], out: &mut [u8]) {
    let pairs = upper.chunks_exact(2 * PIXEL).zip(lower.chunks_exact(2 * PIXEL));
    for (out, (a, b)) in out.iter_mut().zip(pairs) {
        let sum =
            |n: usize| i32::from(a[n]) + i32::from(a[n + PIXEL]) + i32::from(b[n]) + i32::from(b[n + PIXEL]);
        let weighted = blue * sum(0) + green * sum(1) + red * sum(2);
        *out = (((weighted + 512) >> 10) + 128) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const I420: Layout = Layout {
        y_stride: 8,
        u: 32,
        v: 40,
        c_stride: 4,
        c_step: 1,
        len: 48,
    };

    /// 7 by 5 pixels in rows of 8, all of one colour.
    fn screen(bgr: [u8; 3]) -> Vec<u8> {
        [bgr[0], bgr[1], bgr[2], 77].repeat(8 * 5)
    }

    fn pixels(data: &[u8]) -> ScreenPixels<'_> {
        ScreenPixels {
            data,
            stride: 32,
            size: PixelSize::new(7, 5),
        }
    }

    /// Y, Cb and Cr of the upper left pixel when the screen has one colour.
    fn samples(bgr: [u8; 3]) -> [u8; 3] {
        let mut canvas = Canvas::new(PixelSize::new(6, 4), I420);
        canvas.draw(&pixels(&screen(bgr)), PixelRect::whole(PixelSize::new(7, 5)));
        [canvas.bytes[0], canvas.bytes[32], canvas.bytes[40]]
    }

    #[test]
    fn primary_colours_become_their_samples_of_bt_601() {
        // ITU-R BT.601-7 in 8 bits, table of colour bars.
        assert_eq!(samples([255, 255, 255]), [235, 128, 128]);
        assert_eq!(samples([0, 0, 0]), [16, 128, 128]);
        assert_eq!(samples([0, 0, 255]), [82, 90, 240]);
        // 144.55 in the table's precision; weights of 8 bits make 144 of it.
        assert_eq!(samples([0, 255, 0]), [144, 54, 34]);
        assert_eq!(samples([255, 0, 0]), [41, 240, 110]);
    }

    #[test]
    fn only_the_area_is_drawn_rounded_out_to_whole_chroma_sites() {
        let mut canvas = Canvas::new(PixelSize::new(6, 4), I420);
        let area = PixelRect {
            x: 3,
            y: 1,
            width: 1,
            height: 1,
        };
        canvas.draw(&pixels(&screen([255, 255, 255])), area);
        let drawn = |plane: &[u8]| plane.iter().map(|sample| u32::from(*sample != 0)).sum::<u32>();
        assert_eq!(drawn(&canvas.bytes[..32]), 4);
        assert_eq!(canvas.bytes[2..4], [235, 235]);
        assert_eq!(canvas.bytes[10..12], [235, 235]);
        assert_eq!(canvas.bytes[32..36], [0, 128, 0, 0]);
    }

    #[test]
    fn interleaved_chroma_has_the_same_samples() {
        let data: Vec<u8> = (0..160u8).map(|n| n.wrapping_mul(73)).collect();
        let nv12 = Layout {
            v: 33,
            c_stride: 8,
            c_step: 2,
            ..I420
        };
        let whole = PixelRect::whole(PixelSize::new(7, 5));
        let [mut planar, mut packed] = [I420, nv12].map(|layout| Canvas::new(PixelSize::new(6, 4), layout));
        planar.draw(&pixels(&data), whole);
        packed.draw(&pixels(&data), whole);
        for (row, column) in [(0, 0), (0, 2), (1, 1)] {
            let (u, v) = (32 + row * 4 + column, 40 + row * 4 + column);
            let uv = 32 + row * 8 + column * 2;
            assert_eq!([planar.bytes[u], planar.bytes[v]], packed.bytes[uv..uv + 2]);
        }
        assert_eq!(planar.bytes[..32], packed.bytes[..32]);
    }

    #[test]
    fn an_area_beyond_an_odd_edge_is_left_out() {
        let mut canvas = Canvas::new(PixelSize::new(6, 4), I420);
        let area = PixelRect {
            x: 6,
            y: 4,
            width: 1,
            height: 1,
        };
        canvas.draw(&pixels(&screen([255; 3])), area);
        assert!(canvas.bytes.iter().all(|byte| *byte == 0));
    }
}
