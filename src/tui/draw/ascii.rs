//! The screen in ASCII: frames, charts, bars and marks that are drawn in other characters get
//! the nearest one there is. What people and models wrote stays as it is.

use ratatui::buffer::Buffer;

/// Marks and what stands for them.
const MARKS: [(char, char); 33] = [
    ('▸', '>'),
    ('▹', '>'),
    ('…', '~'),
    ('→', '>'),
    ('←', '<'),
    ('↑', '^'),
    ('↓', 'v'),
    ('·', '.'),
    ('•', '*'),
    ('●', '*'),
    ('○', 'o'),
    ('◆', '*'),
    ('◇', 'o'),
    ('▲', '^'),
    ('▼', 'v'),
    ('▶', '>'),
    ('◀', '<'),
    ('⏎', '\\'),
    ('␣', '_'),
    ('✓', '+'),
    ('✗', 'x'),
    ('×', 'x'),
    ('±', '~'),
    ('≥', '>'),
    ('≤', '<'),
    ('—', '-'),
    ('–', '-'),
    ('“', '"'),
    ('”', '"'),
    ('’', '\''),
    ('≈', '~'),
    ('Δ', 'd'),
    ('⚠', '!'),
];

/// Rows of a braille cell from top to bottom: bits of its dots, and the character of a line there.
const BRAILLE_ROWS: [(u32, char); 4] = [(0x09, '\''), (0x12, '-'), (0x24, '.'), (0xc0, '_')];

/// Replaces what is drawn.
pub(super) fn simplify(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let mut chars = cell.symbol().chars();
        if let (Some(drawn), None) = (chars.next(), chars.next())
            && let Some(plain) = plain(drawn)
        {
            cell.set_char(plain);
        }
    }
}

/// The character that stands for a drawn one; nothing for text.
fn plain(drawn: char) -> Option<char> {
    match drawn {
        '─' | '━' | '╌' | '╍' | '┄' | '┅' | '┈' | '┉' | '╴' | '╶' | '╸' | '╺' => {
            Some('-')
        }
        '│' | '┃' | '║' | '╎' | '╏' | '┆' | '┇' | '┊' | '┋' | '╵' | '╷' | '╹' | '╻' => {
            Some('|')
        }
        '\u{2580}' => Some('"'),
        '\u{2581}'..='\u{2583}' => Some('_'),
        '═' | '\u{2584}'..='\u{2587}' => Some('='),
        '\u{2500}'..='\u{257f}' => Some('+'),
        '\u{2589}'..='\u{258f}' => Some('|'),
        '\u{2588}'
        | '\u{2590}'..='\u{259f}'
        | '\u{1fb00}'..='\u{1fb3b}'
        | '\u{1cd00}'..='\u{1cde5}' => Some('#'),
        '\u{2800}'..='\u{28ff}' => Some(braille(drawn as u32 - 0x2800)),
        _ => MARKS
            .iter()
            .find(|(mark, _)| *mark == drawn)
            .map(|(_, plain)| *plain),
    }
}

/// Dots in one row are a line at its height; in several, a slope.
fn braille(bits: u32) -> char {
    let rows: Vec<char> = BRAILLE_ROWS
        .iter()
        .filter(|(row, _)| bits & row != 0)
        .map(|(_, line)| *line)
        .collect();
    match rows[..] {
        [] => ' ',
        [line] => line,
        [_, _] => ':',
        _ => '|',
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_is_drawn_becomes_ascii_and_text_stays() {
        for drawn in "─━│┃╭╮╰╯┏┓┗┛█▀▄▌▐⣿⠁⡀→…·".chars()
        {
            assert!(plain(drawn).is_some_and(|c| c.is_ascii()), "{drawn}");
        }
        for text in "aZ9上标é₂".chars() {
            assert_eq!(plain(text), None, "{text}");
        }
        assert_eq!(plain('⠉'), Some('\''));
        assert_eq!(plain('⣀'), Some('_'));
        assert_eq!(plain('⠀'), Some(' '));
    }
}
