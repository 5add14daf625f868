//! Applications: plain serialisable state, a layout of widgets made from it, and one function
//! that handles input. They know neither pixels nor tasks.

mod calculator;
mod calendar;
mod dialog;
mod editor;
mod files;
mod form;
mod mail;
mod menus;
mod player;
mod settings;
mod sheet;
mod terminal;
mod themes;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::widget::{Part, Widget};

pub use calculator::{Calculator, KEYS};
pub use calendar::{Calendar, MONTHS};
pub use dialog::{Dialog, Page};
pub use editor::{Editor, Format, Glyph};
pub use files::{Entry, Files};
pub use form::Form;
pub use mail::{Mail, Place};
pub use menus::{Menu, MenuItem, menus};
pub use player::Player;
pub use settings::{Settings, Toggle};
pub use sheet::{Sheet, cell_name};
pub use terminal::{Kind, Terminal};
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
    /// Whole numbers.
    Calculator(Calculator),
    /// An inbox.
    Mail(Mail),
    /// A table.
    Sheet(Sheet),
    /// Days and events.
    Calendar(Calendar),
    /// Music.
    Player(Player),
    /// Commands.
    Terminal(Terminal),
}

impl App {
    /// Columns and rows of cells that its content takes, the title bar not counted.
    pub fn size(&self) -> (i32, i32) {
        match self {
            App::Editor(_) => Editor::SIZE,
            App::Settings(app) => app.size(),
            App::Themes(app) => app.size(),
            App::Files(_) => Files::SIZE,
            App::Dialog(_) => Dialog::SIZE,
            App::Form(app) => app.size(),
            App::Calculator(_) => Calculator::SIZE,
            App::Mail(_) => Mail::SIZE,
            App::Sheet(_) => Sheet::SIZE,
            App::Calendar(_) => Calendar::SIZE,
            App::Player(_) => Player::SIZE,
            App::Terminal(_) => Terminal::SIZE,
        }
    }

    /// The window's title, which tells its state.
    pub fn title(&self) -> String {
        match self {
            App::Editor(app) => app.title(),
            App::Settings(_) => "Settings".to_owned(),
            App::Themes(app) => app.title(),
            App::Files(app) => app.title(),
            App::Dialog(app) => app.title(),
            App::Form(app) => app.title(),
            // The whole word does not fit between its title buttons.
            App::Calculator(_) => "Calc".to_owned(),
            App::Mail(_) => "Mail".to_owned(),
            App::Sheet(_) => "Sheet".to_owned(),
            App::Calendar(_) => "Calendar".to_owned(),
            App::Player(_) => "Player".to_owned(),
            App::Terminal(_) => "Terminal".to_owned(),
        }
    }

    /// What task bars call it.
    pub fn name(&self) -> &'static str {
        match self {
            App::Editor(_) => "Editor",
            App::Settings(_) => "Settings",
            App::Themes(_) => "Themes",
            App::Files(_) => "Files",
            App::Dialog(_) => "Message",
            App::Form(_) => "Form",
            App::Calculator(_) => "Calculator",
            App::Mail(_) => "Mail",
            App::Sheet(_) => "Sheet",
            App::Calendar(_) => "Calendar",
            App::Player(_) => "Player",
            App::Terminal(_) => "Terminal",
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
            App::Calculator(app) => app.widgets(origin),
            App::Mail(app) => app.widgets(origin),
            App::Sheet(app) => app.widgets(origin),
            App::Calendar(app) => app.widgets(origin),
            App::Player(app) => app.widgets(origin),
            App::Terminal(app) => app.widgets(origin),
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
            App::Calculator(app) => app.handle(input),
            App::Mail(app) => app.handle(input, clipboard.as_str()),
            App::Sheet(app) => app.handle(input, clipboard),
            App::Calendar(app) => app.handle(input, clipboard.as_str()),
            App::Player(app) => app.handle(input),
            App::Terminal(app) => app.handle(input, clipboard.as_str()),
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
            App::Calculator(app) => app.state(),
            App::Mail(app) => app.state(),
            App::Sheet(app) => app.state(),
            App::Calendar(app) => app.state(),
            App::Player(app) => app.state(),
            App::Terminal(app) => app.state(),
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
            App::Mail(app) => app.facts(),
            App::Calculator(_)
            | App::Sheet(_)
            | App::Calendar(_)
            | App::Player(_)
            | App::Terminal(_) => Vec::new(),
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
