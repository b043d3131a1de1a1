//! Writing an SPS back: the mirror image of reading, bit for bit.

use super::{ChromaFormat, OrderCount, ScalingList, Sps};
use crate::h264::bits::BitWriter;

impl Sps {
    /// The NAL unit: header byte and payload with emulation prevention, without start code.
    ///
    /// Reading it gives this SPS again. Values outside the ranges the fields name make a damaged one. Usability
    /// information that could not be read is left out.
    pub fn to_nal(&self) -> Vec<u8> {
        let mut w = BitWriter::default();
        w.byte(self.profile_idc);
        w.byte(self.constraints);
        w.byte(self.level_idc);
        w.ue(u32::from(self.id));
        if self.has_high_syntax() {
            self.write_high_syntax(&mut w);
        }
        self.write_references(&mut w);
        self.write_geometry(&mut w);
        w.flag(self.vui.is_some());
        if let Some(vui) = &self.vui {
            vui.write(&mut w);
        }
        w.into_nal((self.ref_idc & 3) << 5 | 7)
    }

    fn write_high_syntax(&self, w: &mut BitWriter) {
        w.ue(match self.chroma_format {
            ChromaFormat::Monochrome => 0,
            ChromaFormat::Yuv420 => 1,
            ChromaFormat::Yuv422 => 2,
            ChromaFormat::Yuv444 => 3,
        });
        if self.chroma_format == ChromaFormat::Yuv444 {
            w.flag(self.separate_planes);
        }
        w.ue(u32::from(self.bit_depth_luma.saturating_sub(8)));
        w.ue(u32::from(self.bit_depth_chroma.saturating_sub(8)));
        w.flag(self.lossless_bypass);
        w.flag(self.scaling.is_some());
        for list in self.scaling.iter().flatten() {
            write_scaling_list(w, list);
        }
    }

    fn write_references(&self, w: &mut BitWriter) {
        w.ue(u32::from(self.frame_num_bits.saturating_sub(4)));
        match &self.order_count {
            OrderCount::LowBits { bits } => {
                w.ue(0);
                w.ue(u32::from(bits.saturating_sub(4)));
            }
            OrderCount::Cycle {
                always_zero,
                non_reference,
                top_to_bottom,
                offsets,
            } => {
                w.ue(1);
                w.flag(*always_zero);
                w.se(*non_reference);
                w.se(*top_to_bottom);
                w.ue(offsets.len() as u32);
                offsets.iter().for_each(|&offset| w.se(offset));
            }
            OrderCount::Decoding => w.ue(2),
        }
        w.ue(u32::from(self.max_ref_frames));
        w.flag(self.frame_num_gaps);
    }

    fn write_geometry(&self, w: &mut BitWriter) {
        w.ue(self.width_mbs.saturating_sub(1));
        w.ue(self.height_map_units.saturating_sub(1));
        w.flag(self.frames_only);
        if !self.frames_only {
            w.flag(self.adaptive_fields);
        }
        w.flag(self.direct_8x8);
        w.flag(self.crop_units.is_some());
        if let Some(crop) = self.crop_units {
            for edge in [crop.left, crop.right, crop.top, crop.bottom] {
                w.ue(edge);
            }
        }
    }
}

fn write_scaling_list(w: &mut BitWriter, list: &ScalingList) {
    w.flag(list.is_some());
    for &delta in list.iter().flatten() {
        w.se(i32::from(delta));
    }
}
