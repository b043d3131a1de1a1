//! Bits and Exp-Golomb codes inside a NAL unit (ITU-T H.264 7.2, 7.4.1 and 9.1).

use super::ParseError;

/// Longest run of leading zeros in an Exp-Golomb code: 31 gives the largest value H.264 allows, 2^32 - 2.
const MAX_LEADING_ZEROS: u32 = 31;

/// Reads bits from the payload of a NAL unit and skips emulation prevention bytes on the way, so that a slice
/// header costs its own few bytes and no copy of the slice.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    rest: &'a [u8],
    zeros: u8,
    current: u8,
    left: u8,
}

impl<'a> BitReader<'a> {
    /// Starts at the first bit of `payload`, the bytes behind the NAL unit header.
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self {
            rest: payload,
            zeros: 0,
            current: 0,
            left: 0,
        }
    }

    fn next_byte(&mut self) -> Option<u8> {
        if self.zeros >= 2 && self.rest.first() == Some(&3) {
            self.rest = &self.rest[1..];
            self.zeros = 0;
        }
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.zeros = if byte == 0 {
            self.zeros.saturating_add(1)
        } else {
            0
        };
        Some(byte)
    }

    /// One bit.
    pub(super) fn flag(&mut self) -> Result<bool, ParseError> {
        if self.left == 0 {
            self.current = self.next_byte().ok_or(ParseError::Truncated)?;
            self.left = 8;
        }
        self.left -= 1;
        Ok(self.current >> self.left & 1 == 1)
    }

    /// `count` bits, at most 32, highest first.
    pub(super) fn bits(&mut self, count: u32) -> Result<u32, ParseError> {
        debug_assert!(count <= 32, "no syntax element here is longer than 32 bits");
        let mut value = 0_u32;
        for _ in 0..count {
            value = value << 1 | u32::from(self.flag()?);
        }
        Ok(value)
    }

    /// Eight bits.
    pub(super) fn byte(&mut self) -> Result<u8, ParseError> {
        Ok(self.bits(8)? as u8)
    }

    /// An unsigned Exp-Golomb code.
    pub(super) fn ue(&mut self) -> Result<u32, ParseError> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > MAX_LEADING_ZEROS {
                return Err(ParseError::Invalid("Exp-Golomb code"));
            }
        }
        Ok(((1_u32 << zeros) - 1) + self.bits(zeros)?)
    }

    /// An unsigned Exp-Golomb code of at most `max`; `name` is the syntax element, for the error.
    pub(super) fn ue_max(&mut self, max: u32, name: &'static str) -> Result<u32, ParseError> {
        let value = self.ue()?;
        if value > max {
            return Err(ParseError::Invalid(name));
        }
        Ok(value)
    }

    /// A signed Exp-Golomb code.
    pub(super) fn se(&mut self) -> Result<i32, ParseError> {
        let code = self.ue()?;
        // Halving first keeps 2^32 - 2 inside i32.
        let magnitude = (code / 2 + code % 2) as i32;
        Ok(if code % 2 == 1 { magnitude } else { -magnitude })
    }
}

/// Writes what [`BitReader`] reads, without emulation prevention.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    current: u8,
    used: u8,
}

impl BitWriter {
    /// One bit.
    pub(crate) fn flag(&mut self, bit: bool) {
        self.current = self.current << 1 | u8::from(bit);
        self.used += 1;
        if self.used == 8 {
            self.bytes.push(self.current);
            (self.current, self.used) = (0, 0);
        }
    }

    /// The lowest `count` bits of `value`, at most 32.
    pub(crate) fn bits(&mut self, count: u32, value: u32) {
        for index in (0..count).rev() {
            self.flag(value >> index & 1 == 1);
        }
    }

    /// Eight bits.
    pub(crate) fn byte(&mut self, value: u8) {
        self.bits(8, u32::from(value));
    }

    /// An unsigned Exp-Golomb code; `u32::MAX` has none and is written as the largest value that has one.
    pub(crate) fn ue(&mut self, value: u32) {
        let code = value.min(u32::MAX - 1) + 1;
        let zeros = code.ilog2();
        self.bits(zeros, 0);
        self.bits(zeros + 1, code);
    }

