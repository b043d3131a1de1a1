//! The beginning of a slice header (ITU-T H.264 7.3.3): which picture a slice belongs to.

use super::bits::BitReader;
use super::pps::Pps;
use super::sps::{OrderCount, Sps};
use super::{Nal, NalKind, ParseError};

/// What can be read of a slice without knowing its parameter sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceStart {
    /// `first_mb_in_slice`.
    pub(super) first_mb: u32,
    /// `slice_type`, 0 to 9.
    pub(super) slice_type: u8,
    /// `pic_parameter_set_id`.
    pub(super) pps_id: u8,
}

impl SliceStart {
    pub(super) fn parse(nal: &Nal<'_>) -> Result<Self, ParseError> {
        Self::read(&mut BitReader::new(nal.payload()))
    }

    fn read(r: &mut BitReader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            first_mb: r.ue()?,
            slice_type: r.ue_max(9, "slice_type")? as u8,
            pps_id: r.ue_max(255, "pic_parameter_set_id")? as u8,
        })
    }

    /// True for B slices, which refer to pictures shown later.
    pub(super) const fn is_bidirectional(self) -> bool {
        self.slice_type % 5 == 1
    }
}

/// A slice header up to the elements that tell pictures apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceHeader {
    pub(super) start: SliceStart,
    /// True for a slice of an IDR picture.
    pub(super) idr: bool,
    /// `nal_ref_idc` of its NAL unit.
    pub(super) ref_idc: u8,
    /// `frame_num`.
    pub(super) frame_num: u32,
    /// For a field: whether it is the bottom one.
    pub(super) field: Option<bool>,
    /// `idr_pic_id`; zero for other pictures.
    pub(super) idr_pic_id: u32,
    /// `pic_order_cnt_lsb` of order count type 0.
    pub(super) order_low_bits: u32,
    /// `delta_pic_order_cnt_bottom` of order count type 0.
    pub(super) order_bottom: i32,
    /// `delta_pic_order_cnt` of order count type 1.
    pub(super) order_deltas: [i32; 2],
}

impl SliceHeader {
    /// Reads the header of a slice that uses `sps` and `pps`.
    pub(super) fn parse(nal: &Nal<'_>, sps: &Sps, pps: &Pps) -> Result<Self, ParseError> {
        let mut r = BitReader::new(nal.payload());
        let idr = nal.kind() == NalKind::IdrSlice;
        let start = SliceStart::read(&mut r)?;
        if sps.separate_planes {
            r.bits(2)?;
        }
        let frame_num = r.bits(u32::from(sps.frame_num_bits))?;
        let field = if !sps.frames_only && r.flag()? {
            Some(r.flag()?)
        } else {
            None
        };
        let mut header = Self {
            start,
            idr,
            ref_idc: nal.ref_idc(),
            frame_num,
            field,
            idr_pic_id: if idr { r.ue_max(65535, "idr_pic_id")? } else { 0 },
            order_low_bits: 0,
            order_bottom: 0,
            order_deltas: [0; 2],
        };
        header.read_order(&mut r, sps, pps)?;
        Ok(header)
    }

    fn read_order(&mut self, r: &mut BitReader<'_>, sps: &Sps, pps: &Pps) -> Result<(), ParseError> {
        let both = pps.bottom_field_order && self.field.is_none();
        match sps.order_count {
            OrderCount::LowBits { bits } => {
                self.order_low_bits = r.bits(u32::from(bits))?;
                if both {
                    self.order_bottom = r.se()?;
                }
            }
            OrderCount::Cycle {
                always_zero: false, ..
            } => {
                self.order_deltas[0] = r.se()?;
                if both {
                    self.order_deltas[1] = r.se()?;
                }
            }
            OrderCount::Cycle { .. } | OrderCount::Decoding => {}
        }
        Ok(())
    }

    /// Whether this slice, behind `previous` in the stream, begins another primary coded picture (7.4.1.2.4).
    ///
    /// The PPS is not compared: slices of one picture may use several, and pictures that differ in it differ
    /// in one of the others too.
    pub(super) fn begins_picture_after(&self, previous: &Self) -> bool {
        self.frame_num != previous.frame_num
            || self.field != previous.field
            || self.ref_idc != previous.ref_idc && (self.ref_idc == 0 || previous.ref_idc == 0)
            || self.order_low_bits != previous.order_low_bits
            || self.order_bottom != previous.order_bottom
            || self.order_deltas != previous.order_deltas
            || self.idr != previous.idr
            || self.idr_pic_id != previous.idr_pic_id
    }
}
