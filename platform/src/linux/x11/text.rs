//! Typing any character: on the key that has it, or on a key that nobody uses, which gets it as its symbol.
//!
//! A program reads the symbols of a key when it handles the key press, not when the press is made. A key must
//! therefore keep its symbol until every program had time to look: symbols stay on their keys as long as there are
//! others, and a key gets a new one only after a pause.

use std::collections::HashMap;

use x11rb::connection::Connection;
use x11rb::protocol::xproto::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

use crate::desktop::DesktopError;

/// No symbol (`NoSymbol` of the X protocol).
const NONE: u32 = 0;

/// The keysym that stands for `character`; `None` for control characters no keyboard types.
pub(super) fn keysym(character: char) -> Option<u32> {
    match character {
        '\n' => Some(0xff0d),
        '\t' => Some(0xff09),
        '\u{8}' => Some(0xff08),
        '\u{1b}' => Some(0xff1b),
        // Latin-1 keysyms are the characters themselves, all others are numbered from 0x0100_0000.
        ' '..='~' | '\u{a0}'..='\u{ff}' => Some(character.into()),
        '\u{100}'.. => Some(0x0100_0000 | u32::from(character)),
        _ => None,
    }
}

/// How to type a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stroke {
    /// The key to press.
    pub(super) keycode: u8,
    /// True when Shift has to be held.
    pub(super) shift: bool,
}

/// A key without a use of its own.
struct Spare {
    keycode: u8,
    symbol: u32,
    /// Which run of typing used it last.
    run: u64,
}

/// Every key that types: those of the layout, and those without a use of their own with what is on them now.
pub(super) struct TypingKeys {
    spare: Vec<Spare>,
    run: u64,
    layout: HashMap<u32, Stroke>,
}

impl TypingKeys {
    /// The keys of `connection`.
    pub(super) fn find(connection: &RustConnection) -> Result<Self, DesktopError> {
        let spare = rows(connection)?
            .into_iter()
            .filter(|(_, symbols)| symbols.iter().all(|symbol| *symbol == NONE))
            .map(|(keycode, _)| Spare {
                keycode,
                symbol: NONE,
                run: 0,
            });
        Ok(Self {
            spare: spare.collect(),
            run: 1,
            layout: HashMap::new(),
        })
    }

    /// Looks at the layout as it is now; forgets it when it is not the `first` of several that is in use, because
    /// only that one can be read without knowing its rules.
    pub(super) fn look(&mut self, connection: &RustConnection, first: bool) -> Result<(), DesktopError> {
        self.layout.clear();
        if !first {
            return Ok(());
        }
        for (keycode, symbols) in rows(connection)? {
            if self.spare.iter().any(|spare| spare.keycode == keycode) {
                continue;
            }
            for (symbol, shift) in symbols.into_iter().zip([false, true]) {
                let stroke = Stroke { keycode, shift };
                self.layout.entry(symbol).or_insert(stroke);
            }
        }
        Ok(())
    }

    /// How to type `symbol`, on a spare key if need be; `None` until the next [`pause`](Self::pause).
    pub(super) fn stroke(
        &mut self,
        connection: &RustConnection,
        symbol: u32,
    ) -> Result<Option<Stroke>, DesktopError> {
        if let Some(stroke) = self.layout.get(&symbol) {
            return Ok(Some(*stroke));
        }
        let plain = |keycode| {
            Some(Stroke {
                keycode,
                shift: false,
            })
        };
        let run = self.run;
        if let Some(key) = self.spare.iter_mut().find(|key| key.symbol == symbol) {
            key.run = run;
            return Ok(plain(key.keycode));
        }
        let oldest = self.spare.iter_mut().min_by_key(|key| key.run);
        let Some(key) = oldest.filter(|key| key.run < run) else {
            return Ok(None);
        };
        // The same symbol with and without Shift: nothing that is held or locked changes it.
        connection.change_keyboard_mapping(1, key.keycode, 2, &[symbol, symbol])?;
        (key.symbol, key.run) = (symbol, run);
        Ok(plain(key.keycode))
    }

    /// Enough time has passed: what was typed has been read, and keys may get new symbols.
    pub(super) fn pause(&mut self) {
        self.run += 1;
    }

    /// True when only the layout's own characters could be typed.
    pub(super) fn is_empty(&self) -> bool {
        self.spare.is_empty()
    }

    /// Takes the symbols away again.
    pub(super) fn clear(&mut self, connection: &RustConnection) -> Result<(), DesktopError> {
        for key in self.spare.iter_mut().filter(|key| key.symbol != NONE) {
            connection.change_keyboard_mapping(1, key.keycode, 1, &[NONE])?;
            key.symbol = NONE;
        }
        Ok(())
    }
}

/// Every keycode with its symbols.
fn rows(connection: &RustConnection) -> Result<Vec<(u8, Vec<u32>)>, DesktopError> {
    let (first, last) = (connection.setup().min_keycode, connection.setup().max_keycode);
    let mapping = connection
        .get_keyboard_mapping(first, last - first + 1)?
        .reply()?;
    let width = usize::from(mapping.keysyms_per_keycode).max(1);
    let rows = mapping.keysyms.chunks(width).map(<[u32]>::to_vec);
    Ok((first..=last).zip(rows).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_become_the_symbols_programs_expect() {
        assert_eq!(keysym('a'), Some(0x61));
        assert_eq!(keysym('ß'), Some(0xdf));
        assert_eq!(keysym('я'), Some(0x0100_044f));
        assert_eq!(keysym('😀'), Some(0x0101_f600));
        assert_eq!(keysym('\n'), Some(0xff0d));
        assert_eq!(keysym('\u{7}'), None);
        assert_eq!(keysym('\u{7f}'), None);
    }
}
