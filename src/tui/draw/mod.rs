//! The App as cells of a terminal. Drawing reads and never changes; what it would have liked to
//! have (pictures) and where things can be clicked is its result.

mod cards;
mod chrome;
mod debug;
mod fleet;
mod help;
mod logs;
mod overlay;
mod plot;
mod preview;
mod rollout;
mod sketch;
mod small;
#[cfg(test)]
mod tests;
mod train;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use crate::tui::app::{App, Overlay, Screen};
use crate::tui::layout::SizeClass;
use crate::tui::picture::PictureKey;
use crate::tui::update::Target;

pub use cards::fleet_cards_across;
pub use help::help_lines;
pub use sketch::Sketch;

/// What a drawing leaves behind.
#[derive(Debug, Default)]
pub struct Drawn {
    /// Pictures it shows or would have shown.
    pub pictures: Vec<PictureKey>,
    /// Where a click means something, later ones above earlier ones.
    pub targets: Vec<(Rect, Target)>,
}

impl Drawn {
    /// What is at a place.
    pub fn target_at(&self, column: u16, row: u16) -> Option<Target> {
        let at = ratatui::layout::Position::new(column, row);
        self.targets
            .iter()
            .rev()
            .find(|(area, _)| area.contains(at))
            .map(|(_, target)| *target)
    }
}

/// Draws the whole console.
pub fn draw(app: &App, frame: &mut Frame<'_>) -> Drawn {
    let area = frame.area();
    let mut sketch = Sketch::new(app, frame.buffer_mut());
    match SizeClass::of(area.width, area.height) {
        SizeClass::Line => small::draw_line(&mut sketch, area),
        SizeClass::Vitals => small::draw_vitals(&mut sketch, area),
        SizeClass::List => draw_pages(&mut sketch, area, SizeClass::List),
        class => draw_pages(&mut sketch, area, class),
    }
    draw_overlay(&mut sketch, area);
    sketch.drawn
}

fn draw_pages(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let [tabs, status, page, message, hints] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    chrome::draw_tabs(sketch, tabs);
    chrome::draw_status(sketch, status);
    chrome::draw_message(sketch, message);
    chrome::draw_hints(sketch, hints);
    match sketch.app.ui.screen {
        Screen::Fleet => fleet::draw(sketch, page, class),
        Screen::Rollout => rollout::draw(sketch, page, class),
        Screen::Train => train::draw(sketch, page, class),
        Screen::Logs => logs::draw(sketch, page, class),
    }
}

fn draw_overlay(sketch: &mut Sketch<'_>, area: Rect) {
    match &sketch.app.ui.overlay {
        None => {}
        Some(Overlay::Help { scroll }) => help::draw(sketch, area, *scroll),
        Some(Overlay::Prompt(prompt)) => overlay::draw_prompt(sketch, area, prompt),
        Some(Overlay::Filter(text)) => overlay::draw_filter(sketch, area, text),
        Some(Overlay::Reply(editor)) => debug::draw_editor(sketch, area, editor),
        Some(Overlay::Quit(choice)) => overlay::draw_quit(sketch, area, *choice),
    }
}
