//! What windows are made of: hit areas with a look. A window's widgets are made anew from
//! its application's state each time; nothing here remembers anything.

use super::canvas::{Canvas, Color, GLYPH_WIDTH_PX, Ink, Rect};
use super::icons::{Icon, draw_icon};
use super::theme::Palette;

/// Pitch of rows and columns in logical pixels: one image token of the model (two patches).
pub const CELL_PX: i32 = 28;

/// Offset of a target's middle from the left top corner of its cell. 28 k + 12 is a multiple
/// of 4, so the model's coordinate tokens name it exactly.
pub const CENTER_PX: i32 = 12;

/// Which part of an application a widget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A button of a toolbar or of the bottom row, by index.
    Button(usize),
    /// An item of the content: a character, a row, a file, a field.
    Item(usize),
    /// The empty part of the content.
    Blank,
    /// A place that things are dropped on.
    Bin,
    /// Confirms a question.
    Ok,
    /// Takes a question back.
    Cancel,
    /// The window's title bar.
    Title,
    /// Closes the window.
    Close,
}

/// How a widget looks.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// A button with a text; the accent color if it is the proposed one.
    Button {
        /// What stands on it.
        text: String,
        /// Whether it is the proposed one.
        accent: bool,
    },
    /// A square button with a picture.
    IconButton {
        /// The picture.
        icon: Icon,
        /// Whether it is pressed in.
        active: bool,
    },
    /// A row that is on or off.
    Toggle {
        /// The picture before the text.
        icon: Icon,
        /// Its name.
        label: String,
        /// Whether it is on.
        on: bool,
    },
    /// One of several choices.
    Choice {
        /// Its name.
        label: String,
        /// The color it stands for.
        swatch: Color,
        /// Whether it is the chosen one.
        chosen: bool,
    },
    /// A text field with its name inside.
    Field {
        /// Its name.
        label: String,
        /// What has been entered.
        text: String,
        /// Whether it has the keyboard.
        focused: bool,
        /// Whether all of its text is selected.
        selected: bool,
    },
    /// A box to tick.
    Check {
        /// Its name.
        label: String,
        /// Whether it is ticked.
        on: bool,
    },
    /// A file or the bin.
    Entry {
        /// Its picture.
        icon: Icon,
        /// Its name.
        label: String,
        /// Whether it is selected.
        selected: bool,
        /// Whether its name is being edited.
        editing: bool,
    },
    /// One large character of a text.
    Character {
        /// The character.
        ch: char,
        /// Bold.
        bold: bool,
        /// Italic.
        italic: bool,
        /// Underlined.
        underline: bool,
        /// -1 subscript, 1 superscript, 0 neither.
        raised: i32,
        /// Whether it is selected.
        selected: bool,
    },
    /// Text and nothing else.
    Text {
        /// The text.
        text: String,
    },
    /// A scroll bar: how many rows there are, the first shown, how many fit.
    ScrollBar {
        /// Rows in all.
        rows: usize,
        /// First row shown.
        first: usize,
        /// Rows shown.
        shown: usize,
    },
    /// A calculator's display.
    Display {
        /// What it shows, at the right.
        text: String,
    },
    /// A cell of a table.
    Cell {
        /// What is in it.
        text: String,
        /// Whether it is selected.
        selected: bool,
    },
    /// A day of a calendar.
    Day {
        /// Its number.
        day: usize,
        /// Whether something is on.
        busy: bool,
        /// Whether it is selected.
        selected: bool,
    },
    /// Paper to write on.
    Paper,
    /// The panel of a question in front of everything else.
    Question,
}

/// A part of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Widget {
    /// Where it is, in logical pixels of the screen.
    pub rect: Rect,
    /// Where an agent is expected to click, logical pixels; `None` if it is not a target.
    pub target: Option<(i32, i32)>,
    /// What it is to its application.
    pub part: Part,
    /// What one does with it, in an agent's words: `press bold`.
    pub phrase: String,
    /// How it looks.
    pub look: Look,
}

