//! Parameter sets and slice headers made from nothing. The slices have no picture data behind their headers.

use crate::h264::bits::BitWriter;
use crate::h264::{
    AspectRatio, ChromaFormat, ChromaLocation, ColourDescription, CpbEntry, Crop, Hrd, OrderCount,
    Restriction, ScalingList, Sps, Timing, VideoSignal, Vui,
};
use crate::testing::Seeded;
use crate::units::PixelSize;

/// A Constrained Baseline SPS for pictures of `size`, in decoding order, without usability information.
///
/// Odd edges cannot be coded in 4:2:0 and are rounded up.
pub fn sps_of_size(size: PixelSize) -> Sps {
    let (width_mbs, height_map_units) = (size.width.div_ceil(16).max(1), size.height.div_ceil(16).max(1));
    let crop = Crop {
        right: (width_mbs * 16 - size.width) / 2,
        bottom: (height_map_units * 16 - size.height) / 2,
        ..Crop::default()
    };
    Sps {
        width_mbs,
        height_map_units,
        crop_units: (crop != Crop::default()).then_some(crop),
        ..Sps::blank(66, 0xc0, 51)
    }
}

/// A CAVLC picture parameter set NAL unit with default values.
pub fn pps_nal(id: u8, sps_id: u8) -> Vec<u8> {
    let mut w = BitWriter::default();
    w.ue(u32::from(id));
    w.ue(u32::from(sps_id));
    w.bits(2, 0);
    // One slice group; one reference picture in each list.
    (0..3).for_each(|_| w.ue(0));
    w.bits(3, 0);
    // Quantiser 26 and no offsets.
    (0..3).for_each(|_| w.se(0));
    w.bits(3, 0);
    w.into_nal(0x68)
}

/// What [`slice_nal`] writes into a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceFields {
    /// An IDR picture.
    pub idr: bool,
    /// `first_mb_in_slice`.
    pub first_mb: u32,
    /// `slice_type`: 5 P, 6 B, 7 I, for all slices of the picture.
    pub slice_type: u8,
    /// `pic_parameter_set_id`.
    pub pps_id: u8,
    /// `nal_ref_idc`.
    pub ref_idc: u8,
    /// `frame_num`, cut to its bits.
    pub frame_num: u32,
    /// `idr_pic_id`.
    pub idr_pic_id: u32,
    /// `pic_order_cnt_lsb`, cut to its bits.
    pub order_low_bits: u32,
}

/// A slice NAL unit for a PPS of [`pps_nal`] that uses `sps`: its header and nothing behind it.
pub fn slice_nal(sps: &Sps, fields: SliceFields) -> Vec<u8> {
    let mut w = BitWriter::default();
    w.ue(fields.first_mb);
    w.ue(u32::from(fields.slice_type));
    w.ue(u32::from(fields.pps_id));
    if sps.separate_planes {
        w.bits(2, 0);
    }
    w.bits(u32::from(sps.frame_num_bits), fields.frame_num);
    if !sps.frames_only {
        w.flag(false);
    }
    if fields.idr {
        w.ue(fields.idr_pic_id);
    }
    match sps.order_count {
        OrderCount::LowBits { bits } => w.bits(u32::from(bits), fields.order_low_bits),
        OrderCount::Cycle {
            always_zero: false, ..
        } => w.se(0),
        OrderCount::Cycle { .. } | OrderCount::Decoding => {}
    }
    w.into_nal(fields.ref_idc << 5 | if fields.idr { 5 } else { 1 })
}

/// Any SPS a writer may write: every profile, branch and optional part occurs.
pub fn random_sps(random: &mut Seeded) -> Sps {
    let profile_idc = [66, 77, 88, 100, 110, 122, 244, 44, 118][random.index(9)];
    let mut sps = Sps {
        ref_idc: 1 + random.below(3) as u8,
        id: random.below(32) as u8,
        frame_num_bits: 4 + random.below(13) as u8,
        order_count: random_order_count(random),
        max_ref_frames: random.below(17) as u8,
        frame_num_gaps: random.flip(),
        width_mbs: 1 + random.below(600),
        height_map_units: 1 + random.below(600),
        frames_only: random.flip(),
        direct_8x8: random.flip(),
        ..Sps::blank(profile_idc, random.bits() as u8, random.bits() as u8)
    };
    if profile_idc >= 100 || profile_idc == 44 {
        fill_high_syntax(&mut sps, random);
    }
    sps.adaptive_fields = !sps.frames_only && random.flip();
    // A macroblock holds at least four units of any size, so this never cuts the whole picture.
    sps.crop_units = random.maybe(|random| Crop {
        left: random.below(2),
        right: random.below(2),
        top: random.below(2),
        bottom: random.below(2),
    });
    sps.vui = random.maybe(random_vui);
    sps
}

