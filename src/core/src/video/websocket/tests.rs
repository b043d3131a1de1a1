//! Frames by hand, and one property: how the bytes are split makes no difference.

use proptest::prelude::*;

use super::*;

/// A client frame with a mask that shows mistakes.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x11, 0x22, 0x44, 0x88];
    let server = ServerHeader::new(Opcode::Text, payload.len());
    let mut bytes = server.as_bytes().to_vec();
    bytes[0] = first;
    bytes[1] |= MASKED;
    bytes.extend_from_slice(&mask);
    bytes.extend(
        payload
            .iter()
            .zip(mask.into_iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
    bytes
}

const TEXT: u8 = FIN | 1;
const PING: u8 = FIN | 9;

/// Everything `bytes` say, read in pieces of `step`, and how it ended.
fn read_all(bytes: &[u8], step: usize) -> (Vec<ClientEvent>, Option<CloseReason>) {
    let mut reader = ClientFrames::default();
    let mut events = Vec::new();
    for mut piece in bytes.chunks(step) {
        loop {
            match reader.read(&mut piece) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(reason) => return (events, Some(reason)),
            }
        }
        assert!(piece.is_empty());
    }
    (events, None)
}

fn ends_with(bytes: &[u8]) -> Option<CloseReason> {
    read_all(bytes, usize::MAX).1
}

#[test]
fn server_headers_take_the_shortest_form() {
    let header = |len| ServerHeader::new(Opcode::Binary, len).as_bytes().to_vec();
    assert_eq!(header(0), [0x82, 0]);
    assert_eq!(header(125), [0x82, 125]);
    assert_eq!(header(126), [0x82, 126, 0, 126]);
    assert_eq!(header(65_535), [0x82, 126, 255, 255]);
    assert_eq!(header(65_536), [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(header(25_165_856), [0x82, 127, 0, 0, 0, 0, 1, 0x80, 0, 32]);
}

#[test]
fn close_and_pong_frames_are_whole() {
    assert_eq!(
        close_frame(Some(1009), "big"),
        [0x88, 5, 0x03, 0xf1, b'b', b'i', b'g']
    );
    assert_eq!(close_frame(None, "lost"), [0x88, 0]);
    assert_eq!(
        close_frame(Some(1000), &"x".repeat(200)).len(),
        2 + MAX_CONTROL_BYTES
    );
    assert_eq!(pong_frame(b"ab"), [0x8a, 2, b'a', b'b']);
}

#[test]
fn texts_fragments_and_controls_between_them_are_read() {
    let mut bytes = frame(TEXT, b"one");
    bytes.extend(frame(1, b"t"));
    bytes.extend(frame(PING, b"p"));
    bytes.extend(frame(0, b""));
    bytes.extend(frame(FIN | 10, b"pong"));
    bytes.extend(frame(FIN, b"wo"));
    bytes.extend(frame(TEXT, b""));
    bytes.extend(frame(FIN | 8, &[0x03, 0xe8, b'b', b'y', b'e']));
    let expected = vec![
        ClientEvent::Text("one".into()),
        ClientEvent::Ping(b"p".to_vec()),
        ClientEvent::Pong,
        ClientEvent::Text("two".into()),
        ClientEvent::Text(String::new()),
        ClientEvent::Close(Some(1000)),
    ];
    for step in [1, 2, 3, 7, usize::MAX] {
        assert_eq!(
            read_all(&bytes, step),
            (expected.clone(), None),
            "pieces of {step}"
        );
    }
}

#[test]
fn a_message_of_1024_bytes_is_the_longest() {
    let (events, end) = read_all(&frame(TEXT, &[b'x'; 1024]), usize::MAX);
    assert_eq!((events, end), (vec![ClientEvent::Text("x".repeat(1024))], None));
    assert_eq!(
        ends_with(&frame(TEXT, &[b'x'; 1025])),
        Some(CloseReason::TooLarge)
    );
    let header_only = &frame(TEXT, &[b'x'; 1025])[..8];
    assert_eq!(
        ends_with(header_only),
        Some(CloseReason::TooLarge),
        "refused before its payload arrives"
    );
    let fragments = [frame(1, &[b'x'; 1024]), frame(FIN, b"x")].concat();
    assert_eq!(ends_with(&fragments), Some(CloseReason::TooLarge));
    let mut huge = vec![TEXT, MASKED | LENGTH_64];
    huge.extend((i64::MAX as u64).to_be_bytes());
    huge.extend([0; 4]);
    assert_eq!(ends_with(&huge), Some(CloseReason::TooLarge));
}

#[test]
fn what_rfc_6455_forbids_is_refused() {
    let mut unmasked = frame(TEXT, b"x");
    unmasked[1] &= !MASKED;
    let mut padded = vec![TEXT, MASKED | LENGTH_16, 0, 5];
    padded.extend([0; 9]);
    let mut negative = vec![TEXT, MASKED | LENGTH_64];
    negative.extend(u64::MAX.to_be_bytes());
    negative.extend([0; 4]);
    for (name, bytes) in [
        ("unmasked", unmasked),
        ("reserved bit", frame(TEXT | 0x40, b"x")),
        ("reserved opcode", frame(FIN | 3, b"x")),
        ("reserved control opcode", frame(FIN | 11, b"x")),
        ("continuation of nothing", frame(FIN, b"x")),
        (
            "text inside a message",
            [frame(1, b"x"), frame(TEXT, b"y")].concat(),
        ),
        ("fragmented ping", frame(9, b"x")),
        ("ping over 125 bytes", frame(PING, &[0; 126])),
        ("longer form than needed", padded),
        ("a 64-bit length", negative),
        ("close of one byte", frame(FIN | 8, b"x")),
        ("close code never sent", frame(FIN | 8, &1005_u16.to_be_bytes())),
        ("close code out of range", frame(FIN | 8, &999_u16.to_be_bytes())),
    ] {
        assert_eq!(ends_with(&bytes), Some(CloseReason::ProtocolError), "{name}");
    }
    assert_eq!(ends_with(&frame(FIN | 2, b"x")), Some(CloseReason::NotText));
    assert_eq!(ends_with(&frame(TEXT, b"\xff")), Some(CloseReason::NotUtf8));
    assert_eq!(
        ends_with(&frame(FIN | 8, &[0x03, 0xe8, 0xff])),
        Some(CloseReason::NotUtf8)
    );
    let split = [
        frame(1, "é".as_bytes().split_at(1).0),
        frame(FIN, "é".as_bytes().split_at(1).1),
    ]
    .concat();
    assert_eq!(
        read_all(&split, 1).0,
        [ClientEvent::Text("é".into())],
        "UTF-8 is judged whole"
    );
}

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![6 => Just(TEXT), 2 => Just(1), 2 => Just(FIN), 1 => Just(PING), 1 => any::<u8>()];
    let frames = (first, proptest::collection::vec(any::<u8>(), 0..300))
        .prop_map(|(first, payload)| frame(first, &payload));
    let ascii = proptest::collection::vec(32..127_u8, 0..600).prop_map(|payload| frame(TEXT, &payload));
    let noise = proptest::collection::vec(any::<u8>(), 0..20);
    let pieces = prop_oneof![4 => frames, 8 => ascii, 1 => noise];
    proptest::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_says_the_same(bytes in some_bytes(), step in 1..40_usize) {
        let whole = read_all(&bytes, usize::MAX);
        prop_assert_eq!(&read_all(&bytes, step), &whole);
        for event in whole.0 {
            if let ClientEvent::Text(text) = event {
                prop_assert!(text.len() <= MAX_CLIENT_MESSAGE_BYTES);
            }
        }
    }
}
