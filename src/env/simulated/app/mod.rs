//! Applications: plain serialisable state, a layout of widgets made from it, and one function
//! that handles input. They know neither pixels nor tasks.

mod dialog;
mod editor;
mod files;
mod form;
mod settings;
mod themes;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::widget::{Part, Widget};

pub use dialog::{Dialog, Page};
pub use editor::{Editor, Format, Glyph};
pub use files::{Entry, Files};
pub use form::Form;
pub use settings::{Settings, Toggle};
pub use themes::{Choice, Themes};

/// What a window is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Left click.
    Click(Part),
    /// Left double click.
    Double(Part),
    /// Right click.
    Right(Part),
    /// Dragged from one part to another.
    Drag(Part, Part),
    /// Keys pressed together, joined with `+`: `ctrl+z`, `enter`.
    Keys(String),
    /// Text at the keyboard focus.
    Text(String),
    /// Wheel turned by this many notches, positive towards the end.
    Scroll(i32),
}

/// An application with its whole state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "app", rename_all = "snake_case")]
pub enum App {
    /// Text editor with a formatting toolbar.
    Editor(Editor),
    /// Switches that are on or off.
    Settings(Settings),
    /// A choice that has to be applied.
    Themes(Themes),
    /// Files and a bin.
    Files(Files),
    /// Questions to answer.
    Dialog(Dialog),
    /// Fields to fill in and send.
    Form(Form),
}

impl App {
    /// Columns and rows of cells that its content takes, the title bar not counted.
    pub fn size(&self) -> (i32, i32) {
        match self {
            App::Editor(app) => app.size(),
            App::Settings(app) => app.size(),
            App::Themes(app) => app.size(),
            App::Files(app) => app.size(),
            App::Dialog(app) => app.size(),
            App::Form(app) => app.size(),
        }
    }

    /// The window's title, which tells its state.
    pub fn title(&self) -> String {
        match self {
            App::Editor(app) => app.title(),
            App::Settings(app) => app.title(),
            App::Themes(app) => app.title(),
            App::Files(app) => app.title(),
            App::Dialog(app) => app.title(),
            App::Form(app) => app.title(),
        }
    }

    /// Its widgets, back to front; `origin` is the content's left top corner on the screen.
    pub fn widgets(&self, origin: (i32, i32)) -> Vec<Widget> {
        match self {
            App::Editor(app) => app.widgets(origin),
            App::Settings(app) => app.widgets(origin),
            App::Themes(app) => app.widgets(origin),
            App::Files(app) => app.widgets(origin),
            App::Dialog(app) => app.widgets(origin),
            App::Form(app) => app.widgets(origin),
        }
    }

    /// Handles one input; whatever means nothing to it changes nothing.
    pub fn handle(&mut self, input: &Input, clipboard: &mut String) {
        match self {
            App::Editor(app) => app.handle(input, clipboard),
            App::Settings(app) => app.handle(input),
            App::Themes(app) => app.handle(input),
            App::Files(app) => app.handle(input, clipboard),
            App::Dialog(app) => app.handle(input),
            App::Form(app) => app.handle(input, clipboard),
        }
    }

    /// What evaluators read: the meaning of the state, without selections and history.
    pub fn state(&self) -> Value {
        match self {
            App::Editor(app) => app.state(),
            App::Settings(app) => app.state(),
            App::Themes(app) => app.state(),
            App::Files(app) => app.state(),
            App::Dialog(app) => app.state(),
            App::Form(app) => app.state(),
        }
    }

    /// What can be read off its part of the picture: subject, and what holds of it.
    pub fn facts(&self) -> Vec<(String, String)> {
        match self {
            App::Editor(app) => app.facts(),
            App::Settings(app) => app.facts(),
            App::Themes(app) => app.facts(),
            App::Files(app) => app.facts(),
            App::Dialog(app) => app.facts(),
            App::Form(app) => app.facts(),
        }
    }
}

/// The most characters any text field or document holds; what is typed beyond is dropped.
const MAX_TEXT_CHARS: usize = 200;

/// Appends typed text to a field, as far as it fits; control characters are dropped.
fn push_typed(field: &mut String, typed: &str) {
    let room = MAX_TEXT_CHARS.saturating_sub(field.chars().count());
    field.extend(typed.chars().filter(|ch| !ch.is_control()).take(room));
}
