//! What the receive graph must know of a stream, taken from its SPS.

use crossdesk_core::h264::{ChromaFormat, Crop, NotDisplayable, Reorder, Sps};
use crossdesk_core::media::Color;
use crossdesk_core::units::PixelSize;

/// Most frames a decoder may hold back when the stream promises nothing (`MaxDpbFrames`, H.264 A.3.1).
const MAX_DPB_FRAMES: u32 = 16;

/// Size, crop, colour and delay of a stream's pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamShape {
    /// Whole macroblocks, before cropping.
    pub coded: PixelSize,
    /// What is cut from the coded picture.
    pub crop: Crop,
    /// What people see.
    pub visible: PixelSize,
    /// How samples map to colours, from the SPS alone: GStreamer's caps guess BT.709 for HD.
    pub color: Color,
    /// How chroma is sampled.
    pub chroma: ChromaFormat,
    /// True when no picture is a field.
    pub frames_only: bool,
    /// What is known about output order.
    pub reorder: Reorder,
    /// Why it cannot be shown, if so.
    pub refused: Option<NotDisplayable>,
}

impl StreamShape {
    /// True when no picture leaves the decoder later than it entered.
    pub fn low_delay(&self) -> bool {
        matches!(self.reorder, Reorder::None | Reorder::Frames(0))
    }

    /// True when the stream says how many pictures must be held, so that a decoder need not be careful.
    pub fn reorder_known(&self) -> bool {
        self.reorder != Reorder::Unknown
    }

    /// Most pictures a correct decoder holds back.
    pub fn depth(&self) -> u32 {
        match self.reorder {
            Reorder::None => 0,
            Reorder::Frames(frames) => u32::from(frames),
            Reorder::Unknown => MAX_DPB_FRAMES,
        }
    }

    /// True when the visible picture does not begin with the first decoded sample.
    pub fn starts_cropped(&self) -> bool {
        self.crop.left > 0 || self.crop.top > 0
    }

    /// True when pictures look different to their users: size, crop or colour.
    pub fn looks_different(&self, other: &Self) -> bool {
        self.visible != other.visible || self.crop != other.crop || self.color != other.color
    }
}

impl From<&Sps> for StreamShape {
    fn from(sps: &Sps) -> Self {
        Self {
            coded: sps.coded_size(),
            crop: sps.crop(),
            visible: sps.visible_size(),
            color: sps.color(),
            chroma: sps.chroma_format,
            frames_only: sps.frames_only,
            reorder: sps.reorder(),
            refused: sps.displayable().err(),
        }
    }
}

/// Where a decoder's output holds the visible picture: the column and row of its first sample.
///
/// `avdec_h264` of GStreamer 1.22 rounds the left crop down to what its memory alignment allows and says so
/// only through a picture that is too wide; the rest of the crop is still to be cut. A decoder that ignores
/// cropping delivers the whole coded picture. Any other size is wrong.
pub fn visible_origin(shape: &StreamShape, output: PixelSize) -> Option<(u32, u32)> {
    let x = axis_origin(
        output.width,
        shape.visible.width,
        shape.coded.width,
        shape.crop.left,
    )?;
    let y = axis_origin(
        output.height,
        shape.visible.height,
        shape.coded.height,
        shape.crop.top,
    )?;
    Some((x, y))
}

fn axis_origin(output: u32, visible: u32, coded: u32, cut_before: u32) -> Option<u32> {
    let extra = output.checked_sub(visible)?;
    if output == coded {
        return Some(cut_before);
    }
    (extra <= cut_before).then_some(extra)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn shape(width: u32, height: u32) -> StreamShape {
        StreamShape {
            coded: PixelSize::new(width.next_multiple_of(16), height.next_multiple_of(16)),
            crop: Crop {
                right: width.next_multiple_of(16) - width,
                bottom: height.next_multiple_of(16) - height,
                ..Crop::default()
            },
            visible: PixelSize::new(width, height),
            color: Color::BT601_LIMITED,
            chroma: ChromaFormat::Yuv420,
            frames_only: true,
            reorder: Reorder::None,
            refused: None,
        }
    }

    #[test]
    fn origin_follows_how_much_of_the_crop_the_decoder_applied() {
        let cropped = StreamShape {
            coded: PixelSize::new(320, 192),
            crop: Crop {
                left: 6,
                right: 2,
                top: 4,
                bottom: 8,
            },
            visible: PixelSize::new(312, 180),
            ..shape(320, 192)
        };
        let at = |width, height| visible_origin(&cropped, PixelSize::new(width, height));
        assert_eq!(at(312, 180), Some((0, 0)), "all of it");
        assert_eq!(
            at(318, 180),
            Some((6, 0)),
            "left crop left to us, as avdec_h264 1.22 does"
        );
        assert_eq!(at(314, 180), Some((2, 0)), "left crop rounded down");
        assert_eq!(at(320, 192), Some((6, 4)), "none of it");
        assert_eq!(at(319, 180), None);
        assert_eq!(at(311, 180), None);
        assert_eq!(at(336, 180), None);
    }
}
