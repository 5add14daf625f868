//! The App as cells of a terminal. Drawing reads and never changes; what it would have liked to
//! have (pictures) and where things can be clicked is its result.

mod about;
mod ascii;
mod cards;
mod chrome;
mod debug;
mod evals;
mod fleet;
mod help;
mod logs;
mod machine;
mod machine_log;
mod overlay;
mod plot;
mod preview;
mod replay;
mod rollout;
mod siblings;
mod signal;
mod sketch;
mod small;
#[cfg(test)]
mod tests;
mod timeline;
mod tokens;
mod train;
mod train_panes;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use crate::tui::app::{App, Glyphs, Overlay, Screen};
use crate::tui::layout::SizeClass;
use crate::tui::picture::{PictureKey, Wanted};
use crate::tui::update::Target;

pub use cards::fleet_cards_across;
pub use help::legend_lines;
pub use sketch::Sketch;

/// What a drawing leaves behind.
#[derive(Debug, Default)]
pub struct Drawn {
    /// Pictures it shows or would have shown.
    pub pictures: Vec<PictureKey>,
    /// Frames drawn as the one that has the keys.
    pub focused: usize,
    /// Pictures among them that the terminal is to show by itself.
    pub wanted: Vec<Wanted>,
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
    sketch.is_over = true;
    draw_overlay(&mut sketch, area);
    if crate::tui::focus::explains(app) {
        overlay::draw_ahead(&mut sketch, area);
    }
    let drawn = sketch.drawn;
    if app.ui.glyphs == Glyphs::Ascii {
        ascii::simplify(frame.buffer_mut());
    }
    drawn
}

fn draw_pages(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let line_rows = u16::from(sketch.app.ui.timeline.is_some());
    let [tabs, status, page, line, message, hints] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(line_rows),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    chrome::draw_tabs(sketch, tabs);
    chrome::draw_status(sketch, status);
    if let Some(state) = &sketch.app.ui.timeline {
        timeline::draw(sketch, line, state);
    }
    chrome::draw_message(sketch, message);
    chrome::draw_hints(sketch, hints);
    match sketch.app.ui.screen {
        Screen::Fleet => fleet::draw(sketch, page, class),
        Screen::Rollout => rollout::draw(sketch, page, class),
        Screen::Train => train::draw(sketch, page, class),
        Screen::Evals => evals::draw(sketch, page, class),
        Screen::Replay => replay::draw(sketch, page, class),
        Screen::Logs => logs::draw(sketch, page, class),
    }
}

fn draw_overlay(sketch: &mut Sketch<'_>, area: Rect) {
    match &sketch.app.ui.overlay {
        None => {}
        Some(Overlay::Help(state)) => help::draw(sketch, area, state),
        Some(Overlay::Page(page)) => overlay::draw_page(sketch, area, page),
        Some(Overlay::MachineLog(log)) => machine_log::draw(sketch, area, log),
        Some(Overlay::Prompt(prompt)) => overlay::draw_prompt(sketch, area, prompt),
        Some(Overlay::Filter(text)) => overlay::draw_filter(sketch, area, "Filter", text),
        Some(Overlay::Search(text)) => overlay::draw_filter(sketch, area, "Search", text),
        Some(Overlay::Launch(form)) => overlay::draw_launch(sketch, area, form),
        Some(Overlay::Reply(editor)) => debug::draw_editor(sketch, area, editor),
        Some(Overlay::Quit(choice)) => overlay::draw_quit(sketch, area, *choice),
        Some(Overlay::Confirm(question)) => overlay::draw_confirm(sketch, area, question),
        Some(Overlay::Naming(question, typed)) => {
            overlay::draw_naming(sketch, area, question, typed);
        }
        Some(Overlay::About) => about::draw(sketch, area),
    }
}