impl Widget {
    /// A part that agents click on, its target in the first cell.
    pub fn target(rect: Rect, part: Part, phrase: String, look: Look) -> Self {
        let target = Some((rect.x - 1 + CENTER_PX, rect.y - 1 + CENTER_PX));
        Self {
            rect,
            target,
            part,
            phrase,
            look,
        }
    }

    /// A part that is looked at only.
    pub fn passive(rect: Rect, look: Look) -> Self {
        Self {
            rect,
            target: None,
            part: Part::Blank,
            phrase: String::new(),
            look,
        }
    }

    /// The same part with its target at another place, logical pixels.
    pub fn aimed_at(self, x: i32, y: i32) -> Self {
        Self {
            target: Some((x, y)),
            ..self
        }
    }
}

/// The rectangle of `columns` cells in one row, with the gap that separates neighbors.
pub fn cells(origin: (i32, i32), column: i32, row: i32, columns: i32) -> Rect {
    Rect::new(
        origin.0 + column * CELL_PX + 1,
        origin.1 + row * CELL_PX + 1,
        columns * CELL_PX - 4,
        CELL_PX - 4,
    )
}

/// Draws a widget.
pub fn draw_widget(canvas: &mut Canvas, widget: &Widget, palette: &Palette) {
    let rect = widget.rect;
    match &widget.look {
        Look::Button { text, accent } => draw_button(canvas, rect, text, *accent, palette),
        Look::IconButton { icon, active } => {
            let (fill, border) = if *active {
                (palette.highlight, palette.accent)
            } else {
                (palette.control, palette.border)
            };
            canvas.panel(rect, fill, border);
            draw_icon(canvas, rect.x + 5, rect.y + 5, *icon, palette);
        }
        Look::Toggle { icon, label, on } => {
            canvas.fill_round(rect, palette.control);
            draw_icon(canvas, rect.x + 6, rect.y + 5, *icon, palette);
            draw_label(canvas, rect, CELL_PX, label, Ink::bold(palette.text));
            draw_switch(canvas, rect.x + rect.w - 26, rect.y + 5, *on, palette);
        }
        Look::Choice { .. } => draw_choice(canvas, rect, &widget.look, palette),
        Look::Field { .. } => draw_field(canvas, rect, &widget.look, palette),
        Look::Check { label, on } => {
            draw_check(canvas, rect.x + 4, rect.y + 4, *on, palette);
            draw_label(canvas, rect, CELL_PX, label, Ink::bold(palette.text));
        }
        Look::Entry { .. } => draw_entry(canvas, rect, &widget.look, palette),
        Look::Character { .. } => draw_character(canvas, rect, &widget.look, palette),
        Look::Text { text } => {
            draw_label(canvas, rect, 0, text, Ink::plain(palette.text));
        }
        Look::ScrollBar { rows, first, shown } => {
            canvas.fill(rect, palette.control);
            let span = rect.h * *shown as i32 / (*rows).max(1) as i32;
            let top = rect.h * *first as i32 / (*rows).max(1) as i32;
            let thumb = Rect::new(rect.x, rect.y + top, rect.w, span);
            canvas.fill(thumb, palette.accent);
        }
        Look::Display { text } => draw_display(canvas, rect, text, palette),
        Look::Cell { text, selected } => draw_cell(canvas, rect, text, *selected, palette),
        Look::Day {
            day,
            busy,
            selected,
        } => draw_day(canvas, rect, *day, (*busy, *selected), palette),
        Look::Paper => canvas.panel(rect, [255, 255, 255], palette.border),
        Look::Question => {
            let shadow = Rect::new(rect.x - 1, rect.y - 1, rect.w + 2, rect.h + 2);
            canvas.fill(shadow, palette.title);
            canvas.fill(rect, palette.surface);
        }
    }
}

