//! Text of agents and tasks, made fit for terminal cells: cleaned, measured, cut, wrapped.
//!
//! Widths are terminal cells as ratatui counts them, never chars. It does not know styles, apart
//! from `Span`s that are measured elsewhere. Line breaking follows the simple part of UAX 14:
//! between words, around wide glyphs, and no line begins with a closing mark.

#[cfg(test)]
mod tests;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Marks that must not begin a line; they hang at the end of the previous one.
const CLOSING_MARKS: &str = "、。，．：；？！）］｝〕〉》」』】’”…·,.;:?!)]}";

/// Width of `text` in terminal cells.
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// `text` without what a terminal would obey or what would hide or reorder glyphs: control
/// characters, escape sequences' ESC, bidirectional overrides, zero-width joiners, variation
/// selectors, tags. Line ends stay, tabs become a space.
pub fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' => Some('\n'),
            '\t' => Some(' '),
            c if c.is_control() => None,
            '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}' => None,
            c => Some(c),
        })
        .collect()
}

/// `text` cleaned and on one line: runs of white space become one space.
pub fn one_line(text: &str) -> String {
    let cleaned = clean(text);
    let mut line = String::with_capacity(cleaned.len());
    for word in cleaned.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The longest start of `text` that fits into `cells`, with an ellipsis where something is lost.
pub fn fit(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    if cells == 0 {
        return String::new();
    }
    let mut line = String::new();
    let mut used = 0;
    for glyph in text.graphemes(true) {
        let glyph_cells = UnicodeWidthStr::width(glyph);
        if used + glyph_cells > cells - 1 {
            break;
        }
        line.push_str(glyph);
        used += glyph_cells;
    }
    line.push('…');
    line
}

/// As many whole words of `text`, on one line, as fit into `cells`, with an ellipsis where some are
/// lost; empty where not one fits.
pub fn fit_words(text: &str, cells: usize) -> String {
    let line = one_line(text);
    if width(&line) <= cells {
        return line;
    }
    let mut kept = String::new();
    for word in line.split(' ') {
        let with = if kept.is_empty() {
            word.to_owned()
        } else {
            format!("{kept} {word}")
        };
        if width(&with) + 2 > cells {
            break;
        }
        kept = with;
    }
    if kept.is_empty() {
        return kept;
    }
    kept + " …"
}

/// The first of `forms` that fits into `cells`, else the last one, cut.
pub fn first_fit(forms: &[String], cells: usize) -> String {
    let fits = forms.iter().find(|form| width(form) <= cells);
    match (fits, forms.last()) {
        (Some(form), _) => form.clone(),
        (None, Some(shortest)) => fit(shortest, cells),
        (None, None) => String::new(),
    }
}

/// `text` cut and padded with spaces to exactly `cells`.
pub fn pad(text: &str, cells: usize) -> String {
    let mut line = fit(text, cells);
    let used = width(&line);
    line.extend(std::iter::repeat_n(' ', cells.saturating_sub(used)));
    line
}

/// `text` cut and padded on the left to exactly `cells`.
pub fn pad_left(text: &str, cells: usize) -> String {
    let line = fit(text, cells);
    let mut padded = " ".repeat(cells.saturating_sub(width(&line)));
    padded.push_str(&line);
    padded
}

/// Cleans `text` and breaks it into lines of at most `cells`. A wide glyph is never halved; a
/// glyph wider than `cells` is dropped.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    if cells == 0 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for paragraph in clean(text).split('\n') {
        wrap_paragraph(paragraph, cells, &mut lines);
    }
    lines
}

fn wrap_paragraph(paragraph: &str, cells: usize, lines: &mut Vec<String>) {
    let mut line = String::new();
    let mut used = 0;
    for piece in paragraph.split_word_bounds() {
        let piece_cells = width(piece);
        if used + piece_cells <= cells {
            line.push_str(piece);
            used += piece_cells;
        } else if piece.trim().is_empty() {
            flush(&mut line, &mut used, lines);
        } else if piece_cells <= cells && !begins_with_closing_mark(piece) {
            flush(&mut line, &mut used, lines);
            line.push_str(piece);
            used = piece_cells;
        } else {
            push_glyphs(piece, cells, &mut line, &mut used, lines);
        }
    }
    lines.push(line.trim_end().to_owned());
}

/// Adds `piece` glyph by glyph, breaking where the line is full; a closing mark takes the last
/// glyph of the full line with it, and the closing marks between them.
fn push_glyphs(
    piece: &str,
    cells: usize,
    line: &mut String,
    used: &mut usize,
    lines: &mut Vec<String>,
) {
    for glyph in piece.graphemes(true) {
        let glyph_cells = UnicodeWidthStr::width(glyph);
        if glyph_cells > cells {
            continue;
        }
        if *used + glyph_cells > cells {
            let carried = carried_glyphs(glyph, line);
            flush(line, used, lines);
            line.push_str(&carried);
            *used = width(&carried);
            if *used + glyph_cells > cells {
                flush(line, used, lines);
            }
        }
        line.push_str(glyph);
        *used += glyph_cells;
    }
}

/// If `next` is a closing mark, removes and returns the end of `line` from its last glyph that
/// may begin a line, or from the beginning of that glyph's word, unless that would empty the
/// line.
fn carried_glyphs(next: &str, line: &mut String) -> String {
    if !begins_with_closing_mark(next) {
        return String::new();
    }
    let last = line
        .grapheme_indices(true)
        .rev()
        .find(|(_, glyph)| !begins_with_closing_mark(glyph));
    match last {
        Some((start, glyph)) if start > 0 => {
            let word = word_start(line, start, glyph);
            line.split_off(if word > 0 { word } else { start })
        }
        _ => String::new(),
    }
}

/// Where the word begins that `glyph` at `start` is the end of; a wide glyph is its own word.
fn word_start(line: &str, start: usize, glyph: &str) -> usize {
    if UnicodeWidthStr::width(glyph) != 1 {
        return start;
    }
    let before = line[..start].grapheme_indices(true).rev();
    let same_word = before.take_while(|(_, glyph)| width(glyph) == 1 && !glyph.trim().is_empty());
    same_word.last().map_or(start, |(first, _)| first)
}

fn begins_with_closing_mark(piece: &str) -> bool {
    piece
        .chars()
        .next()
        .is_some_and(|c| CLOSING_MARKS.contains(c))
}

fn flush(line: &mut String, used: &mut usize, lines: &mut Vec<String>) {
    lines.push(line.trim_end().to_owned());
    line.clear();
    *used = 0;
}
