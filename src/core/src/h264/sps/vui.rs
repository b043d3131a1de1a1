//! Video usability information and hypothetical reference decoder parameters (ITU-T H.264 annex E).

use crate::h264::ParseError;
use crate::h264::bits::{BitReader, BitWriter};

/// `aspect_ratio_idc` that is followed by a width and a height.
const EXTENDED_SAR: u8 = 255;

/// Largest depth of the decoded picture buffer, in frames (A.3.1 h).
const MAX_DPB_FRAMES: u32 = 16;

/// Shape of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AspectRatio {
    /// `aspect_ratio_idc`, any value but 255 (table E-1).
    Table(u8),
    /// Width and height given outright.
    Extended {
        /// `sar_width`.
        width: u16,
        /// `sar_height`.
        height: u16,
    },
}

/// Numbers in tables E-3, E-4 and E-5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColourDescription {
    /// `colour_primaries`.
    pub primaries: u8,
    /// `transfer_characteristics`.
    pub transfer: u8,
    /// `matrix_coefficients`.
    pub matrix: u8,
}

/// Where the picture comes from and how its samples map to colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoSignal {
    /// `video_format`, 0 to 7; 5 says nothing.
    pub format: u8,
    /// `video_full_range_flag`.
    pub full_range: bool,
    /// Colour, when described.
    pub colour: Option<ColourDescription>,
}

/// Where chroma samples lie, per field (0 to 5, figure E-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChromaLocation {
    /// `chroma_sample_loc_type_top_field`.
    pub top: u8,
    /// `chroma_sample_loc_type_bottom_field`.
    pub bottom: u8,
}

/// The clock of the pictures; one frame lasts two ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// `num_units_in_tick`.
    pub units_in_tick: u32,
    /// `time_scale`: units in a second.
    pub time_scale: u32,
    /// `fixed_frame_rate_flag`.
    pub fixed: bool,
}

/// One coded picture buffer of the hypothetical reference decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpbEntry {
    /// `bit_rate_value_minus1`.
    pub bit_rate: u32,
    /// `cpb_size_value_minus1`.
    pub size: u32,
    /// `cbr_flag`.
    pub constant: bool,
}

/// Hypothetical reference decoder parameters (E.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hrd {
    /// `bit_rate_scale`, 0 to 15.
    pub bit_rate_scale: u8,
    /// `cpb_size_scale`, 0 to 15.
    pub size_scale: u8,
    /// 1 to 32 buffers.
    pub entries: Vec<CpbEntry>,
    /// The four lengths in the order they are coded, 0 to 31 each: initial removal delay minus 1, removal
    /// delay minus 1, output delay minus 1, time offset.
    pub lengths: [u8; 4],
}

/// `bitstream_restriction`: what a decoder may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restriction {
    /// `motion_vectors_over_pic_boundaries_flag`.
    pub vectors_over_edges: bool,
    /// `max_bytes_per_pic_denom`, 0 to 16.
    pub max_bytes_per_pic_denom: u8,
    /// `max_bits_per_mb_denom`, 0 to 16.
    pub max_bits_per_mb_denom: u8,
    /// `log2_max_mv_length_horizontal`, 0 to 16.
    pub log2_max_vector_horizontal: u8,
    /// `log2_max_mv_length_vertical`, 0 to 16.
    pub log2_max_vector_vertical: u8,
    /// `max_num_reorder_frames`, at most `max_dec_frame_buffering`.
    pub max_reorder_frames: u8,
    /// `max_dec_frame_buffering`, at most 16.
    pub max_dec_frame_buffering: u8,
}

/// Video usability information; every part may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vui {
    /// Shape of a sample.
    pub aspect_ratio: Option<AspectRatio>,
    /// `overscan_appropriate_flag`.
    pub overscan: Option<bool>,
    /// Range and colour.
    pub video_signal: Option<VideoSignal>,
    /// Where chroma samples lie.
    pub chroma_location: Option<ChromaLocation>,
    /// The clock.
    pub timing: Option<Timing>,
    /// Parameters for the NAL unit stream.
    pub nal_hrd: Option<Hrd>,
    /// Parameters for the slices alone.
    pub vcl_hrd: Option<Hrd>,
    /// `low_delay_hrd_flag`; only coded beside one of the two above.
    pub low_delay: bool,
    /// `pic_struct_present_flag`.
    pub pic_struct: bool,
    /// What a decoder may rely on.
    pub restriction: Option<Restriction>,
}

impl Vui {
    pub(super) fn read(r: &mut BitReader<'_>) -> Result<Self, ParseError> {
        let mut vui = Self {
            aspect_ratio: optional(r, read_aspect_ratio)?,
            overscan: optional(r, |r| r.flag())?,
            video_signal: optional(r, read_video_signal)?,
            chroma_location: optional(r, |r| {
                Ok(ChromaLocation {
                    top: r.ue_max(5, "chroma_sample_loc_type_top_field")? as u8,
                    bottom: r.ue_max(5, "chroma_sample_loc_type_bottom_field")? as u8,
                })
            })?,
            timing: optional(r, |r| {
                Ok(Timing {
                    units_in_tick: r.bits(32)?,
                    time_scale: r.bits(32)?,
                    fixed: r.flag()?,
                })
            })?,
            nal_hrd: optional(r, read_hrd)?,
            vcl_hrd: optional(r, read_hrd)?,
            ..Self::default()
        };
        if vui.nal_hrd.is_some() || vui.vcl_hrd.is_some() {
            vui.low_delay = r.flag()?;
        }
        vui.pic_struct = r.flag()?;
        vui.restriction = optional(r, read_restriction)?;
        Ok(vui)
    }

