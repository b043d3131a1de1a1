//! What must hold for every input whatever: ordinary functions, called by tests on kept inputs and by fuzzers.
//!
//! An oracle panics when a promise is broken. [`ALL`] names each one; `tests/golden/fuzz/<name>` holds inputs
//! that once mattered.

use bytes::Bytes;

use crate::automation::{Effect, Session, SessionConfig, SessionState, parse_line};
use crate::h264::{AccessUnits, Conditioned, Conditioner, NalKind, Pps, Sps, nals};
use crate::media::MAX_ACCESS_UNIT_BYTES;
use crate::signaling::{
    self, CREDENTIAL_QUOTA, Effect as SignalingEffect, IceConfig, Moment, StoreOutcome, Unusable,
    parse_request,
};
use crate::time::Monotonic;

/// Takes any input and panics when a promise is broken.
pub type Oracle = fn(&[u8]);

/// Every oracle by the name of its folder of kept inputs.
pub const ALL: &[(&str, Oracle)] = &[
    ("h264_nals", h264_nals),
    ("h264_parameter_sets", h264_parameter_sets),
    ("h264_access_units", h264_access_units),
    ("h264_conditioner", h264_conditioner),
    ("automation_line", automation_line),
    ("signaling_messages", signaling_messages),
];

/// NAL units lie in the stream in order, without overlap, and contain no start code.
pub fn h264_nals(stream: &[u8]) {
    let mut end = 0;
    for nal in nals(stream) {
        assert!(nal.prefix_start() >= end, "units overlap");
        end = nal.range().end;
        assert_eq!(&stream[nal.range()], nal.bytes());
        assert!(!nal.bytes().is_empty() && !nal.bytes().windows(3).any(|bytes| bytes == [0, 0, 1]));
    }
}

/// A parameter set that can be read is written back to one that reads the same, and its facts hold together.
pub fn h264_parameter_sets(nal: &[u8]) {
    if let Ok(sps) = Sps::parse(nal) {
        let mut again = Sps::parse(&sps.to_nal()).expect("what was written can be read");
        again.vui_damaged = sps.vui_damaged;
        assert_eq!(again, sps);
        let (coded, visible) = (sps.coded_size(), sps.visible_size());
        assert!(visible.width > 0 && visible.width <= coded.width);
        assert!(visible.height > 0 && visible.height <= coded.height);
        assert!(sps.frame_rate().is_none_or(|rate| rate.num > 0 && rate.den > 0));
        let _ = (sps.color(), sps.reorder(), sps.displayable(), sps.codec_string());
    }
    let _ = Pps::parse(nal);
}

/// Access units cover the stream from its first start code to its end, and none is empty.
pub fn h264_access_units(stream: &[u8]) {
    let Some(first) = nals(stream).next() else {
        assert_eq!(AccessUnits::new(stream).count(), 0);
        return;
    };
    let mut at = first.prefix_start();
    for unit in AccessUnits::new(stream) {
        assert!(!unit.is_empty() && stream[at..].starts_with(unit));
        at += unit.len();
    }
    assert_eq!(at, stream.len());
}

/// Any stream passes the conditioner without a panic; every IDR that passes can be started from.
pub fn h264_conditioner(stream: &[u8]) {
    let mut conditioner = Conditioner::new();
    for unit in AccessUnits::new(stream) {
        let unit = Bytes::copy_from_slice(unit);
        if let Ok(conditioned) = conditioner.condition(unit.clone()) {
            check_conditioned(&unit, &conditioned);
        }
    }
    // The same bytes as one unit: nothing relies on how they were cut.
    let _ = Conditioner::new().condition(Bytes::copy_from_slice(stream));
}

fn check_conditioned(unit: &Bytes, conditioned: &Conditioned) {
    let data = &conditioned.data;
    assert!(data.len() <= MAX_ACCESS_UNIT_BYTES);
    assert!(data.len() >= unit.len() || nals(unit).any(|nal| nal.kind() == NalKind::Sps));
    let slices = |stream: &[u8]| nals(stream).filter(|nal| nal.kind().is_slice()).count();
    assert_eq!(slices(data), slices(unit));
    assert_eq!(conditioned.has_picture, slices(unit) > 0);
    if !conditioned.idr {
        return;
    }
    let sps = conditioned.sps.as_ref().expect("an IDR picture has an SPS");
    let own: Vec<_> = nals(data)
        .take_while(|nal| !nal.kind().is_slice())
        .filter_map(|nal| Sps::parse(nal.bytes()).ok())
        .filter(|found| found.id == sps.id)
        .collect();
    assert_eq!(
        own.last(),
        Some(&**sps),
        "the SPS in force stands before the picture"
    );
    let alone = Conditioner::new()
        .condition(data.clone())
        .expect("an IDR access unit stands alone");
    assert!(alone.idr);
}

