//! Sequence parameter sets (ITU-T H.264 7.3.2.1.1): every syntax element is kept, so that one can be written
//! back with a single thing changed.

mod facts;
#[cfg(test)]
mod tests;
mod vui;
mod write;

pub use facts::{NotDisplayable, Reorder};
pub use vui::{
    AspectRatio, ChromaLocation, ColourDescription, CpbEntry, Hrd, Restriction, Timing, VideoSignal, Vui,
};

use super::ParseError;
use super::bits::BitReader;

/// `profile_idc` values whose SPS carries chroma format, bit depth and scaling lists (7.3.2.1.1).
const HIGH_PROFILES: [u8; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// Most macroblocks along an edge that are read; a stream with more is refused by its size, not by this.
/// Small enough that sizes in pixels, doubled for field coding, never overflow.
const MAX_MACROBLOCKS_PER_EDGE: u32 = 1 << 16;

/// How chroma is sampled (`chroma_format_idc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChromaFormat {
    /// Luma only.
    Monochrome,
    /// Half width, half height.
    Yuv420,
    /// Half width.
    Yuv422,
    /// Full size.
    Yuv444,
}

/// Samples cut from each edge of the coded picture: in luma pixels from [`Sps::crop`], in crop units in
/// [`Sps::crop_units`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Crop {
    /// Columns cut on the left.
    pub left: u32,
    /// Columns cut on the right.
    pub right: u32,
    /// Rows cut at the top.
    pub top: u32,
    /// Rows cut at the bottom.
    pub bottom: u32,
}

/// How the output position of a picture is coded (`pic_order_cnt_type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderCount {
    /// Type 0: the low bits are in each slice header.
    LowBits {
        /// How many low bits, 4 to 16.
        bits: u8,
    },
    /// Type 1: a cycle of expected differences, with corrections in slice headers.
    Cycle {
        /// `delta_pic_order_always_zero_flag`.
        always_zero: bool,
        /// `offset_for_non_ref_pic`.
        non_reference: i32,
        /// `offset_for_top_to_bottom_field`.
        top_to_bottom: i32,
        /// `offset_for_ref_frame`, at most 255.
        offsets: Vec<i32>,
    },
    /// Type 2: output order is decoding order.
    Decoding,
}

/// The deltas of one scaling list as coded, up to where the rest repeats; `None` where the list is inherited.
pub type ScalingList = Option<Vec<i8>>;

/// A sequence parameter set, field by field; the methods say what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sps {
    /// `nal_ref_idc` of its NAL unit.
    pub ref_idc: u8,
    /// `profile_idc`: 66 Baseline, 77 Main, 100 High, ...
    pub profile_idc: u8,
    /// The byte of `constraint_set` flags; set 0 is the highest bit.
    pub constraints: u8,
    /// `level_idc`: ten times the level.
    pub level_idc: u8,
    /// `seq_parameter_set_id`, 0 to 31.
    pub id: u8,
    /// How chroma is sampled.
    pub chroma_format: ChromaFormat,
    /// `separate_colour_plane_flag`: the planes of a 4:4:4 picture are coded as three monochrome ones.
    pub separate_planes: bool,
    /// Bits of a luma sample, 8 to 14.
    pub bit_depth_luma: u8,
    /// Bits of a chroma sample, 8 to 14.
    pub bit_depth_chroma: u8,
    /// `qpprime_y_zero_transform_bypass_flag`.
    pub lossless_bypass: bool,
    /// The scaling lists when there are any: 8, or 12 for 4:4:4.
    pub scaling: Option<Vec<ScalingList>>,
    /// Bits of `frame_num` in slice headers, 4 to 16.
    pub frame_num_bits: u8,
    /// How output order is coded.
    pub order_count: OrderCount,
    /// `max_num_ref_frames`, at most 16.
    pub max_ref_frames: u8,
    /// `gaps_in_frame_num_value_allowed_flag`.
    pub frame_num_gaps: bool,
    /// Width in macroblocks.
    pub width_mbs: u32,
    /// Height in macroblocks; in macroblock pairs when fields may be coded.
    pub height_map_units: u32,
    /// `frame_mbs_only_flag`: no picture is a field.
    pub frames_only: bool,
    /// `mb_adaptive_frame_field_flag`.
    pub adaptive_fields: bool,
    /// `direct_8x8_inference_flag`.
    pub direct_8x8: bool,
    /// What is cut from the picture, in crop units; `None` when nothing is signalled.
    pub crop_units: Option<Crop>,
    /// Usability information; `None` when there is none or it cannot be read.
    pub vui: Option<Vui>,
    /// True when usability information is there but cannot be read; everything else still holds.
    pub vui_damaged: bool,
}

impl Sps {
    /// Reads an SPS NAL unit: header byte and payload, without start code.
    pub fn parse(nal: &[u8]) -> Result<Self, ParseError> {
        let (&header, payload) = nal.split_first().ok_or(ParseError::Truncated)?;
        if header & 0x9f != 7 {
            return Err(ParseError::WrongKind);
        }
        let mut r = BitReader::new(payload);
        let (profile_idc, constraints, level_idc) = (r.byte()?, r.byte()?, r.byte()?);
        let mut sps = Self {
            ref_idc: header >> 5 & 3,
            id: r.ue_max(31, "seq_parameter_set_id")? as u8,
            ..Self::blank(profile_idc, constraints, level_idc)
        };
        if sps.has_high_syntax() {
            sps.read_high_syntax(&mut r)?;
        }
        sps.read_references(&mut r)?;
        sps.read_geometry(&mut r)?;
        if r.flag()? {
            // Damaged usability information is common enough; what stands before it is still good.
            sps.vui = Vui::read(&mut r).ok();
            sps.vui_damaged = sps.vui.is_none();
        }
        Ok(sps)
    }

