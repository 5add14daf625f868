//! The pen: text, frames and pictures by role, cut to their areas.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::symbols::border;
use ratatui::widgets::{Block, Widget};

use crate::tui::app::{App, Glyphs};
use crate::tui::focus::explains;
use crate::tui::picture::{Mark, PictureKey, PictureState, Raster, draw_raster};
use crate::tui::text::{fit, width, wrap};
use crate::tui::theme::Role;
use crate::types::ImageHash;

use super::Drawn;

/// A drawing under way.
pub struct Sketch<'a> {
    /// What is drawn.
    pub app: &'a App,
    /// Where.
    pub buffer: &'a mut Buffer,
    /// What it leaves behind.
    pub drawn: Drawn,
    /// Whether what is drawn now lies over the screen.
    pub is_over: bool,
    /// Whether frames drawn now are parts of a pane: the focused one is what is selected there.
    pub is_inside: bool,
}

/// Title and state of a framed pane.
#[derive(Clone, Debug, Default)]
pub struct FrameTitle {
    /// On the left.
    pub left: String,
    /// On the right, with its role.
    pub right: Option<(String, Role)>,
    /// Whether the pane has the keys.
    pub focused: bool,
}

impl<'a> Sketch<'a> {
    /// An empty sheet.
    pub fn new(app: &'a App, buffer: &'a mut Buffer) -> Self {
        Self {
            app,
            buffer,
            drawn: Drawn::default(),
            is_over: false,
            is_inside: false,
        }
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.app.ui.theme.style(role)
    }

    /// Writes into row `row` of `area`, from `column` on, cut at its right edge. Returns the
    /// column after the text.
    pub fn put(&mut self, area: Rect, column: u16, row: u16, text: &str, role: Role) -> u16 {
        self.put_styled(area, column, row, text, self.app.ui.theme.style(role))
    }

    /// The same with a style.
    pub fn put_styled(
        &mut self,
        area: Rect,
        column: u16,
        row: u16,
        text: &str,
        style: Style,
    ) -> u16 {
        let area = area.intersection(self.buffer.area);
        if row >= area.height || column >= area.width {
            return column;
        }
        let room = usize::from(area.width - column);
        let shown = fit(text, room);
        let (x, y) = (area.x + column, area.y + row);
        let (end, _) = self.buffer.set_stringn(x, y, &shown, room, style);
        end - area.x
    }

    /// Writes pieces one after the other, from `column` on.
    pub fn put_all(
        &mut self,
        area: Rect,
        column: u16,
        row: u16,
        pieces: &[(impl AsRef<str>, Role)],
    ) -> u16 {
        let mut at = column;
        for (text, role) in pieces {
            at = self.put(area, at, row, text.as_ref(), *role);
        }
        at
    }

    /// Writes so that the text ends at the right edge of `area`; cut on its left where there is
    /// no room. Returns the column it begins at.
    pub fn put_right(&mut self, area: Rect, row: u16, pieces: &[(impl AsRef<str>, Role)]) -> u16 {
        let all: usize = pieces.iter().map(|(text, _)| width(text.as_ref())).sum();
        let column = usize::from(area.width).saturating_sub(all) as u16;
        self.put_all(area, column, row, pieces);
        column
    }

    /// Writes text wrapped into `area`, the first `skip` lines left out. Returns the rows used.
    pub fn text(&mut self, area: Rect, text: &str, role: Role, skip: usize) -> u16 {
        let lines = wrap(text, usize::from(area.width));
        let shown = lines
            .len()
            .saturating_sub(skip)
            .min(usize::from(area.height));
        for (row, line) in lines.iter().skip(skip).take(shown).enumerate() {
            let cut = row + 1 == shown && lines.len() > skip + shown;
            let marked = if cut {
                fit(&format!("{line} …"), usize::from(area.width))
            } else {
                line.clone()
            };
            self.put(area, 0, row as u16, &marked, role);
        }
        shown as u16
    }

