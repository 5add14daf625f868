//! Which key gives which symbol: the X server's own map, and spare keys for what is not on it.
//!
//! A spare key has no symbols. Characters that no key gives are put on spare keys for as long as a
//! text takes, and each on another one as long as there are any: a program looks its keys up when
//! it comes to them, and what it finds must still be what was meant.

use std::collections::VecDeque;
use std::thread::sleep;
use std::time::Duration;

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, GetKeyboardMappingReply, KeyButMask};

use super::display::{Broken, DisplayError, Session};
use crate::action::keys;

/// Programs need this long to hear of a changed key. With 2 ms characters were lost in a GTK
/// editor, with 10 ms none.
const SETTLE: Duration = Duration::from_millis(20);

/// A program that is busy comes late to the last characters, and must find them on their keys.
const LINGER: Duration = Duration::from_millis(100);

/// Of keys with a shifted symbol the first two columns of the map count, which are the first
/// layout's.
const LEVELS: usize = 2;

const NO_SYMBOL: u32 = 0;
pub(super) const SHIFT: u32 = 0xffe1;
const KEYPAD_DIGITS: std::ops::RangeInclusive<u32> = 0xffaa..=0xffb9;

/// X's symbols (`keysymdef.h`, `XF86keysym.h`) of the keys that print nothing, by canonical name.
const NAMED: &[(&str, u32)] = &[
    ("ctrl", 0xffe3),
    ("shift", SHIFT),
    ("alt", 0xffe9),
    ("super", 0xffeb),
    ("enter", 0xff0d),
    ("esc", 0xff1b),
    ("tab", 0xff09),
    ("space", 0x20),
    ("backspace", 0xff08),
    ("delete", 0xffff),
    ("insert", 0xff63),
    ("home", 0xff50),
    ("end", 0xff57),
    ("pageup", 0xff55),
    ("pagedown", 0xff56),
    ("up", 0xff52),
    ("down", 0xff54),
    ("left", 0xff51),
    ("right", 0xff53),
    ("capslock", 0xffe5),
    ("numlock", 0xff7f),
    ("scrolllock", 0xff14),
    ("printscreen", 0xff61),
    ("pause", 0xff13),
    ("menu", 0xff67),
    ("volumeup", 0x1008_ff13),
    ("volumedown", 0x1008_ff11),
    ("volumemute", 0x1008_ff12),
    ("f1", 0xffbe),
    ("f2", 0xffbf),
    ("f3", 0xffc0),
    ("f4", 0xffc1),
    ("f5", 0xffc2),
    ("f6", 0xffc3),
    ("f7", 0xffc4),
    ("f8", 0xffc5),
    ("f9", 0xffc6),
    ("f10", 0xffc7),
    ("f11", 0xffc8),
    ("f12", 0xffc9),
];

/// Keys that only pyautogui has names for.
const PYAUTOGUI: &[(&str, u32)] = &[
    ("ctrlright", 0xffe4),
    ("shiftright", 0xffe2),
    ("altright", 0xffea),
    ("optionright", 0xffea),
    ("optionleft", 0xffe9),
    ("winright", 0xffec),
    ("num0", 0xffb0),
    ("num1", 0xffb1),
    ("num2", 0xffb2),
    ("num3", 0xffb3),
    ("num4", 0xffb4),
    ("num5", 0xffb5),
    ("num6", 0xffb6),
    ("num7", 0xffb7),
    ("num8", 0xffb8),
    ("num9", 0xffb9),
    ("multiply", 0xffaa),
    ("add", 0xffab),
    ("separator", 0xffac),
    ("subtract", 0xffad),
    ("decimal", 0xffae),
    ("divide", 0xffaf),
    ("clear", 0xff0b),
    ("select", 0xff60),
    ("execute", 0xff62),
    ("help", 0xff6a),
    ("f13", 0xffca),
    ("f14", 0xffcb),
    ("f15", 0xffcc),
    ("f16", 0xffcd),
    ("f17", 0xffce),
    ("f18", 0xffcf),
    ("f19", 0xffd0),
    ("f20", 0xffd1),
    ("f21", 0xffd2),
    ("f22", 0xffd3),
    ("f23", 0xffd4),
    ("f24", 0xffd5),
];

/// The symbol of a key by any of its names, ours or pyautogui's.
pub(super) fn symbol_of_key(name: &str) -> Option<u32> {
    let lower = name.to_ascii_lowercase();
    let of = |table: &[(&str, u32)], name: &str| {
        let row = table.iter().find(|(key, _)| *key == name);
        row.map(|(_, symbol)| *symbol)
    };
    if let Some(symbol) = of(PYAUTOGUI, &lower) {
        return Some(symbol);
    }
    let canonical = keys::canonical(name)?;
    let printed = || symbol_of_char(canonical.chars().next()?);
    of(NAMED, canonical).or_else(printed)
}

/// The symbol of a character; none for what is no character of a text.
pub(super) fn symbol_of_char(c: char) -> Option<u32> {
    match c {
        '\n' => Some(0xff0d),
        '\t' => Some(0xff09),
        '\u{8}' => Some(0xff08),
        '\u{1b}' => Some(0xff1b),
        '\u{7f}' => Some(0xffff),
        c if c.is_control() => None,
        // Latin-1 are their own symbols.
        ' '..='\u{ff}' => Some(c.into()),
        c => Some(0x0100_0000 | u32::from(c)),
    }
}

/// A key and whether it gives its symbol with shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) code: u8,
    pub(super) is_shifted: bool,
}