    /// A signed Exp-Golomb code; `i32::MIN` has none and is written as the smallest value that has one.
    pub(crate) fn se(&mut self, value: i32) {
        let magnitude = value.max(-i32::MAX).unsigned_abs();
        self.ue(if value > 0 {
            magnitude * 2 - 1
        } else {
            magnitude * 2
        });
    }

    /// Ends the payload with `rbsp_trailing_bits` and returns the NAL unit: `header`, then the payload with
    /// emulation prevention bytes.
    pub(crate) fn into_nal(mut self, header: u8) -> Vec<u8> {
        self.flag(true);
        while self.used != 0 {
            self.flag(false);
        }
        let mut nal = Vec::with_capacity(self.bytes.len() + 2);
        nal.push(header);
        escape_into(&self.bytes, &mut nal);
        nal
    }
}

/// Appends `payload` to `out` with an emulation prevention byte wherever a start code could be read.
fn escape_into(payload: &[u8], out: &mut Vec<u8>) {
    let mut zeros = 0;
    for &byte in payload {
        if zeros == 2 && byte <= 3 {
            out.push(3);
            zeros = 0;
        }
        out.push(byte);
        zeros = if byte == 0 { zeros + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::h264::nals;

    #[test]
    fn the_first_codes_are_those_of_the_standard() {
        // Table 9-2: 1, 010, 011, 00100, then padding.
        let mut reader = BitReader::new(&[0b1010_0110, 0b0100_0000]);
        let values: Vec<_> = (0..4).map(|_| reader.ue().expect("code")).collect();
        assert_eq!(values, [0, 1, 2, 3]);
    }

    #[test]
    fn signed_codes_alternate() {
        let mut writer = BitWriter::default();
        for code in 0..5 {
            writer.ue(code);
        }
        let nal = writer.into_nal(0);
        let mut reader = BitReader::new(&nal[1..]);
        let values: Vec<_> = (0..5).map(|_| reader.se().expect("code")).collect();
        assert_eq!(values, [0, 1, -1, 2, -2]);
    }

    #[test]
    fn a_code_that_never_ends_is_refused() {
        assert_eq!(
            BitReader::new(&[0; 16]).ue(),
            Err(ParseError::Invalid("Exp-Golomb code"))
        );
        assert_eq!(BitReader::new(&[0; 2]).ue(), Err(ParseError::Truncated));
    }

    #[test]
    fn emulation_prevention_is_skipped_only_behind_two_zeros() {
        let mut reader = BitReader::new(&[3, 0, 3, 0, 0, 3, 1]);
        let read: Vec<_> = std::iter::from_fn(|| reader.byte().ok()).collect();
        assert_eq!(read, [3, 0, 3, 0, 0, 1]);
    }

    #[test]
    fn emulation_prevention_at_the_very_end_yields_nothing() {
        let mut reader = BitReader::new(&[0, 0, 3]);
        let read: Vec<_> = std::iter::from_fn(|| reader.byte().ok()).collect();
        assert_eq!(read, [0, 0]);
    }

    proptest! {
        #[test]
        fn codes_survive(unsigned in 0..u32::MAX, signed in -i32::MAX..=i32::MAX, width in 1_u32..=32) {
            let mut writer = BitWriter::default();
            writer.ue(unsigned);
            writer.se(signed);
            writer.bits(width, unsigned);
            let nal = writer.into_nal(0);
            let mut reader = BitReader::new(&nal[1..]);
            prop_assert_eq!(reader.ue(), Ok(unsigned));
            prop_assert_eq!(reader.se(), Ok(signed));
            let mask = u32::MAX >> (32 - width);
            prop_assert_eq!(reader.bits(width), Ok(unsigned & mask));
        }

        #[test]
        fn any_payload_survives_escaping_and_shows_no_start_code(
            payload in proptest::collection::vec(prop_oneof![3 => 0_u8..4, 1 => any::<u8>()], 0..64),
        ) {
            let mut writer = BitWriter::default();
            payload.iter().for_each(|&byte| writer.byte(byte));
            let nal = writer.into_nal(0x67);
            let mut stream = vec![0, 0, 1];
            stream.extend(&nal);
            prop_assert_eq!(nals(&stream).count(), 1);
            let mut reader = BitReader::new(&nal[1..]);
            for &byte in &payload {
                prop_assert_eq!(reader.byte(), Ok(byte));
            }
        }
    }
}
