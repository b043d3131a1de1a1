//! Watches whether pictures of a Baseline stream really come in output order (ITU-T H.264 8.2.1).

use super::slice::SliceHeader;
use super::sps::{OrderCount, Sps};

/// Follows the order counts of one coded video sequence after another.
///
/// Only frames are followed: Baseline has no fields. A gap in `frame_num` (lost pictures, or
/// `memory_management_control_operation` 5, which is not read) starts a new sequence here, because low bits
/// cannot be extended over it; so this errs on the side of seeing nothing, never of seeing order broken.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderWatch {
    sequence: Option<Sequence>,
    broken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sequence {
    /// Order count of the picture before.
    last: i64,
    /// `frame_num` of the picture before.
    frame_num: u32,
    /// `FrameNumOffset` of the picture before (type 1).
    frame_num_offset: i64,
    /// `frame_num` of the reference picture before.
    reference_frame_num: u32,
    /// High and low bits of the reference picture before (type 0).
    high: i64,
    low: u32,
}

impl OrderWatch {
    /// True once a picture was due for output before one that was decoded earlier.
    pub(super) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Forgets everything: another SPS is in force.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Takes the next picture in decoding order, by its first slice.
    pub(super) fn observe(&mut self, sps: &Sps, slice: &SliceHeader) {
        if slice.field.is_some() {
            return;
        }
        if slice.start.is_bidirectional() {
            self.broken = true;
        }
        let before = self
            .sequence
            .filter(|before| !slice.idr && before.leads_to(sps, slice));
        let Some((next, count)) = advance(before, sps, slice) else {
            return;
        };
        self.broken |= before.is_some_and(|before| count < before.last);
        self.sequence = Some(next);
    }
}

impl Sequence {
    /// False when pictures are missing between this one and `slice`.
    fn leads_to(&self, sps: &Sps, slice: &SliceHeader) -> bool {
        let following = (self.reference_frame_num + 1) & (max_frame_num(sps) - 1);
        slice.frame_num == self.reference_frame_num || slice.frame_num == following
    }
}

const fn max_frame_num(sps: &Sps) -> u32 {
    1 << sps.frame_num_bits
}

/// The state after `slice` and its order count; without a picture `before`, counting starts here.
fn advance(before: Option<Sequence>, sps: &Sps, slice: &SliceHeader) -> Option<(Sequence, i64)> {
    let start = Sequence {
        last: 0,
        frame_num: slice.frame_num,
        frame_num_offset: 0,
        reference_frame_num: slice.frame_num,
        high: 0,
        low: if slice.idr { 0 } else { slice.order_low_bits },
    };
    let mut next = before.unwrap_or(start);
    let count = match &sps.order_count {
        OrderCount::LowBits { bits } => next.count_low_bits(*bits, slice),
        OrderCount::Cycle { .. } => next.count_cycle(sps, slice),
        OrderCount::Decoding => return None,
    };
    next.last = count;
    next.frame_num = slice.frame_num;
    if slice.ref_idc != 0 {
        next.reference_frame_num = slice.frame_num;
    }
    Some((next, count))
}

impl Sequence {
    /// Type 0 (8.2.1.1): extends the low bits by the nearest high bits.
    fn count_low_bits(&mut self, bits: u8, slice: &SliceHeader) -> i64 {
        let range = 1_i64 << bits;
        let (low, before) = (i64::from(slice.order_low_bits), i64::from(self.low));
        let high = if low < before && before - low >= range / 2 {
            self.high + range
        } else if low > before && low - before > range / 2 {
            self.high - range
        } else {
            self.high
        };
        if slice.ref_idc != 0 {
            (self.high, self.low) = (high, slice.order_low_bits);
        }
        let top = high + low;
        top.min(top + i64::from(slice.order_bottom))
    }

    /// Type 1 (8.2.1.2): the expected count of the frame number, corrected by the slice.
    fn count_cycle(&mut self, sps: &Sps, slice: &SliceHeader) -> i64 {
        let OrderCount::Cycle {
            non_reference,
            top_to_bottom,
            offsets,
            ..
        } = &sps.order_count
        else {
            return 0;
        };
        if self.frame_num > slice.frame_num {
            self.frame_num_offset += i64::from(max_frame_num(sps));
        }
        let mut frames = if offsets.is_empty() {
            0
        } else {
            self.frame_num_offset + i64::from(slice.frame_num)
        };
        if slice.ref_idc == 0 && frames > 0 {
            frames -= 1;
        }
        let mut expected = expected_count(offsets, frames);
        if slice.ref_idc == 0 {
            expected += i64::from(*non_reference);
        }
        let top = expected + i64::from(slice.order_deltas[0]);
        top.min(top + i64::from(*top_to_bottom) + i64::from(slice.order_deltas[1]))
    }
}