fn draw_choice(canvas: &mut Canvas, rect: Rect, look: &Look, palette: &Palette) {
    let Look::Choice {
        label,
        swatch,
        chosen,
    } = look
    else {
        return;
    };
    canvas.fill_round(rect, palette.control);
    draw_radio(canvas, rect.x + 6, rect.y + 5, *chosen, palette);
    draw_label(canvas, rect, CELL_PX, label, Ink::bold(palette.text));
    let square = Rect::new(rect.x + rect.w - 22, rect.y + 4, 16, 16);
    canvas.panel(square, *swatch, palette.border);
}

fn draw_field(canvas: &mut Canvas, rect: Rect, look: &Look, palette: &Palette) {
    let Look::Field {
        label,
        text,
        focused,
        selected,
    } = look
    else {
        return;
    };
    let border = if *focused {
        palette.accent
    } else {
        palette.border
    };
    canvas.panel(rect, palette.surface, border);
    if *focused {
        canvas.frame(rect.inset(1), palette.accent);
    }
    draw_label(canvas, rect, 0, label, Ink::bold(palette.accent));
    let left = 2 * CELL_PX - 1;
    let inner = Rect::new(rect.x + left, rect.y + 4, rect.w - left - 4, 16);
    draw_input(canvas, inner, text, *focused, *selected, palette);
}

fn draw_entry(canvas: &mut Canvas, rect: Rect, look: &Look, palette: &Palette) {
    let Look::Entry {
        icon,
        label,
        selected,
        editing,
    } = look
    else {
        return;
    };
    if *selected {
        canvas.fill_round(rect, palette.highlight);
    }
    draw_icon(canvas, rect.x + 6, rect.y + 5, *icon, palette);
    if *editing {
        let inner = Rect::new(rect.x + CELL_PX - 2, rect.y + 4, rect.w - CELL_PX, 16);
        canvas.fill(inner, palette.surface);
        canvas.frame(inner, palette.accent);
    }
    draw_label(canvas, rect, CELL_PX, label, Ink::bold(palette.text));
}

fn draw_display(canvas: &mut Canvas, rect: Rect, text: &str, palette: &Palette) {
    canvas.panel(rect, palette.control, palette.border);
    let width = text.chars().count() as i32 * GLYPH_WIDTH_PX;
    let left = (rect.x + rect.w - 6 - width).max(rect.x + 4);
    canvas.text(left, rect.y + 5, text, Ink::bold(palette.text));
}

fn draw_cell(canvas: &mut Canvas, rect: Rect, text: &str, selected: bool, palette: &Palette) {
    let border = if selected {
        palette.accent
    } else {
        palette.border
    };
    let rect = Rect::new(rect.x - 1, rect.y - 1, rect.w + 3, rect.h + 4);
    canvas.fill(rect, palette.surface);
    canvas.frame(rect, border);
    if selected {
        canvas.frame(rect.inset(1), border);
    }
    let ink = Ink::plain(palette.text);
    canvas.text_within(rect.x + 4, rect.y + 7, rect.w - 6, text, ink);
}

/// Text in a row, its left edge on the grid.
fn draw_label(canvas: &mut Canvas, rect: Rect, indent: i32, label: &str, ink: Ink) {
    let left = rect.x - 1 + indent.max(GLYPH_WIDTH_PX);
    canvas.text_within(left, rect.y + 5, rect.x + rect.w - left, label, ink);
}

fn draw_button(canvas: &mut Canvas, rect: Rect, text: &str, accent: bool, palette: &Palette) {
    let (fill, ink) = if accent {
        (palette.accent, Ink::bold(palette.title_text))
    } else {
        (palette.control, Ink::bold(palette.text))
    };
    canvas.panel(rect, fill, palette.border);
    // In the middle, but on the grid of glyphs, so that the text keeps its phase.
    let free = rect.w + 4 - text.chars().count() as i32 * GLYPH_WIDTH_PX;
    let left = rect.x - 1 + free.max(0) / 2 / GLYPH_WIDTH_PX * GLYPH_WIDTH_PX;
    canvas.text_within(left, rect.y + 5, rect.x + rect.w - left, text, ink);
}

