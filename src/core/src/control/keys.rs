//! Key names and the codes they stand for.
//!
//! Codes are Windows virtual-key codes with PC set-1 scan codes. Modifiers use the side-specific codes
//! (0xA0..=0xA5), because some hosts have no entry for the generic ones.

/// A physical key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Windows virtual-key code.
    pub vk: u8,
    /// PC set-1 scan code without its prefix; 0 when the key has none that is unambiguous.
    pub scan_code: u8,
    /// True when the scan code carries the E0 prefix.
    pub extended: bool,
}

const fn key(vk: u8, scan_code: u8) -> Key {
    Key {
        vk,
        scan_code,
        extended: false,
    }
}

const fn extended(vk: u8, scan_code: u8) -> Key {
    Key {
        vk,
        scan_code,
        extended: true,
    }
}

/// Every key with its name; further names of the same key follow it. Names are compared without regard to case.
pub const KEYS: &[(&str, Key)] = &[
    ("A", key(0x41, 0x1e)),
    ("B", key(0x42, 0x30)),
    ("C", key(0x43, 0x2e)),
    ("D", key(0x44, 0x20)),
    ("E", key(0x45, 0x12)),
    ("F", key(0x46, 0x21)),
    ("G", key(0x47, 0x22)),
    ("H", key(0x48, 0x23)),
    ("I", key(0x49, 0x17)),
    ("J", key(0x4a, 0x24)),
    ("K", key(0x4b, 0x25)),
    ("L", key(0x4c, 0x26)),
    ("M", key(0x4d, 0x32)),
    ("N", key(0x4e, 0x31)),
    ("O", key(0x4f, 0x18)),
    ("P", key(0x50, 0x19)),
    ("Q", key(0x51, 0x10)),
    ("R", key(0x52, 0x13)),
    ("S", key(0x53, 0x1f)),
    ("T", key(0x54, 0x14)),
    ("U", key(0x55, 0x16)),
    ("V", key(0x56, 0x2f)),
    ("W", key(0x57, 0x11)),
    ("X", key(0x58, 0x2d)),
    ("Y", key(0x59, 0x15)),
    ("Z", key(0x5a, 0x2c)),
    ("0", key(0x30, 0x0b)),
    ("1", key(0x31, 0x02)),
    ("2", key(0x32, 0x03)),
    ("3", key(0x33, 0x04)),
    ("4", key(0x34, 0x05)),
    ("5", key(0x35, 0x06)),
    ("6", key(0x36, 0x07)),
    ("7", key(0x37, 0x08)),
    ("8", key(0x38, 0x09)),
    ("9", key(0x39, 0x0a)),
    ("F1", key(0x70, 0x3b)),
    ("F2", key(0x71, 0x3c)),
    ("F3", key(0x72, 0x3d)),
    ("F4", key(0x73, 0x3e)),
    ("F5", key(0x74, 0x3f)),
    ("F6", key(0x75, 0x40)),
    ("F7", key(0x76, 0x41)),
    ("F8", key(0x77, 0x42)),
    ("F9", key(0x78, 0x43)),
    ("F10", key(0x79, 0x44)),
    ("F11", key(0x7a, 0x57)),
    ("F12", key(0x7b, 0x58)),
    ("F13", key(0x7c, 0x64)),
    ("F14", key(0x7d, 0x65)),
    ("F15", key(0x7e, 0x66)),
    ("F16", key(0x7f, 0x67)),
    ("F17", key(0x80, 0x68)),
    ("F18", key(0x81, 0x69)),
    ("F19", key(0x82, 0x6a)),
    ("F20", key(0x83, 0x6b)),
    ("F21", key(0x84, 0x6c)),
    ("F22", key(0x85, 0x6d)),
    ("F23", key(0x86, 0x6e)),
    ("F24", key(0x87, 0x76)),
    ("CTRL", key(0xa2, 0x1d)),
    ("CONTROL", key(0xa2, 0x1d)),
    ("CTRL_LEFT", key(0xa2, 0x1d)),
    ("CTRL_RIGHT", extended(0xa3, 0x1d)),
    ("ALT", key(0xa4, 0x38)),
    ("OPTION", key(0xa4, 0x38)),
    ("ALT_LEFT", key(0xa4, 0x38)),
    ("ALT_RIGHT", extended(0xa5, 0x38)),
    ("ALTGR", extended(0xa5, 0x38)),
    ("SHIFT", key(0xa0, 0x2a)),
    ("SHIFT_LEFT", key(0xa0, 0x2a)),
    ("SHIFT_RIGHT", key(0xa1, 0x36)),
    ("META", extended(0x5b, 0x5b)),
    ("WIN", extended(0x5b, 0x5b)),
    ("COMMAND", extended(0x5b, 0x5b)),
    ("SUPER", extended(0x5b, 0x5b)),
    ("META_LEFT", extended(0x5b, 0x5b)),
    ("META_RIGHT", extended(0x5c, 0x5c)),
    ("ENTER", key(0x0d, 0x1c)),
    ("RETURN", key(0x0d, 0x1c)),
    ("ESC", key(0x1b, 0x01)),
    ("ESCAPE", key(0x1b, 0x01)),
    ("TAB", key(0x09, 0x0f)),
    ("SPACE", key(0x20, 0x39)),
    ("BACKSPACE", key(0x08, 0x0e)),
    ("DELETE", extended(0x2e, 0x53)),
    ("DEL", extended(0x2e, 0x53)),
    ("INSERT", extended(0x2d, 0x52)),
    ("HOME", extended(0x24, 0x47)),
    ("END", extended(0x23, 0x4f)),
    ("PAGE_UP", extended(0x21, 0x49)),
    ("PAGEUP", extended(0x21, 0x49)),
    ("PAGE_DOWN", extended(0x22, 0x51)),
    ("PAGEDOWN", extended(0x22, 0x51)),
    ("LEFT", extended(0x25, 0x4b)),
    ("ARROW_LEFT", extended(0x25, 0x4b)),
    ("UP", extended(0x26, 0x48)),
    ("ARROW_UP", extended(0x26, 0x48)),
    ("RIGHT", extended(0x27, 0x4d)),
    ("ARROW_RIGHT", extended(0x27, 0x4d)),
    ("DOWN", extended(0x28, 0x50)),
    ("ARROW_DOWN", extended(0x28, 0x50)),
    ("MENU", extended(0x5d, 0x5d)),
    ("APPS", extended(0x5d, 0x5d)),
    ("PRINT_SCREEN", extended(0x2c, 0x37)),
    ("PRINTSCREEN", extended(0x2c, 0x37)),
    // Pause and Num Lock share scan code 0x45; only Num Lock keeps it.
    ("PAUSE", key(0x13, 0x00)),
    ("CAPS_LOCK", key(0x14, 0x3a)),
    ("CAPSLOCK", key(0x14, 0x3a)),
    ("NUM_LOCK", key(0x90, 0x45)),
    ("NUMLOCK", key(0x90, 0x45)),
    ("SCROLL_LOCK", key(0x91, 0x46)),
    ("SCROLLLOCK", key(0x91, 0x46)),
    ("NUMPAD0", key(0x60, 0x52)),
    ("NUMPAD1", key(0x61, 0x4f)),
    ("NUMPAD2", key(0x62, 0x50)),
    ("NUMPAD3", key(0x63, 0x51)),
    ("NUMPAD4", key(0x64, 0x4b)),
    ("NUMPAD5", key(0x65, 0x4c)),
    ("NUMPAD6", key(0x66, 0x4d)),
    ("NUMPAD7", key(0x67, 0x47)),
    ("NUMPAD8", key(0x68, 0x48)),
    ("NUMPAD9", key(0x69, 0x49)),
    ("NUMPAD_MULTIPLY", key(0x6a, 0x37)),
    ("NUMPAD_ADD", key(0x6b, 0x4e)),
    ("NUMPAD_SUBTRACT", key(0x6d, 0x4a)),
    ("NUMPAD_DECIMAL", key(0x6e, 0x53)),
    ("NUMPAD_DIVIDE", extended(0x6f, 0x35)),
    ("NUMPAD_ENTER", extended(0x0d, 0x1c)),
    ("SEMICOLON", key(0xba, 0x27)),
    ("EQUAL", key(0xbb, 0x0d)),
    ("COMMA", key(0xbc, 0x33)),
    ("MINUS", key(0xbd, 0x0c)),
    ("PERIOD", key(0xbe, 0x34)),
    ("SLASH", key(0xbf, 0x35)),
    ("BACKQUOTE", key(0xc0, 0x29)),
    ("BRACKET_LEFT", key(0xdb, 0x1a)),
    ("BACKSLASH", key(0xdc, 0x2b)),
    ("BRACKET_RIGHT", key(0xdd, 0x1b)),
    ("QUOTE", key(0xde, 0x28)),
    ("INTL_BACKSLASH", key(0xe2, 0x56)),
    ("VOLUME_MUTE", extended(0xad, 0x20)),
    ("VOLUME_DOWN", extended(0xae, 0x2e)),
    ("VOLUME_UP", extended(0xaf, 0x30)),
    ("MEDIA_NEXT", extended(0xb0, 0x19)),
    ("MEDIA_PREVIOUS", extended(0xb1, 0x10)),
    ("MEDIA_STOP", extended(0xb2, 0x24)),
    ("MEDIA_PLAY_PAUSE", extended(0xb3, 0x22)),
    ("BROWSER_BACK", extended(0xa6, 0x6a)),
    ("BROWSER_FORWARD", extended(0xa7, 0x69)),
    ("BROWSER_REFRESH", extended(0xa8, 0x67)),
    ("BROWSER_HOME", extended(0xac, 0x32)),
];

