//! Payloads back into access units (RFC 6184: single NAL units, STAP-A and FU-A).

use bytes::Bytes;

use super::packetize::{FU_A, FU_END, FU_START};
use crate::media::MAX_ACCESS_UNIT_BYTES;

/// Type of several NAL units in one payload (RFC 6184, section 5.7.1).
const STAP_A: u8 = 24;
const START_CODE: [u8; 4] = [0, 0, 0, 1];
const NAL_IDR: u8 = 5;
const NAL_SPS: u8 = 7;

/// Payloads that do not make an access unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Joins the payloads of one access unit, given in order and without a gap.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    data: Vec<u8>,
    idr: bool,
    in_fragment: bool,
}

impl Assembler {
    /// An assembler with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            data: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Appends a payload.
    pub fn push(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let (&header, body) = payload.split_first().ok_or(Malformed)?;
        if self.data.len() + payload.len() > MAX_ACCESS_UNIT_BYTES {
            return Err(Malformed);
        }
        match header & 0x1f {
            FU_A => self.push_fragment(header, body),
            _ if self.in_fragment => Err(Malformed),
            STAP_A => self.push_several(body),
            1..=23 => {
                self.begin(header);
                self.data.extend_from_slice(body);
                Ok(())
            }
            _ => Err(Malformed),
        }
    }

    /// The access unit and whether it is an IDR; `Err` when a fragment is not finished.
    pub fn finish(self) -> Result<(Bytes, bool), Malformed> {
        if self.in_fragment || self.data.is_empty() {
            return Err(Malformed);
        }
        Ok((self.data.into(), self.idr))
    }

    fn begin(&mut self, header: u8) {
        self.idr |= header & 0x1f == NAL_IDR;
        self.data.extend_from_slice(&START_CODE);
        self.data.push(header);
    }

    fn push_fragment(&mut self, indicator: u8, body: &[u8]) -> Result<(), Malformed> {
        let (&flags, part) = body.split_first().ok_or(Malformed)?;
        // The first fragment begins a NAL unit, and no other does.
        if (flags & FU_START != 0) == self.in_fragment {
            return Err(Malformed);
        }
        if flags & FU_START != 0 {
            self.begin(indicator & 0xe0 | flags & 0x1f);
        }
        self.in_fragment = flags & FU_END == 0;
        self.data.extend_from_slice(part);
        Ok(())
    }

    fn push_several(&mut self, mut body: &[u8]) -> Result<(), Malformed> {
        while let Some((length, rest)) = body.split_first_chunk() {
            let length = usize::from(u16::from_be_bytes(*length));
            let (nal, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
            let (&header, payload) = nal.split_first().ok_or(Malformed)?;
            self.begin(header);
            self.data.extend_from_slice(payload);
            body = rest;
        }
        if body.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// What a payload says about the access unit it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// It holds an SPS: nothing of the unit that matters comes before it.
    ParameterSets,
    /// It holds the first bytes of an IDR slice; parameter sets may come before it.
    Idr,
    /// Neither.
    None,
}

/// Whether decoding can start with the access unit of `payload`.
pub(super) fn opening_of(payload: &[u8]) -> Opening {
    let of_type = |kind: u8| match kind & 0x1f {
        NAL_SPS => Opening::ParameterSets,
        NAL_IDR => Opening::Idr,
        _ => Opening::None,
    };
    match payload {
        [header, flags, ..] if header & 0x1f == FU_A => {
            if flags & FU_START == 0 {
                Opening::None
            } else {
                of_type(*flags)
            }
        }
        [header, _, _, first, ..] if header & 0x1f == STAP_A => of_type(*first),
        [header, ..] => of_type(*header),
        [] => Opening::None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::packetize;
    use super::*;

    fn assemble(payloads: &[Bytes]) -> Result<(Bytes, bool), Malformed> {
        let mut assembler = Assembler::default();
        for payload in payloads {
            assembler.push(payload)?;
        }
        assembler.finish()
    }

    #[test]
    fn several_units_in_one_payload_are_taken_apart() {
        let stap = [0x78, 0, 2, 0x67, 1, 0, 3, 0x65, 2, 3];
        let mut assembler = Assembler::default();
        assembler.push(&stap).unwrap();
        let (unit, idr) = assembler.finish().unwrap();
        assert_eq!(&unit[..], [0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x65, 2, 3]);
        assert!(idr);
        assert_eq!(opening_of(&stap), Opening::ParameterSets);
    }

    #[test]
    fn broken_payloads_are_refused() {
        for broken in [
            &[][..],
            &[0x1c],
            &[0x1c, 0x05, 1],    // a fragment without its first one
            &[0x78, 0, 9, 0x67], // longer than what is there
            &[0x78, 0, 0],       // a NAL unit without a byte
            &[0x79, 1, 2],       // STAP-B belongs to mode 2
            &[0x00, 1],          // no type
        ] {
            assert_eq!(Assembler::default().push(broken), Err(Malformed), "{broken:?}");
        }
        let mut unfinished = Assembler::default();
        unfinished.push(&[0x7c, FU_START | 5, 1]).unwrap();
        assert_eq!(unfinished.push(&[0x67, 1]), Err(Malformed));
        assert_eq!(unfinished.finish(), Err(Malformed));
    }

    proptest! {
        #[test]
        fn an_access_unit_survives_its_packets(
            nals in prop::collection::vec((1_u8..24, prop::collection::vec(1_u8..=255, 1..600)), 1..5),
            limit in 4_usize..300,
        ) {
            let mut unit = Vec::new();
            for (kind, body) in &nals {
                unit.extend_from_slice(&START_CODE);
                unit.push(0x60 | kind);
                unit.extend_from_slice(body);
            }
            let payloads = packetize(&unit.clone().into(), limit);
            prop_assert!(payloads.iter().all(|payload| payload.len() <= limit));
            let (got, idr) = assemble(&payloads).unwrap();
            prop_assert_eq!(&got[..], &unit[..]);
            prop_assert_eq!(idr, nals.iter().any(|(kind, _)| *kind == NAL_IDR));
        }

        #[test]
        fn no_payloads_make_it_panic(payloads: Vec<Vec<u8>>) {
            let payloads: Vec<Bytes> = payloads.into_iter().map(Bytes::from).collect();
            let _ = assemble(&payloads);
            payloads.iter().for_each(|payload| { opening_of(payload); });
        }
    }
}
