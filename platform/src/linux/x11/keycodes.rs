//! From keys to X keycodes, for servers that number keys as Linux does.

use crossdesk_core::control::Key;

/// An X keycode is the key's number in Linux plus this (`xkeyboard-config`, rules `evdev`).
const OFFSET: u8 = 8;

/// Keys whose scan code carries the prefix E0, with their number in Linux (`linux/input-event-codes.h`).
const EXTENDED: [(u8, u8); 29] = [
    (0x10, 165),
    (0x19, 163),
    (0x1c, 96),
    (0x1d, 97),
    (0x20, 113),
    (0x22, 164),
    (0x24, 166),
    (0x2e, 114),
    (0x30, 115),
    (0x32, 172),
    (0x35, 98),
    (0x37, 99),
    (0x38, 100),
    (0x47, 102),
    (0x48, 103),
    (0x49, 104),
    (0x4b, 105),
    (0x4d, 106),
    (0x4f, 107),
    (0x50, 108),
    (0x51, 109),
    (0x52, 110),
    (0x53, 111),
    (0x5b, 125),
    (0x5c, 126),
    (0x5d, 127),
    (0x67, 173),
    (0x69, 159),
    (0x6a, 158),
];

/// `VK_PAUSE`, whose scan code is not one byte, and its number in Linux.
const PAUSE: (u8, u8) = (0x13, 119);

/// The X keycode of `key`; `None` for a key Linux has no number for.
pub(super) fn keycode(key: Key) -> Option<u8> {
    let linux = match (key.extended, key.scan_code) {
        _ if key.vk == PAUSE.0 => PAUSE.1,
        (true, code) => EXTENDED.iter().find(|(scan, _)| *scan == code)?.1,
        (false, code @ (0x01..=0x53 | 0x56..=0x58)) => code,
        // F13 to F23, and F24 apart from them.
        (false, code @ 0x64..=0x6e) => code - 0x64 + 183,
        (false, 0x76) => 194,
        _ => return None,
    };
    Some(linux + OFFSET)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossdesk_core::control::keys::KEYS;

    #[test]
    fn every_key_with_a_name_has_a_keycode_of_its_own() {
        let mut seen: Vec<(u8, Key)> = Vec::new();
        for (name, key) in KEYS {
            let code = keycode(*key).unwrap_or_else(|| panic!("{name}"));
            for (other, known) in &seen {
                assert!(*other != code || known == key, "{name}: {code}");
            }
            seen.push((code, *key));
        }
    }

    #[test]
    fn well_known_keys_are_where_the_rules_say() {
        let code = |name: &str| keycode(Key::named(name).expect(name));
        assert_eq!(code("ESC"), Some(9));
        assert_eq!(code("A"), Some(38));
        assert_eq!(code("CTRL_RIGHT"), Some(105));
        assert_eq!(code("UP"), Some(111));
        assert_eq!(code("META"), Some(133));
        assert_eq!(code("F24"), Some(202));
        assert_eq!(code("PAUSE"), Some(127));
    }
}
