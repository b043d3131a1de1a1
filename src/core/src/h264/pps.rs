//! Picture parameter sets, as far as slice headers and the choice of the SPS need them (ITU-T H.264 7.3.2.2).

use super::ParseError;
use super::bits::BitReader;

/// The beginning of a picture parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pps {
    /// `pic_parameter_set_id`.
    pub id: u8,
    /// `seq_parameter_set_id`, 0 to 31: the SPS its pictures use.
    pub sps_id: u8,
    /// `entropy_coding_mode_flag`: CABAC instead of CAVLC.
    pub cabac: bool,
    /// `bottom_field_pic_order_in_frame_present_flag`.
    pub bottom_field_order: bool,
}

impl Pps {
    /// Reads a PPS NAL unit: header byte and payload, without start code.
    pub fn parse(nal: &[u8]) -> Result<Self, ParseError> {
        let (&header, payload) = nal.split_first().ok_or(ParseError::Truncated)?;
        if header & 0x9f != 8 {
            return Err(ParseError::WrongKind);
        }
        let mut r = BitReader::new(payload);
        Ok(Self {
            id: r.ue_max(255, "pic_parameter_set_id")? as u8,
            sps_id: r.ue_max(31, "seq_parameter_set_id")? as u8,
            cabac: r.flag()?,
            bottom_field_order: r.flag()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_flags_are_read() {
        // ue(1) = 010, ue(2) = 011, CABAC, no bottom field order.
        let pps = Pps::parse(&[0x68, 0b0100_1110, 0x80]).expect("PPS");
        assert_eq!((pps.id, pps.sps_id), (1, 2));
        assert!(pps.cabac && !pps.bottom_field_order);
    }

    #[test]
    fn other_units_and_cut_ones_are_refused() {
        assert_eq!(Pps::parse(&[0x67, 0xff]), Err(ParseError::WrongKind));
        assert_eq!(Pps::parse(&[0xe8, 0xff]), Err(ParseError::WrongKind));
        assert_eq!(Pps::parse(&[0x68]), Err(ParseError::Truncated));
        assert_eq!(Pps::parse(&[]), Err(ParseError::Truncated));
    }
}