fn draw_switch(canvas: &mut Canvas, x: i32, y: i32, on: bool, palette: &Palette) {
    let track = Rect::new(x, y, 24, 14);
    if on {
        canvas.panel(track, palette.accent, palette.accent);
        canvas.fill_round(Rect::new(x + 12, y + 2, 10, 10), [255, 255, 255]);
    } else {
        canvas.panel(track, palette.surface, palette.border);
        canvas.fill_round(Rect::new(x + 2, y + 2, 10, 10), palette.dim);
    }
}

fn draw_radio(canvas: &mut Canvas, x: i32, y: i32, chosen: bool, palette: &Palette) {
    let ring = Rect::new(x, y, 14, 14);
    canvas.panel(ring, palette.surface, palette.dim);
    if chosen {
        canvas.fill_round(ring.inset(3), palette.accent);
    }
}

fn draw_check(canvas: &mut Canvas, x: i32, y: i32, on: bool, palette: &Palette) {
    let frame = Rect::new(x, y, 16, 16);
    canvas.panel(frame, palette.surface, palette.dim);
    if on {
        canvas.fill(frame.inset(2), palette.accent);
        for i in 0..3 {
            canvas.fill(Rect::new(x + 4 + i, y + 7 + i, 2, 2), [255, 255, 255]);
        }
        for i in 0..5 {
            canvas.fill(Rect::new(x + 7 + i, y + 9 - i, 2, 2), [255, 255, 255]);
        }
    }
}

fn draw_input(
    canvas: &mut Canvas,
    inner: Rect,
    text: &str,
    focused: bool,
    selected: bool,
    palette: &Palette,
) {
    let width = text.chars().count() as i32 * GLYPH_WIDTH_PX;
    if selected && 0 < width {
        canvas.fill(
            Rect::new(inner.x, inner.y, width.min(inner.w), inner.h),
            palette.highlight,
        );
    }
    canvas.text_within(
        inner.x,
        inner.y + 1,
        inner.w,
        text,
        Ink::plain(palette.text),
    );
    if focused && !selected {
        let caret = inner.x + width.min(inner.w - 1);
        canvas.fill(Rect::new(caret, inner.y, 1, inner.h), palette.accent);
    }
}

/// A day; `marks` are whether something is on and whether it is selected.
fn draw_day(canvas: &mut Canvas, rect: Rect, day: usize, marks: (bool, bool), palette: &Palette) {
    let (busy, selected) = marks;
    let fill = if selected {
        palette.highlight
    } else {
        palette.control
    };
    canvas.fill_round(rect, fill);
    let ink = Ink::plain(palette.text);
    canvas.text(rect.x + 3, rect.y + 3, &day.to_string(), ink);
    if busy {
        canvas.fill(
            Rect::new(rect.x + 4, rect.y + 18, rect.w - 8, 4),
            palette.accent,
        );
    }
}

fn draw_character(canvas: &mut Canvas, rect: Rect, look: &Look, palette: &Palette) {
    let Look::Character {
        ch,
        bold,
        italic,
        underline,
        raised,
        selected,
    } = look
    else {
        return;
    };
    let cell = Rect::new(rect.x, rect.y, CELL_PX - 3, CELL_PX - 3);
    if *selected {
        canvas.fill(cell, palette.accent);
    }
    let color = if *selected {
        [255, 255, 255]
    } else {
        [16, 16, 20]
    };
    let ink = Ink {
        color,
        bold: *bold,
        italic: *italic,
        zoom: if *raised == 0 { 2 } else { 1 },
    };
    match raised {
        0 => canvas.glyph(cell.x + 6, cell.y, *ch, ink),
        1 => canvas.glyph(cell.x + 8, cell.y, *ch, ink),
        _ => canvas.glyph(cell.x + 8, cell.y + 11, *ch, ink),
    }
    if *underline {
        canvas.fill(Rect::new(cell.x + 3, cell.y + 23, 19, 2), color);
    }
}