fn random_order_count(random: &mut Seeded) -> OrderCount {
    match random.below(3) {
        0 => OrderCount::LowBits {
            bits: 4 + random.below(13) as u8,
        },
        1 => OrderCount::Cycle {
            always_zero: random.flip(),
            non_reference: random_signed(random),
            top_to_bottom: random_signed(random),
            offsets: (0..random.below(256)).map(|_| random_signed(random)).collect(),
        },
        _ => OrderCount::Decoding,
    }
}

/// Any value a signed Exp-Golomb code has, small ones often.
fn random_signed(random: &mut Seeded) -> i32 {
    let bits = random.bits() as i32;
    (if random.flip() { bits % 8 } else { bits }).max(-i32::MAX)
}

fn fill_high_syntax(sps: &mut Sps, random: &mut Seeded) {
    sps.chroma_format = [
        ChromaFormat::Monochrome,
        ChromaFormat::Yuv420,
        ChromaFormat::Yuv422,
        ChromaFormat::Yuv444,
    ][random.index(4)];
    let full = sps.chroma_format == ChromaFormat::Yuv444;
    sps.separate_planes = full && random.flip();
    sps.bit_depth_luma = 8 + random.below(7) as u8;
    sps.bit_depth_chroma = 8 + random.below(7) as u8;
    sps.lossless_bypass = random.flip();
    sps.scaling = random.maybe(|random| {
        (0..if full { 12 } else { 8 })
            .map(|index| random_scaling_list(random, if index < 6 { 16 } else { 64 }))
            .collect()
    });
}

fn random_scaling_list(random: &mut Seeded, size: usize) -> ScalingList {
    if random.flip() {
        return None;
    }
    let mut deltas = Vec::new();
    let mut scale = 8_u8;
    while deltas.len() < size {
        let delta = random.bits() as i8;
        deltas.push(delta);
        scale = scale.wrapping_add_signed(delta);
        if scale == 0 {
            break;
        }
    }
    Some(deltas)
}

fn random_vui(random: &mut Seeded) -> Vui {
    let mut vui = Vui {
        aspect_ratio: random.maybe(|random| match random.below(18) {
            17 => AspectRatio::Extended {
                width: random.bits() as u16,
                height: random.bits() as u16,
            },
            table => AspectRatio::Table(table as u8),
        }),
        overscan: random.maybe(Seeded::flip),
        video_signal: random.maybe(random_video_signal),
        chroma_location: random.maybe(|random| ChromaLocation {
            top: random.below(6) as u8,
            bottom: random.below(6) as u8,
        }),
        timing: random.maybe(|random| Timing {
            units_in_tick: random.bits() as u32,
            time_scale: random.bits() as u32,
            fixed: random.flip(),
        }),
        nal_hrd: random.maybe(random_hrd),
        vcl_hrd: random.maybe(random_hrd),
        low_delay: false,
        pic_struct: random.flip(),
        restriction: random.maybe(random_restriction),
    };
    vui.low_delay = (vui.nal_hrd.is_some() || vui.vcl_hrd.is_some()) && random.flip();
    vui
}

fn random_video_signal(random: &mut Seeded) -> VideoSignal {
    VideoSignal {
        format: random.below(8) as u8,
        full_range: random.flip(),
        colour: random.maybe(|random| ColourDescription {
            primaries: random.below(12) as u8,
            transfer: random.below(16) as u8,
            matrix: random.below(16) as u8,
        }),
    }
}

fn random_hrd(random: &mut Seeded) -> Hrd {
    Hrd {
        bit_rate_scale: random.below(16) as u8,
        size_scale: random.below(16) as u8,
        entries: (0..1 + random.below(32))
            .map(|_| CpbEntry {
                bit_rate: random.below(u32::MAX),
                size: random.below(u32::MAX),
                constant: random.flip(),
            })
            .collect(),
        lengths: std::array::from_fn(|_| random.below(32) as u8),
    }
}

fn random_restriction(random: &mut Seeded) -> Restriction {
    let max_dec_frame_buffering = random.below(17) as u8;
    Restriction {
        vectors_over_edges: random.flip(),
        max_bytes_per_pic_denom: random.below(17) as u8,
        max_bits_per_mb_denom: random.below(17) as u8,
        log2_max_vector_horizontal: random.below(17) as u8,
        log2_max_vector_vertical: random.below(17) as u8,
        max_reorder_frames: random.below(u32::from(max_dec_frame_buffering) + 1) as u8,
        max_dec_frame_buffering,
    }
}
