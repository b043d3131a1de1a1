//! Quantities whose unit must not be guessed.

use serde::{Deserialize, Serialize};

/// Width and height in whole pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PixelSize {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl PixelSize {
    /// A size of `width` columns and `height` rows.
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Number of pixels.
    pub const fn area(self) -> u64 {
        self.width as u64 * self.height as u64
    }

    /// The largest size inside this one with even edges, as 4:2:0 chroma needs.
    pub const fn even(self) -> Self {
        Self {
            width: self.width & !1,
            height: self.height & !1,
        }
    }

    /// The longer edge.
    pub fn longest_edge(self) -> u32 {
        self.width.max(self.height)
    }
}

/// A rectangle in pixels; `x` and `y` are its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PixelRect {
    /// Column of the left edge.
    pub x: u32,
    /// Row of the upper edge.
    pub y: u32,
    /// Columns covered.
    pub width: u32,
    /// Rows covered.
    pub height: u32,
}

impl PixelRect {
    /// The rectangle covering all of `size`.
    pub const fn whole(size: PixelSize) -> Self {
        Self {
            x: 0,
            y: 0,
            width: size.width,
            height: size.height,
        }
    }

    /// Its width and height.
    pub const fn size(self) -> PixelSize {
        PixelSize::new(self.width, self.height)
    }
}

/// Pictures per second as a fraction; `den` is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRate {
    /// Numerator.
    pub num: u32,
    /// Denominator, not zero.
    pub den: u32,
}
