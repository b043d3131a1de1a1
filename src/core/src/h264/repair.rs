//! Promising in the SPS what is true anyway: that no picture is output out of order.
//!
//! Without `bitstream_restriction` a decoder has to expect the worst its level allows and holds pictures back:
//! four in a strict software decoder at 1080p, about eight in browsers and hardware.

use super::sps::{OrderCount, Restriction, Sps};

/// `profile_idc` of Baseline, which has no B slices.
const BASELINE: u8 = 66;

/// Why a stream is taken to keep its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The SPS rules reordering out: order count type 2, or only IDR pictures.
    Certain,
    /// Baseline with order counts in slice headers: legal to reorder, yet no encoder does. Watched.
    Likely,
}

/// Whether pictures of `sps` are output in decoding order although it does not promise so.
pub(super) fn proof(sps: &Sps) -> Option<Proof> {
    if sps.vui_damaged || sps.vui.as_ref().is_some_and(|vui| vui.restriction.is_some()) {
        return None;
    }
    if sps.order_count == OrderCount::Decoding || sps.is_intra_only() {
        return Some(Proof::Certain);
    }
    (sps.profile_idc == BASELINE).then_some(Proof::Likely)
}

/// `sps` with the promise added and nothing else changed. The caller has a [`Proof`].
pub(super) fn repaired(sps: &Sps) -> Sps {
    let mut sps = sps.clone();
    // Intra profiles keep nothing; others need room for what they refer to, and one for the picture itself
    // where a decoder takes 0 to mean that it may not even hold the current one.
    let least = if sps.is_intra_only() { 0 } else { 1 };
    sps.vui.get_or_insert_default().restriction = Some(Restriction {
        max_reorder_frames: 0,
        max_dec_frame_buffering: sps.max_ref_frames.max(least),
        ..INFERRED
    });
    sps
}

/// What E.2.1 lets a decoder assume when the restriction is absent: adding it must change nothing else.
const INFERRED: Restriction = Restriction {
    vectors_over_edges: true,
    max_bytes_per_pic_denom: 2,
    max_bits_per_mb_denom: 1,
    log2_max_vector_horizontal: 15,
    log2_max_vector_vertical: 15,
    max_reorder_frames: 0,
    max_dec_frame_buffering: 0,
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Seeded, h264::random_sps};

    #[test]
    fn a_main_profile_with_coded_order_proves_nothing() {
        let mut sps = Sps::blank(77, 0, 40);
        sps.order_count = OrderCount::LowBits { bits: 8 };
        assert_eq!(proof(&sps), None);
        sps.profile_idc = BASELINE;
        assert_eq!(proof(&sps), Some(Proof::Likely));
        sps.order_count = OrderCount::Decoding;
        assert_eq!(proof(&sps), Some(Proof::Certain));
    }

    #[test]
    fn set_3_means_intra_in_high_profiles_and_a_level_in_main() {
        let mut sps = Sps::blank(100, 0x10, 11);
        sps.order_count = OrderCount::LowBits { bits: 4 };
        sps.max_ref_frames = 0;
        assert_eq!(proof(&sps), Some(Proof::Certain));
        let restriction = repaired(&sps).vui.and_then(|vui| vui.restriction);
        assert_eq!(restriction.map(|r| r.max_dec_frame_buffering), Some(0));
        sps.profile_idc = 77;
        assert_eq!(proof(&sps), None);
    }

    proptest! {
        #[test]
        fn repair_adds_the_promise_and_nothing_else(seed: u64) {
            let sps = random_sps(&mut Seeded::new(seed));
            let mut fixed = repaired(&sps);
            prop_assert_eq!(proof(&fixed), None, "repairing twice would change something");
            prop_assert_eq!(Sps::parse(&fixed.to_nal()), Ok(fixed.clone()));
            let vui = fixed.vui.as_mut().expect("added");
            let added = vui.restriction.take().expect("added");
            prop_assert_eq!(added.max_reorder_frames, 0);
            prop_assert!(added.max_dec_frame_buffering >= sps.max_ref_frames);
            let mut plain = sps;
            plain.vui.get_or_insert_default().restriction = None;
            prop_assert_eq!(fixed, plain);
        }
    }
}