/// The map as it was found, and what was put on its spare keys.
pub(super) struct Keyboard<'a> {
    session: &'a Session,
    first: u8,
    map: GetKeyboardMappingReply,
    spare: Vec<u8>,
    /// Symbols on spare keys, the oldest first.
    lent: VecDeque<(u32, u8)>,
    has_caps_lock: bool,
}

impl<'a> Keyboard<'a> {
    /// The keyboard as it is now: anybody may have changed it.
    pub(super) fn read(session: &'a Session) -> Result<Self, Broken> {
        let setup = session.x.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let map = session.x.get_keyboard_mapping(first, last - first + 1)?;
        let modifiers = session.x.get_modifier_mapping()?;
        let pointer = session.x.query_pointer(session.root)?.reply()?;
        let (map, modifiers) = (map.reply()?, modifiers.reply()?);
        let columns = usize::from(map.keysyms_per_keycode).max(1);
        let symbols = map.keysyms.chunks(columns);
        let empty = (first..=last).zip(symbols).filter(|(code, symbols)| {
            symbols.iter().all(|symbol| *symbol == NO_SYMBOL) && !modifiers.keycodes.contains(code)
        });
        let spare = empty.map(|(code, _)| code).collect();
        Ok(Self {
            session,
            first,
            map,
            spare,
            lent: VecDeque::new(),
            has_caps_lock: pointer.mask.contains(KeyButMask::LOCK),
        })
    }

    /// Puts those of the symbols on spare keys that no key gives, as many as there are keys.
    pub(super) fn lend(&mut self, symbols: impl Iterator<Item = u32>) -> Result<(), Broken> {
        let mut is_changed = false;
        for symbol in symbols {
            let is_there = self.on_map(symbol).is_some() || self.on_loan(symbol).is_some();
            if is_there || self.lent.len() == self.spare.len() {
                continue;
            }
            self.put(symbol, self.spare[self.lent.len()])?;
            is_changed = true;
        }
        if is_changed {
            self.session.sync()?;
            sleep(SETTLE);
        }
        Ok(())
    }

    /// The key of a symbol. Where all spare keys are taken, the one taken longest gives way.
    pub(super) fn key(&mut self, symbol: u32) -> Result<Key, Broken> {
        let there = self.on_map(symbol).or_else(|| self.on_loan(symbol));
        if let Some(key) = there {
            return Ok(key);
        }
        let Some((_, code)) = self.lent.pop_front() else {
            let name = format!("symbol {symbol:#x}, and the keyboard has no spare key");
            return Err(DisplayError::NoKey { name }.into());
        };
        sleep(SETTLE);
        self.put(symbol, code)?;
        self.session.sync()?;
        sleep(SETTLE);
        Ok(Key {
            code,
            is_shifted: false,
        })
    }

    /// Takes back what was put on spare keys.
    pub(super) fn restore(&mut self) -> Result<(), Broken> {
        if self.lent.is_empty() {
            return Ok(());
        }
        self.session.sync()?;
        sleep(LINGER);
        for (_, code) in std::mem::take(&mut self.lent) {
            self.change(code, NO_SYMBOL)?;
        }
        self.session.sync()
    }

    fn put(&mut self, symbol: u32, code: u8) -> Result<(), Broken> {
        self.change(code, symbol)?;
        self.lent.push_back((symbol, code));
        Ok(())
    }

    fn change(&self, code: u8, symbol: u32) -> Result<(), Broken> {
        // The same with shift, which may be held.
        let x = &self.session.x;
        x.change_keyboard_mapping(1, code, LEVELS as u8, &[symbol; LEVELS])?;
        Ok(())
    }

    fn on_loan(&self, symbol: u32) -> Option<Key> {
        let (_, code) = self.lent.iter().find(|(lent, _)| *lent == symbol)?;
        Some(Key {
            code: *code,
            is_shifted: false,
        })
    }

    fn on_map(&self, symbol: u32) -> Option<Key> {
        // What these give depends on a lock.
        if KEYPAD_DIGITS.contains(&symbol) {
            return None;
        }
        let columns = usize::from(self.map.keysyms_per_keycode).max(1);
        (0..LEVELS.min(columns)).find_map(|level| {
            let mut keys = self.map.keysyms.chunks(columns);
            let at = keys.position(|symbols| symbols[level] == symbol)?;
            let symbols = &self.map.keysyms[at * columns..][..columns];
            // The lock swaps the two of a letter.
            let is_letter = char::from_u32(symbol).is_some_and(char::is_alphabetic);
            let is_swapped = self.has_caps_lock && is_letter && symbols.get(1) != symbols.first();
            Some(Key {
                code: self.first + at as u8,
                is_shifted: (level == 1) != is_swapped,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMED, symbol_of_char, symbol_of_key};
    use crate::action::keys;

    #[test]
    fn every_named_key_has_a_symbol() {
        for name in keys::all_named() {
            assert!(NAMED.iter().any(|(key, _)| *key == name), "{name}");
        }
    }

    // python: Xlib.XK.string_to_keysym(name)
    #[test]
    fn symbols_are_xs() {
        let table = [
            ("a", Some(0x61)),
            ("A", Some(0x61)),
            ("<", Some(0x3c)),
            ("return", Some(0xff0d)),
            ("ctrlright", Some(0xffe4)),
            ("num7", Some(0xffb7)),
            ("plus", Some(0x2b)),
            ("no such key", None),
        ];
        for (name, symbol) in table {
            assert_eq!(symbol_of_key(name), symbol, "{name}");
        }
        assert_eq!(symbol_of_char('é'), Some(0xe9));
        assert_eq!(symbol_of_char('你'), Some(0x0100_4f60));
        assert_eq!(symbol_of_char('\u{7}'), None);
    }
}