    pub(super) fn write(&self, w: &mut BitWriter) {
        put_optional(w, self.aspect_ratio.as_ref(), write_aspect_ratio);
        put_optional(w, self.overscan.as_ref(), |w, &overscan| w.flag(overscan));
        put_optional(w, self.video_signal.as_ref(), write_video_signal);
        put_optional(w, self.chroma_location.as_ref(), |w, location| {
            w.ue(u32::from(location.top));
            w.ue(u32::from(location.bottom));
        });
        put_optional(w, self.timing.as_ref(), |w, timing| {
            w.bits(32, timing.units_in_tick);
            w.bits(32, timing.time_scale);
            w.flag(timing.fixed);
        });
        put_optional(w, self.nal_hrd.as_ref(), write_hrd);
        put_optional(w, self.vcl_hrd.as_ref(), write_hrd);
        if self.nal_hrd.is_some() || self.vcl_hrd.is_some() {
            w.flag(self.low_delay);
        }
        w.flag(self.pic_struct);
        put_optional(w, self.restriction.as_ref(), write_restriction);
    }
}

fn optional<T>(
    r: &mut BitReader<'_>,
    read: impl FnOnce(&mut BitReader<'_>) -> Result<T, ParseError>,
) -> Result<Option<T>, ParseError> {
    if r.flag()? { read(r).map(Some) } else { Ok(None) }
}

fn put_optional<T>(w: &mut BitWriter, part: Option<&T>, write: impl FnOnce(&mut BitWriter, &T)) {
    w.flag(part.is_some());
    if let Some(part) = part {
        write(w, part);
    }
}

fn read_aspect_ratio(r: &mut BitReader<'_>) -> Result<AspectRatio, ParseError> {
    Ok(match r.byte()? {
        EXTENDED_SAR => AspectRatio::Extended {
            width: r.bits(16)? as u16,
            height: r.bits(16)? as u16,
        },
        table => AspectRatio::Table(table),
    })
}

fn write_aspect_ratio(w: &mut BitWriter, ratio: &AspectRatio) {
    match *ratio {
        AspectRatio::Table(table) => w.byte(table),
        AspectRatio::Extended { width, height } => {
            w.byte(EXTENDED_SAR);
            w.bits(16, u32::from(width));
            w.bits(16, u32::from(height));
        }
    }
}

fn read_video_signal(r: &mut BitReader<'_>) -> Result<VideoSignal, ParseError> {
    Ok(VideoSignal {
        format: r.bits(3)? as u8,
        full_range: r.flag()?,
        colour: optional(r, |r| {
            Ok(ColourDescription {
                primaries: r.byte()?,
                transfer: r.byte()?,
                matrix: r.byte()?,
            })
        })?,
    })
}

fn write_video_signal(w: &mut BitWriter, signal: &VideoSignal) {
    w.bits(3, u32::from(signal.format));
    w.flag(signal.full_range);
    put_optional(w, signal.colour.as_ref(), |w, colour| {
        w.byte(colour.primaries);
        w.byte(colour.transfer);
        w.byte(colour.matrix);
    });
}

fn read_hrd(r: &mut BitReader<'_>) -> Result<Hrd, ParseError> {
    let count = 1 + r.ue_max(31, "cpb_cnt_minus1")?;
    let (bit_rate_scale, size_scale) = (r.bits(4)? as u8, r.bits(4)? as u8);
    let entries = (0..count).map(|_| {
        Ok(CpbEntry {
            bit_rate: r.ue()?,
            size: r.ue()?,
            constant: r.flag()?,
        })
    });
    let entries = entries.collect::<Result<_, ParseError>>()?;
    let mut lengths = [0; 4];
    for length in &mut lengths {
        *length = r.bits(5)? as u8;
    }
    Ok(Hrd {
        bit_rate_scale,
        size_scale,
        entries,
        lengths,
    })
}

fn write_hrd(w: &mut BitWriter, hrd: &Hrd) {
    w.ue(hrd.entries.len() as u32 - 1);
    w.bits(4, u32::from(hrd.bit_rate_scale));
    w.bits(4, u32::from(hrd.size_scale));
    for entry in &hrd.entries {
        w.ue(entry.bit_rate);
        w.ue(entry.size);
        w.flag(entry.constant);
    }
    for length in hrd.lengths {
        w.bits(5, u32::from(length));
    }
}

fn read_restriction(r: &mut BitReader<'_>) -> Result<Restriction, ParseError> {
    let restriction = Restriction {
        vectors_over_edges: r.flag()?,
        max_bytes_per_pic_denom: r.ue_max(16, "max_bytes_per_pic_denom")? as u8,
        max_bits_per_mb_denom: r.ue_max(16, "max_bits_per_mb_denom")? as u8,
        log2_max_vector_horizontal: r.ue_max(16, "log2_max_mv_length_horizontal")? as u8,
        log2_max_vector_vertical: r.ue_max(16, "log2_max_mv_length_vertical")? as u8,
        max_reorder_frames: r.ue_max(MAX_DPB_FRAMES, "max_num_reorder_frames")? as u8,
        max_dec_frame_buffering: r.ue_max(MAX_DPB_FRAMES, "max_dec_frame_buffering")? as u8,
    };
    if restriction.max_reorder_frames > restriction.max_dec_frame_buffering {
        return Err(ParseError::Invalid("max_num_reorder_frames"));
    }
    Ok(restriction)
}

fn write_restriction(w: &mut BitWriter, restriction: &Restriction) {
    w.flag(restriction.vectors_over_edges);
    for value in [
        restriction.max_bytes_per_pic_denom,
        restriction.max_bits_per_mb_denom,
        restriction.log2_max_vector_horizontal,
        restriction.log2_max_vector_vertical,
        restriction.max_reorder_frames,
        restriction.max_dec_frame_buffering,
    ] {
        w.ue(u32::from(value));
    }
}
