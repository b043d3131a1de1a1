//! What kind of recording a file is, told from its first bytes and never from its name.

/// How a recording is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// H.264 NAL units behind start codes (ITU-T H.264 Annex B).
    AnnexB,
    /// ISO base media: MP4, MOV.
    Mp4,
    /// Matroska or `WebM`.
    Matroska,
}

/// How much of a file is looked at: a start in the middle of a stream finds its next SPS within this.
pub const HEAD_BYTES: usize = 4 * 1024 * 1024;

/// `profile_idc` values of ITU-T H.264 Annexes A, G, H and I.
const PROFILES: [u8; 14] = [44, 66, 77, 83, 86, 88, 100, 110, 118, 122, 128, 134, 138, 244];
/// Box types an ISO media file may start with.
const FIRST_BOXES: [&[u8; 4]; 7] = [b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp"];

/// Names the container of a file that starts with `head`.
///
/// # Errors
/// What the file seems to be instead, to be read after "the file holds no H.264: ".
pub fn container(head: &[u8]) -> Result<Container, &'static str> {
    if head.starts_with(&[0x1A, 0x45, 0xDF, 0xA3]) {
        return Ok(Container::Matroska);
    }
    if head
        .get(4..8)
        .is_some_and(|kind| FIRST_BOXES.iter().any(|known| *known == kind))
    {
        return Ok(Container::Mp4);
    }
    if let Some(other) = foreign(head) {
        return Err(other);
    }
    let mut hevc = false;
    for unit in start_codes(head) {
        match unit {
            [header, profile, ..] if is_sps(*header) && PROFILES.contains(profile) => {
                return Ok(Container::AnnexB);
            }
            // An HEVC parameter set: types 32 to 34, layer 0, temporal id 1.
            [0x40 | 0x42 | 0x44, 0x01, ..] => hevc = true,
            _ => {}
        }
    }
    Err(if hevc {
        "it looks like raw HEVC (H.265)"
    } else {
        "it is neither Annex B H.264 nor MP4 nor Matroska"
    })
}

/// Length of a packet of an MPEG transport stream (ISO/IEC 13818-1 section 2.4.3.2).
const TS_PACKET: usize = 188;

/// Containers that are not read. The first two hold H.264 behind its own start codes, cut into packets: what lies
/// between the start codes is no access unit.
fn foreign(head: &[u8]) -> Option<&'static str> {
    let synced = |packets: usize| (0..packets).all(|n| head.get(n * TS_PACKET) == Some(&0x47));
    if synced(head.len().div_ceil(TS_PACKET).min(5)) && head.len() > TS_PACKET {
        Some("it looks like an MPEG transport stream; repack it as MP4 or Matroska")
    } else if head.starts_with(&[0, 0, 1, 0xBA]) {
        Some("it looks like an MPEG program stream; repack it as MP4 or Matroska")
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"AVI ") {
        Some("it looks like an AVI file; repack it as MP4 or Matroska")
    } else if head.starts_with(b"FLV\x01") {
        Some("it looks like a Flash video; repack it as MP4 or Matroska")
    } else {
        None
    }
}

/// NAL unit type 7 with the reference bits that a parameter set must carry.
fn is_sps(header: u8) -> bool {
    matches!(header, 0x27 | 0x47 | 0x67)
}

/// What follows each three-byte start code.
fn start_codes(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = bytes
        .windows(3)
        .enumerate()
        .filter(|(_, three)| *three == [0, 0, 1]);
    starts.filter_map(|(at, _)| bytes.get(at + 3..))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `head` followed by an SPS behind its start code, as every one of these containers may hold it.
    fn holding_an_sps(head: &[u8]) -> Vec<u8> {
        [head, b"\0\0\0\x01\x67\x42\xc0\x1e"].concat()
    }

    #[test]
    fn other_containers_are_named_though_they_hold_h264() {
        let mut packet = [0xFF; TS_PACKET];
        packet[0] = 0x47;
        let cases: [(&[u8], &str); 4] = [
            (&packet.repeat(3), "an MPEG transport stream"),
            (&[0, 0, 1, 0xBA, 0x44], "an MPEG program stream"),
            (b"RIFF\x10\0\0\0AVI LIST", "an AVI file"),
            (b"FLV\x01\x05", "a Flash video"),
        ];
        for (head, name) in cases {
            let mut file = holding_an_sps(head);
            if head.len() > TS_PACKET {
                file.resize(4 * TS_PACKET, 0);
                file[3 * TS_PACKET..][..8].copy_from_slice(b"\x47\0\0\x01\x67\x42\xc0\x1e");
            }
            let refusal = container(&file).expect_err(name);
            assert!(refusal.contains(name), "{name}: {refusal}");
        }
        // One letter G at the start is no transport stream.
        assert_eq!(container(&holding_an_sps(b"G")), Ok(Container::AnnexB));
    }

    #[test]
    fn containers_are_told_by_content() {
        let annex_b = b"\0\0\0\x01\x09\x10\0\0\0\x01\x67\x42\xc0\x1e";
        let dirty = b"garbage\0\0\x01\x41junk\0\0\x01\x27\x64\0\x28";
        let cases: [(&[u8], _); 6] = [
            (annex_b, Ok(Container::AnnexB)),
            (dirty, Ok(Container::AnnexB)),
            (b"\0\0\0\x20ftypisom", Ok(Container::Mp4)),
            (b"\x1a\x45\xdf\xa3\x01", Ok(Container::Matroska)),
            (
                b"\0\0\0\x01\x40\x01\x0c\0\0\0\x01\x42\x01\x01",
                Err("it looks like raw HEVC (H.265)"),
            ),
            (
                b"just some text",
                Err("it is neither Annex B H.264 nor MP4 nor Matroska"),
            ),
        ];
        for (head, expected) in cases {
            assert_eq!(container(head), expected, "{head:?}");
        }
    }
}