/// Sum of the first `frames` offsets, the cycle repeating; zero frames have none.
fn expected_count(offsets: &[i32], frames: i64) -> i64 {
    let length = offsets.len() as i64;
    if frames <= 0 || length == 0 {
        return 0;
    }
    let (cycles, rest) = ((frames - 1) / length, (frames - 1) % length);
    let sum = |count: usize| {
        offsets
            .iter()
            .take(count)
            .map(|&offset| i64::from(offset))
            .sum::<i64>()
    };
    cycles
        .saturating_mul(sum(offsets.len()))
        .saturating_add(sum(rest as usize + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h264::slice::SliceStart;

    fn slice(idr: bool, ref_idc: u8, frame_num: u32, low: u32) -> SliceHeader {
        SliceHeader {
            start: SliceStart {
                first_mb: 0,
                slice_type: 5,
                pps_id: 0,
            },
            idr,
            ref_idc,
            frame_num,
            field: None,
            idr_pic_id: 0,
            order_low_bits: low,
            order_bottom: 0,
            order_deltas: [0; 2],
        }
    }

    fn low_bits() -> Sps {
        Sps {
            order_count: OrderCount::LowBits { bits: 4 },
            ..Sps::blank(66, 0, 30)
        }
    }

    fn broken_after(sps: &Sps, slices: &[SliceHeader]) -> bool {
        let mut watch = OrderWatch::default();
        slices.iter().for_each(|slice| watch.observe(sps, slice));
        watch.is_broken()
    }

    #[test]
    fn rising_counts_are_fine_over_many_wraps() {
        let mut slices = vec![slice(true, 1, 0, 0)];
        slices.extend((1..200).map(|n| slice(false, 1, n % 16, n * 2 % 16)));
        assert!(!broken_after(&low_bits(), &slices));
    }

    #[test]
    fn a_count_that_falls_is_seen() {
        let slices = [slice(true, 1, 0, 0), slice(false, 1, 1, 4), slice(false, 0, 2, 2)];
        assert!(broken_after(&low_bits(), &slices));
    }

    #[test]
    fn every_idr_starts_again() {
        let slices = [slice(true, 1, 0, 0), slice(false, 1, 1, 6), slice(true, 1, 0, 0)];
        assert!(!broken_after(&low_bits(), &slices));
    }

    #[test]
    fn lost_pictures_are_not_mistaken_for_order_broken() {
        // Five pictures are gone: their low bits would seem to run backwards.
        let slices = [
            slice(true, 1, 0, 0),
            slice(false, 1, 1, 2),
            slice(false, 1, 7, 14),
            slice(false, 1, 8, 0),
        ];
        assert!(!broken_after(&low_bits(), &slices));
    }

    #[test]
    fn a_b_slice_is_enough() {
        let mut b = slice(false, 0, 1, 2);
        b.start.slice_type = 1;
        assert!(broken_after(&low_bits(), &[slice(true, 1, 0, 0), b]));
    }

    #[test]
    fn cycles_are_summed() {
        assert_eq!(expected_count(&[2, 4], 0), 0);
        assert_eq!(expected_count(&[2, 4], 1), 2);
        assert_eq!(expected_count(&[2, 4], 2), 6);
        assert_eq!(expected_count(&[2, 4], 3), 8);
    }

    #[test]
    fn type_1_is_followed_over_the_wrap_of_frame_num() {
        let sps = Sps {
            order_count: OrderCount::Cycle {
                always_zero: false,
                non_reference: -1,
                top_to_bottom: 0,
                offsets: vec![2],
            },
            ..Sps::blank(66, 0, 30)
        };
        let mut slices = vec![slice(true, 1, 0, 0)];
        slices.extend((1..40).map(|n| slice(false, 1, n % 16, 0)));
        assert!(!broken_after(&sps, &slices));
        let mut early = slice(false, 0, 40 % 16, 0);
        early.order_deltas[0] = -8;
        slices.push(early);
        assert!(broken_after(&sps, &slices));
    }
}