impl Key {
    /// The key called `name`, or `None`.
    pub fn named(name: &str) -> Option<Self> {
        KEYS.iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, key)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn names_are_unique_upper_case() {
        let mut seen = HashMap::new();
        for (name, key) in KEYS {
            assert_eq!(*name, name.to_ascii_uppercase());
            assert!(seen.insert(name, key).is_none(), "{name} appears twice");
        }
    }

    #[test]
    fn a_virtual_key_has_one_scan_code_per_prefix() {
        let mut codes: HashMap<(u8, bool), u8> = HashMap::new();
        for (name, key) in KEYS {
            let first = *codes.entry((key.vk, key.extended)).or_insert(key.scan_code);
            assert_eq!(first, key.scan_code, "{name}");
        }
    }

    #[test]
    fn two_keys_never_share_a_scan_code() {
        let mut keys: HashMap<(u8, bool), u8> = HashMap::new();
        for (name, key) in KEYS.iter().filter(|(_, key)| key.scan_code != 0) {
            let first = *keys.entry((key.scan_code, key.extended)).or_insert(key.vk);
            assert_eq!(first, key.vk, "{name}");
        }
    }

    #[test]
    fn modifiers_use_side_specific_codes() {
        for (name, vk) in [("CTRL", 0xa2), ("alt", 0xa4), ("Shift", 0xa0), ("META", 0x5b)] {
            assert_eq!(Key::named(name).map(|key| key.vk), Some(vk));
        }
        assert_eq!(Key::named("HYPER"), None);
    }
}
