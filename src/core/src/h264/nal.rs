//! NAL units in Annex B byte streams (ITU-T H.264 annex B and 7.3.1).

use std::ops::Range;

/// One NAL unit inside a byte stream: header byte and payload, without start code and trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nal<'a> {
    data: &'a [u8],
    prefix: usize,
    start: usize,
}

/// What a NAL unit carries, as far as it matters here (ITU-T H.264 table 7-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NalKind {
    /// Slice of a picture that is not an IDR picture (1), or the first partition of one (2).
    Slice,
    /// Slice of an IDR picture (5).
    IdrSlice,
    /// Supplemental enhancement information (6).
    Sei,
    /// Sequence parameter set (7).
    Sps,
    /// Picture parameter set (8).
    Pps,
    /// Access unit delimiter (9).
    Delimiter,
    /// Any other type, by its number.
    Other(u8),
}

impl NalKind {
    /// True for the slices of a primary coded picture.
    pub const fn is_slice(self) -> bool {
        matches!(self, Self::Slice | Self::IdrSlice)
    }
}

impl<'a> Nal<'a> {
    /// Header byte and payload, still with emulation prevention bytes; never empty.
    pub const fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// What it carries.
    pub fn kind(&self) -> NalKind {
        match self.header() & 0x1f {
            1 | 2 => NalKind::Slice,
            5 => NalKind::IdrSlice,
            6 => NalKind::Sei,
            7 => NalKind::Sps,
            8 => NalKind::Pps,
            9 => NalKind::Delimiter,
            other => NalKind::Other(other),
        }
    }

    /// `nal_ref_idc`: zero when no other picture refers to this one.
    pub fn ref_idc(&self) -> u8 {
        self.header() >> 5 & 3
    }

    /// True when the bit that must be zero is set: the unit is damaged.
    pub fn is_forbidden(&self) -> bool {
        self.header() & 0x80 != 0
    }

    /// Where its bytes lie in the stream, without the start code.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.data.len()
    }

    /// Where its start code begins in the stream, the optional fourth byte included.
    pub const fn prefix_start(&self) -> usize {
        self.prefix
    }

    /// The bytes behind the header.
    pub(super) fn payload(&self) -> &'a [u8] {
        self.data.get(1..).unwrap_or_default()
    }

    fn header(&self) -> u8 {
        self.data.first().copied().unwrap_or_default()
    }
}

/// The NAL units of an Annex B byte stream, in order.
///
/// Bytes before the first start code are skipped, and so are units without a single byte.
pub fn nals(stream: &[u8]) -> Nals<'_> {
    Nals {
        stream,
        code: find_start_code(stream, 0),
    }
}

/// Iterator returned by [`nals`].
#[derive(Clone, Debug)]
pub struct Nals<'a> {
    stream: &'a [u8],
    /// Where the next three-byte start code lies.
    code: Option<usize>,
}

impl<'a> Iterator for Nals<'a> {
    type Item = Nal<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let code = self.code?;
            let start = code + 3;
            self.code = find_start_code(self.stream, start);
            let data = without_trailing_zeros(&self.stream[start..self.code.unwrap_or(self.stream.len())]);
            if !data.is_empty() {
                let long = code > 0 && self.stream[code - 1] == 0;
                return Some(Nal {
                    data,
                    prefix: code - usize::from(long),
                    start,
                });
            }
        }
    }
}

/// Position of the first `00 00 01` at or after `from`.
fn find_start_code(stream: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    // The third byte decides how far to skip, so ordinary payload is looked at every third byte only.
    while let Some(&third) = stream.get(at + 2) {
        match third {
            0 => at += 1,
            1 if stream[at] == 0 && stream[at + 1] == 0 => return Some(at),
            _ => at += 3,
        }
    }
    None
}

/// `trailing_zero_8bits` and the first byte of a four-byte start code are no part of a NAL unit, whose last
/// byte is never zero.
fn without_trailing_zeros(data: &[u8]) -> &[u8] {
    let end = data
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    &data[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(stream: &[u8]) -> Vec<&[u8]> {
        nals(stream).map(|nal| nal.bytes()).collect()
    }

    #[test]
    fn both_start_codes_and_trailing_zeros_are_understood() {
        let stream = [
            0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 0, 0, 1, 0x68, 3, 0, 0, 1, 0x65, 0, 4, 0, 0,
        ];
        assert_eq!(bytes_of(&stream), [&[0x67, 1, 2][..], &[0x68, 3], &[0x65, 0, 4]]);
        let prefixes: Vec<_> = nals(&stream).map(|nal| nal.prefix_start()).collect();
        assert_eq!(prefixes, [0, 9, 15]);
    }

    #[test]
    fn bytes_before_the_first_start_code_are_skipped() {
        assert_eq!(bytes_of(&[9, 9, 0, 0, 1, 0x41]), [&[0x41][..]]);
        assert!(bytes_of(&[1, 2, 3, 4]).is_empty());
        assert!(bytes_of(&[0, 0, 1]).is_empty());
        assert!(bytes_of(&[0, 0, 0, 0, 1]).is_empty());
    }

    #[test]
    fn a_unit_without_bytes_is_skipped() {
        assert_eq!(bytes_of(&[0, 0, 1, 0, 0, 1, 0x09]), [&[0x09][..]]);
    }

    #[test]
    fn the_header_is_read() {
        let stream = [0, 0, 1, 0x65, 0, 0, 1, 0x01, 0, 0, 1, 0xe7];
        let found: Vec<_> = nals(&stream)
            .map(|nal| (nal.kind(), nal.ref_idc(), nal.is_forbidden()))
            .collect();
        assert_eq!(
            found,
            [
                (NalKind::IdrSlice, 3, false),
                (NalKind::Slice, 0, false),
                (NalKind::Sps, 3, true)
            ]
        );
    }

    proptest! {
        #[test]
        fn the_fast_search_finds_what_a_plain_one_finds(
            stream in proptest::collection::vec(prop_oneof![4 => 0_u8..3, 1 => any::<u8>()], 0..200),
        ) {
            let plain = stream.windows(3).position(|bytes| bytes == [0, 0, 1]);
            prop_assert_eq!(find_start_code(&stream, 0), plain);
        }

        #[test]
        fn units_lie_where_they_say(
            stream in proptest::collection::vec(prop_oneof![4 => 0_u8..3, 1 => any::<u8>()], 0..200),
        ) {
            let mut end = 0;
            for nal in nals(&stream) {
                prop_assert!(nal.prefix_start() >= end);
                prop_assert_eq!(&stream[nal.range()], nal.bytes());
                end = nal.range().end;
            }
        }
    }
}