    /// Colors a row of `area` as selected, whatever is on it.
    pub fn select(&mut self, area: Rect) {
        let style = self.style(Role::Selection);
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut(Position::new(x, y)) {
                    cell.set_style(style);
                }
            }
        }
    }

    /// Draws a frame and returns what is inside.
    pub fn frame(&mut self, area: Rect, title: &FrameTitle) -> Rect {
        // What lies over the screen has the keys, so nothing below it does.
        let is_covered = self.app.ui.overlay.is_some() || explains(self.app);
        let has_keys = title.focused && (self.is_over || !is_covered);
        let focused = has_keys && !self.is_inside;
        let selected = title.focused && self.is_inside;
        self.drawn.focused += usize::from(focused);
        let (role, set) = match (focused, selected) {
            (true, _) => (Role::Focus, border::THICK),
            (false, true) => (Role::Focus, border::PLAIN),
            (false, false) => (Role::Frame, border::ROUNDED),
        };
        let block = Block::bordered()
            .border_set(set)
            .border_style(self.style(role));
        let inner = block.inner(area);
        block.render(area, self.buffer);
        if area.height == 0 || area.width < 8 {
            return inner;
        }
        let top = Rect {
            x: area.x + 2,
            width: area.width - 4,
            height: 1,
            ..area
        };
        let mut room = top.width;
        let right = title.right.as_ref().filter(|(text, _)| !text.is_empty());
        if let Some((text, role)) = right {
            let cells = width(text) as u16 + 2;
            if cells + 6 <= top.width {
                self.put_right(top, 0, &[(format!(" {text} "), *role)]);
                room -= cells + 1;
            }
        }
        if !title.left.is_empty() {
            let (role, mark) = match (focused, self.app.ui.glyphs) {
                (true, Glyphs::Ascii) => (Role::Focus, "* "),
                (true, Glyphs::Unicode) => (Role::Focus, ""),
                (false, _) if selected => (Role::Focus, ""),
                (false, _) => (Role::Text, ""),
            };
            let shown = fit(
                &format!(" {mark}{}", title.left),
                usize::from(room.saturating_sub(1)),
            );
            self.put(top, 0, 0, &format!("{shown} "), role);
        }
        inner
    }

    /// Draws a picture as large as `area` allows. `older` stands in while it is being made: an
    /// earlier one of the same episode. Without any, says what is missing.
    pub fn picture(
        &mut self,
        area: Rect,
        image: Option<&ImageHash>,
        older: Option<&ImageHash>,
        mark: Option<&Mark>,
    ) {
        if area.width == 0 || area.height == 0 {
            return;
        }
        let Some(image) = image else {
            self.center(area, "no screenshot yet", Role::Muted);
            return;
        };
        let key = |image: &ImageHash| PictureKey {
            image: image.clone(),
            columns: area.width,
            rows: area.height,
        };
        let wanted = key(image);
        let app = self.app;
        match app.ui.pictures.get(&wanted) {
            Some(PictureState::Ready(raster)) => self.raster(raster, mark, area),
            Some(PictureState::Failed(reason)) => {
                self.center(area, &format!("no picture: {reason}"), Role::Danger);
            }
            Some(PictureState::Loading) | None => {
                match older.and_then(|older| app.ui.pictures.get(&key(older))) {
                    Some(PictureState::Ready(raster)) => self.raster(raster, None, area),
                    _ => self.center(area, "loading", Role::Muted),
                }
            }
        }
        self.drawn.pictures.push(wanted);
    }

    fn raster(&mut self, raster: &Raster, mark: Option<&Mark>, area: Rect) {
        draw_raster(raster, mark, area, self.app.ui.theme.depth(), self.buffer);
    }

    /// Writes one line into the middle of `area`.
    pub fn center(&mut self, area: Rect, text: &str, role: Role) {
        let shown = fit(text, usize::from(area.width));
        let column = (usize::from(area.width) - width(&shown)) / 2;
        self.put(area, column as u16, area.height / 2, &shown, role);
    }

    /// Empties `area` for something that lies above, and the halves of wide glyphs that stick
    /// out of it: else the terminal keeps them and drops the edge of what is drawn here.
    pub fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            if area.left() > self.buffer.area.left() {
                self.blank_if_wide(area.left() - 1, y);
            }
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut(Position::new(x, y)) {
                    cell.reset();
                }
            }
        }
    }

    fn blank_if_wide(&mut self, x: u16, y: u16) {
        let cell = self.buffer.cell_mut(Position::new(x, y));
        if let Some(cell) = cell.filter(|cell| width(cell.symbol()) > 1) {
            cell.set_symbol(" ");
        }
    }
}
