//! Modes of the terminal that the console sets, and the bytes that undo all of them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Alternate screen, pastes as one, no cursor.
pub(in crate::tui) const ENTER: &[u8] = b"\x1b[?1049h\x1b[?2004h\x1b[?25l";
/// Clicks and wheel, no moves.
pub(in crate::tui) const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
/// No mouse.
pub(in crate::tui) const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// Asks how large a cell is.
pub(in crate::tui) const ASK_CELL: &[u8] = b"\x1b[16t";

/// Pictures that the terminal keeps, by id. A mutex, as a panic of any thread must know them.
static IMAGES: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Notes which pictures the terminal keeps from now on.
pub(in crate::tui) fn note_images(kept: impl IntoIterator<Item = u32>) {
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    images.clear();
    images.extend(kept);
}

/// Ends whatever was under way, deletes pictures and undoes every mode.
pub(in crate::tui) fn restore_bytes() -> Vec<u8> {
    // A picture that was cut short ends with this; elsewhere it means nothing.
    let mut bytes = b"\x1b\\\x1b[?2026l".to_vec();
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    for id in std::mem::take(&mut *images) {
        bytes.extend_from_slice(&crate::tui::picture::delete_image(id));
    }
    bytes.extend_from_slice(MOUSE_OFF);
    bytes.extend_from_slice(b"\x1b[m\x1b[?2004l\x1b[?1049l\x1b[?25h");
    bytes
}
