//! The pen: text, frames and pictures by role, cut to their areas.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::symbols::border;
use ratatui::widgets::{Block, Widget};

use crate::tui::app::{App, Glyphs, Screen};
use crate::tui::fleet::FleetLayout;
use crate::tui::focus::explains;
use crate::tui::picture::{
    Grain, MAX_SLOTS, Mark, PictureKey, PictureState, Protocol, Quality, Shown, Wanted, centered,
    draw_placeholders, draw_raster,
};
use crate::tui::term::{Blocks, Form};
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

/// What a picture shows.
struct Subject<'a> {
    image: &'a ImageHash,
    /// An earlier one of the same episode.
    older: Option<&'a ImageHash>,
    mark: Option<&'a Mark>,
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

    /// Says on the last row of a list how many of its rows do not fit; nothing where all do, or
    /// where that row is the only one.
    pub fn put_hidden(&mut self, list: Rect, hidden: usize, what: &str, role: Role) {
        if hidden > 0 && list.height > 1 {
            let text = format!("{hidden} more{what} ");
            self.put_right(list, list.height - 1, &[(text, role)]);
        }
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
        let graphics = self.app.ui.terminal.graphics;
        let is_tile =
            self.app.ui.screen == Screen::Fleet && self.app.ui.fleet.layout == FleetLayout::Cards;
        let is_focus = !is_tile && self.drawn.pictures.is_empty();
        let form = if is_focus {
            graphics.focus
        } else {
            graphics.tiles
        };
        if form == Form::Off {
            self.center(area, "pictures are off", Role::Muted);
        } else if let Some(protocol) = self.protocol_for(form, area) {
            let subject = Subject { image, older, mark };
            self.terminal_picture(area, &subject, protocol, is_focus);
        } else {
            self.character_picture(area, image, older, mark);
        }
    }

    /// How the terminal is given a picture in `area`; `None` for characters.
    fn protocol_for(&self, form: Form, area: Rect) -> Option<Protocol> {
        let is_full = self.drawn.wanted.len() >= MAX_SLOTS;
        match form {
            Form::Kitty if !is_full && self.app.ui.quality > Quality::Cells => {
                Some(Protocol::Kitty)
            }
            // In the last row it would scroll the screen.
            Form::Sixel(colors) if !is_full && area.bottom() < self.buffer.area.bottom() => {
                Some(Protocol::Sixel(colors))
            }
            Form::Kitty | Form::Sixel(_) | Form::Cells(_) | Form::Off => None,
        }
    }

    /// A picture that the terminal shows by itself: its cells name it, or are left to it.
    fn terminal_picture(
        &mut self,
        area: Rect,
        subject: &Subject<'_>,
        protocol: Protocol,
        is_focus: bool,
    ) {
        // What is drawn once is drawn over everything, popups too.
        let is_sixel = protocol != Protocol::Kitty;
        if is_sixel && self.app.ui.overlay.is_some() {
            return;
        }
        let most = if is_sixel {
            u16::MAX
        } else {
            self.app.ui.quality.most_px(is_focus)
        };
        let key = PictureKey {
            image: subject.image.clone(),
            columns: area.width,
            rows: area.height,
            grain: Grain::Pixels {
                cell: self.app.ui.terminal.cell_px(),
                most,
            },
        };
        self.drawn.pictures.push(key.clone());
        let mut wanted = Wanted {
            slot: self.drawn.wanted.len(),
            key,
            mark: subject.mark.cloned(),
            area,
            protocol,
            is_focus,
            is_update: false,
        };
        let app = self.app;
        match app.ui.slots.shown_for(&wanted, subject.older) {
            Some(placed) => {
                wanted.is_update = true;
                let (columns, rows) = placed.cells;
                if !is_sixel {
                    draw_placeholders(placed.id, centered(columns, rows, area), self.buffer);
                }
            }
            // Text under a picture that is drawn once would be wiped through it.
            None if is_sixel => {}
            None => match app.ui.pictures.get(&wanted.key) {
                Some(PictureState::Failed(reason)) => {
                    self.center(area, &format!("no picture: {reason}"), Role::Danger);
                }
                _ => self.center(area, "loading", Role::Muted),
            },
        }
        self.drawn.wanted.push(wanted);
    }

    /// A picture of characters.
    fn character_picture(
        &mut self,
        area: Rect,
        image: &ImageHash,
        older: Option<&ImageHash>,
        mark: Option<&Mark>,
    ) {
        let glyphs = match self.app.ui.terminal.graphics.tiles {
            Form::Cells(glyphs) => glyphs,
            Form::Kitty | Form::Sixel(_) | Form::Off => Blocks::Quadrants,
        };
        let key = |image: &ImageHash| PictureKey {
            image: image.clone(),
            columns: area.width,
            rows: area.height,
            grain: Grain::Cells(glyphs),
        };
        let wanted = key(image);
        let pictures = &self.app.ui.pictures;
        let before = older.and_then(|older| pictures.get(&key(older)));
        let before = match before {
            Some(PictureState::Ready(raster)) => Some(&**raster),
            _ => None,
        };
        let depth = self.app.ui.theme.depth();
        match (pictures.get(&wanted), before) {
            (Some(PictureState::Ready(raster)), before) => {
                let shown = Shown {
                    raster,
                    mark,
                    before,
                };
                draw_raster(shown, area, depth, self.buffer);
            }
            (Some(PictureState::Failed(reason)), _) => {
                self.center(area, &format!("no picture: {reason}"), Role::Danger);
            }
            (Some(PictureState::Loading) | None, Some(raster)) => {
                let shown = Shown {
                    raster,
                    mark: None,
                    before: None,
                };
                draw_raster(shown, area, depth, self.buffer);
            }
            (Some(PictureState::Loading) | None, None) => {
                self.center(area, "loading", Role::Muted);
            }
        }
        self.drawn.pictures.push(wanted);
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
