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