    /// An SPS of one 16x16 macroblock without anything optional.
    pub(crate) const fn blank(profile_idc: u8, constraints: u8, level_idc: u8) -> Self {
        Self {
            ref_idc: 3,
            profile_idc,
            constraints,
            level_idc,
            id: 0,
            chroma_format: ChromaFormat::Yuv420,
            separate_planes: false,
            bit_depth_luma: 8,
            bit_depth_chroma: 8,
            lossless_bypass: false,
            scaling: None,
            frame_num_bits: 4,
            order_count: OrderCount::Decoding,
            max_ref_frames: 1,
            frame_num_gaps: false,
            width_mbs: 1,
            height_map_units: 1,
            frames_only: true,
            adaptive_fields: false,
            direct_8x8: true,
            crop_units: None,
            vui: None,
            vui_damaged: false,
        }
    }

    fn has_high_syntax(&self) -> bool {
        HIGH_PROFILES.contains(&self.profile_idc)
    }

    fn read_high_syntax(&mut self, r: &mut BitReader<'_>) -> Result<(), ParseError> {
        self.chroma_format = match r.ue_max(3, "chroma_format_idc")? {
            0 => ChromaFormat::Monochrome,
            1 => ChromaFormat::Yuv420,
            2 => ChromaFormat::Yuv422,
            _ => ChromaFormat::Yuv444,
        };
        if self.chroma_format == ChromaFormat::Yuv444 {
            self.separate_planes = r.flag()?;
        }
        self.bit_depth_luma = 8 + r.ue_max(6, "bit_depth_luma_minus8")? as u8;
        self.bit_depth_chroma = 8 + r.ue_max(6, "bit_depth_chroma_minus8")? as u8;
        self.lossless_bypass = r.flag()?;
        if r.flag()? {
            let lists = (0..self.scaling_list_count()).map(|index| read_scaling_list(r, index));
            self.scaling = Some(lists.collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    fn scaling_list_count(&self) -> usize {
        if self.chroma_format == ChromaFormat::Yuv444 {
            12
        } else {
            8
        }
    }

    fn read_references(&mut self, r: &mut BitReader<'_>) -> Result<(), ParseError> {
        self.frame_num_bits = 4 + r.ue_max(12, "log2_max_frame_num_minus4")? as u8;
        self.order_count = match r.ue_max(2, "pic_order_cnt_type")? {
            0 => OrderCount::LowBits {
                bits: 4 + r.ue_max(12, "log2_max_pic_order_cnt_lsb_minus4")? as u8,
            },
            1 => read_cycle(r)?,
            _ => OrderCount::Decoding,
        };
        self.max_ref_frames = r.ue_max(16, "max_num_ref_frames")? as u8;
        self.frame_num_gaps = r.flag()?;
        Ok(())
    }

    fn read_geometry(&mut self, r: &mut BitReader<'_>) -> Result<(), ParseError> {
        self.width_mbs = 1 + r.ue_max(MAX_MACROBLOCKS_PER_EDGE - 1, "pic_width_in_mbs_minus1")?;
        self.height_map_units =
            1 + r.ue_max(MAX_MACROBLOCKS_PER_EDGE - 1, "pic_height_in_map_units_minus1")?;
        self.frames_only = r.flag()?;
        if !self.frames_only {
            self.adaptive_fields = r.flag()?;
        }
        self.direct_8x8 = r.flag()?;
        if r.flag()? {
            self.crop_units = Some(Crop {
                left: r.ue()?,
                right: r.ue()?,
                top: r.ue()?,
                bottom: r.ue()?,
            });
        }
        self.check_crop()
    }
}

fn read_cycle(r: &mut BitReader<'_>) -> Result<OrderCount, ParseError> {
    let always_zero = r.flag()?;
    let (non_reference, top_to_bottom) = (r.se()?, r.se()?);
    let count = r.ue_max(255, "num_ref_frames_in_pic_order_cnt_cycle")?;
    Ok(OrderCount::Cycle {
        always_zero,
        non_reference,
        top_to_bottom,
        offsets: (0..count).map(|_| r.se()).collect::<Result<_, _>>()?,
    })
}

/// Reads the list at `index`: the first six have 16 entries, the others 64 (7.3.2.1.1.1).
fn read_scaling_list(r: &mut BitReader<'_>, index: usize) -> Result<ScalingList, ParseError> {
    if !r.flag()? {
        return Ok(None);
    }
    let size = if index < 6 { 16 } else { 64 };
    let mut deltas = Vec::with_capacity(size);
    let mut scale = 8_u8;
    while deltas.len() < size {
        let delta = i8::try_from(r.se()?).map_err(|_| ParseError::Invalid("delta_scale"))?;
        deltas.push(delta);
        scale = scale.wrapping_add_signed(delta);
        if scale == 0 {
            break;
        }
    }
    Ok(Some(deltas))
}
