//! Raw Annex B streams into access units (ITU-T H.264 7.4.1.2.3 and 7.4.1.2.4).

use super::nal::{Nal, NalKind, Nals, nals};
use super::sets::ParameterSets;
use super::slice::{SliceHeader, SliceStart};

/// The access units of a raw Annex B stream, with or without delimiters, without copying.
///
/// The units cover the stream from its first start code to its end. Fields are separate units, as the
/// standard has it.
#[derive(Debug)]
pub struct AccessUnits<'a> {
    stream: &'a [u8],
    nals: Nals<'a>,
    sets: ParameterSets,
    /// Where the unit being collected begins.
    start: Option<usize>,
    /// The slice before, once the unit being collected has one.
    slice: Option<Slice>,
    /// Where the next unit begins if the next slice turns out to belong to it.
    prefix: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Slice {
    Known(SliceHeader),
    /// Its parameter sets are missing or it is damaged.
    Unknown,
}

impl<'a> AccessUnits<'a> {
    /// Splits `stream`.
    pub fn new(stream: &'a [u8]) -> Self {
        Self {
            stream,
            nals: nals(stream),
            sets: ParameterSets::default(),
            start: None,
            slice: None,
            prefix: None,
        }
    }

    /// Takes the next NAL unit; returns where the next access unit begins when it is one.
    fn take(&mut self, nal: &Nal<'a>) -> Option<usize> {
        match nal.kind() {
            NalKind::Sps => {
                self.sets.remember_sps(nal.bytes());
                self.boundary(nal.prefix_start())
            }
            NalKind::Pps => {
                self.sets.remember_pps(nal.bytes());
                self.boundary(nal.prefix_start())
            }
            NalKind::Delimiter | NalKind::Sei | NalKind::Other(15..=18) => self.boundary(nal.prefix_start()),
            NalKind::Slice | NalKind::IdrSlice => self.take_slice(nal),
            NalKind::Other(14) => {
                // A prefix NAL unit goes with the slice behind it, which may belong to either unit.
                self.prefix.get_or_insert(nal.prefix_start());
                None
            }
            NalKind::Other(_) => None,
        }
    }

    /// What may only stand before the slices of a unit begins the next one once there was a slice.
    fn boundary(&mut self, at: usize) -> Option<usize> {
        let prefix = self.prefix.take();
        self.slice.take().map(|_| prefix.unwrap_or(at))
    }

    fn take_slice(&mut self, nal: &Nal<'a>) -> Option<usize> {
        let start = SliceStart::parse(nal).ok();
        let header = start
            .and_then(|start| self.sets.of_picture(start.pps_id))
            .and_then(|(entry, pps)| SliceHeader::parse(nal, &entry.sps, pps).ok());
        let begins = match (self.slice, header) {
            (None, _) => false,
            (Some(Slice::Known(previous)), Some(header)) => header.begins_picture_after(&previous),
            // Without its header only the first macroblock tells.
            (Some(_), _) => start.is_some_and(|start| start.first_mb == 0),
        };
        let prefix = self.prefix.take();
        self.slice = Some(header.map_or(Slice::Unknown, Slice::Known));
        begins.then(|| prefix.unwrap_or(nal.prefix_start()))
    }
}

impl<'a> Iterator for AccessUnits<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while let Some(nal) = self.nals.next() {
            let begin = *self.start.get_or_insert(nal.prefix_start());
            if let Some(end) = self.take(&nal) {
                self.start = Some(end);
                return Some(&self.stream[begin..end]);
            }
        }
        self.start.take().map(|begin| &self.stream[begin..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h264::sps::{OrderCount, Sps};
    use crate::testing::h264::{SliceFields, annex_b, pps_nal, slice_nal};

    const IDR: SliceFields = SliceFields {
        idr: true,
        first_mb: 0,
        slice_type: 7,
        pps_id: 0,
        ref_idc: 1,
        frame_num: 0,
        idr_pic_id: 0,
        order_low_bits: 0,
    };
    const P: SliceFields = SliceFields {
        idr: false,
        slice_type: 5,
        frame_num: 1,
        order_low_bits: 2,
        ..IDR
    };
    const DELIMITER: [u8; 2] = [9, 0xf0];

    fn sps() -> Sps {
        Sps {
            order_count: OrderCount::LowBits { bits: 4 },
            ..Sps::blank(66, 0, 30)
        }
    }

    fn slice(fields: SliceFields) -> Vec<u8> {
        slice_nal(&sps(), fields)
    }

    /// The number of NAL units in each access unit.
    fn split(units: &[Vec<u8>]) -> Vec<usize> {
        let mut all = vec![sps().to_nal(), pps_nal(0, 0)];
        all.extend(units.iter().cloned());
        let stream = annex_b(all);
        AccessUnits::new(&stream).map(|unit| nals(unit).count()).collect()
    }

    #[test]
    fn slices_of_one_picture_stay_together_in_any_order() {
        let rest = SliceFields { first_mb: 40, ..IDR };
        assert_eq!(split(&[slice(rest), slice(IDR), slice(P)]), [4, 1]);
    }

    #[test]
    fn each_difference_of_the_standard_begins_a_picture() {
        for next in [
            SliceFields { frame_num: 2, ..P },
            SliceFields { ref_idc: 0, ..P },
            SliceFields {
                order_low_bits: 4,
                ..P
            },
            SliceFields { idr: true, ..P },
        ] {
            assert_eq!(split(&[slice(IDR), slice(P), slice(next)]), [3, 1, 1], "{next:?}");
        }
        let second = SliceFields { idr_pic_id: 1, ..IDR };
        assert_eq!(split(&[slice(IDR), slice(second)]), [3, 1]);
        let same = SliceFields {
            ref_idc: 2,
            first_mb: 9,
            ..P
        };
        assert_eq!(split(&[slice(IDR), slice(P), slice(same)]), [3, 2]);
    }

    #[test]
    fn delimiters_and_parameter_sets_begin_a_unit() {
        let parts = [
            slice(IDR),
            DELIMITER.to_vec(),
            slice(P),
            vec![6, 5, 1, 0, 0x80],
            slice(SliceFields { frame_num: 2, ..P }),
            sps().to_nal(),
            pps_nal(0, 0),
            slice(IDR),
        ];
        assert_eq!(split(&parts), [3, 2, 2, 3]);
    }

    #[test]
    fn a_prefix_unit_goes_with_its_slice() {
        let prefix = vec![0x6e, 0x80, 1, 2];
        let rest = SliceFields { first_mb: 40, ..IDR };
        let parts = [
            prefix.clone(),
            slice(IDR),
            prefix.clone(),
            slice(rest),
            prefix,
            slice(P),
        ];
        assert_eq!(split(&parts), [6, 2]);
    }

    #[test]
    fn without_parameter_sets_the_first_macroblock_decides() {
        let stream = annex_b([slice(IDR), slice(SliceFields { first_mb: 7, ..IDR }), slice(P)]);
        let units: Vec<_> = AccessUnits::new(&stream).map(|unit| nals(unit).count()).collect();
        assert_eq!(units, [2, 1]);
    }
}