/// A request line is answered exactly once, with its id when the answer is an error that could read it, and one
/// that is refused changes nothing.
pub fn automation_line(line: &[u8]) {
    let now = Monotonic::ZERO;
    let mut session = Session::new(SessionConfig {
        video_ws: false,
        direct_source: true,
    });
    session.handle_line(now, line);
    session.check_invariants();
    let effects: Vec<_> = std::iter::from_fn(|| session.poll_effect()).collect();
    let replies: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Reply(reply) => Some(reply),
            _ => None,
        })
        .collect();
    let [reply] = replies[..] else {
        panic!("{} replies to one line", replies.len());
    };
    let reply: serde_json::Value = serde_json::from_slice(reply).expect("replies are JSON");
    let id = match parse_line(line) {
        Ok(request) => Some(request.id),
        Err(refusal) => {
            assert_eq!(reply["error"]["code"], refusal.code.as_str());
            assert_eq!((effects.len(), session.state()), (1, SessionState::Idle));
            refusal.id
        }
    };
    assert_eq!(reply["id"], serde_json::json!(id));
}

/// Two sockets take turns in saying the lines of `input` to a server whose store agrees to everything. Only text that is
/// no message ends a socket, and all that is said is a JSON object with a `type`.
pub fn signaling_messages(input: &[u8]) {
    let mut server = signaling::Server::new(signaling::Config {
        seed: [0; 32],
        max_connections: 2,
        credential_quota: CREDENTIAL_QUOTA,
        ice: IceConfig::default(),
    });
    let now = Moment::default();
    let open = |server: &mut signaling::Server| {
        let address = std::net::Ipv4Addr::LOCALHOST;
        server.handle_open(now, address.into()).expect("there is room")
    };
    let sockets = [open(&mut server), open(&mut server)];
    for (turn, line) in input.split(|byte| *byte == b'\n').take(64).enumerate() {
        let (socket, text) = (sockets[turn % 2], String::from_utf8_lossy(line));
        let known = server.knows(socket);
        server.handle_text(now, socket, &text);
        while let Some(effect) = server.poll_effect() {
            match effect {
                SignalingEffect::Send(_, text) => {
                    let message: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                    assert!(message["type"].is_string(), "{text}");
                }
                SignalingEffect::Store(_) => server.handle_store(now, StoreOutcome::DONE),
                SignalingEffect::Close(..) | SignalingEffect::Note(_) => {}
            }
        }
        let malformed = parse_request(&text) == Err(Unusable::Malformed);
        let too_long = text.len() > signaling::MAX_MESSAGE_BYTES;
        assert_eq!(server.knows(socket), known && !malformed && !too_long);
        server.check_invariants();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::Seeded;
    use crate::testing::h264::{Damage, SliceFields, annex_b, pps_nal, random_sps, slice_nal};

    /// A short stream with real structure: sets, an IDR picture, a few others.
    fn stream(random: &mut Seeded) -> Vec<u8> {
        let sps = random_sps(random);
        let mut parts = vec![sps.to_nal(), pps_nal(0, sps.id)];
        for n in 0..4 {
            parts.push(slice_nal(
                &sps,
                SliceFields {
                    idr: n == 0,
                    slice_type: 7,
                    ref_idc: 1,
                    frame_num: n,
                    order_low_bits: 2 * n,
                    ..SliceFields::default()
                },
            ));
        }
        annex_b(parts)
    }

    proptest! {
        #[test]
        fn noise_breaks_no_promise(
            bytes in proptest::collection::vec(prop_oneof![4 => 0_u8..4, 2 => 0x65_u8..0x69, 1 => any::<u8>()], 0..300),
        ) {
            ALL.iter().for_each(|(_, oracle)| oracle(&bytes));
        }

        #[test]
        fn damaged_streams_break_no_promise(seed: u64, flips in 0_u32..6) {
            let mut random = Seeded::new(seed);
            let whole = stream(&mut random);
            let flipped = Damage::FlipBits(flips).apply(&whole, &mut random);
            let cut = Damage::Truncate.apply(&whole, &mut random);
            for bytes in [&whole, &flipped, &cut] {
                ALL.iter().for_each(|(_, oracle)| oracle(bytes));
            }
        }

        #[test]
        fn damaged_parameter_sets_break_no_promise(seed: u64, flips in 0_u32..6) {
            let mut random = Seeded::new(seed);
            let nal = random_sps(&mut random).to_nal();
            h264_parameter_sets(&Damage::FlipBits(flips).apply(&nal, &mut random));
            h264_parameter_sets(&Damage::Truncate.apply(&nal, &mut random));
        }
    }
}
