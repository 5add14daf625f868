//! Words of the compact suite. Few per kind, of different first letters and lengths, so that
//! a small model can tell their pictures apart. Changing any changes what the shipped agent
//! was trained on.

use crate::env::simulated::app::App;
use crate::env::simulated::canvas::Color;
use crate::env::simulated::icons::Icon;

/// Settings with their pictures.
pub const SETTINGS: [(&str, Icon); 6] = [
    ("Wifi", Icon::Wifi),
    ("GPS", Icon::Pin),
    ("Sound", Icon::Speaker),
    ("Backup", Icon::Cloud),
    ("Privacy", Icon::Lock),
    ("Dark", Icon::Moon),
];

/// Themes with their colors.
pub const THEMES: [(&str, Color); 6] = [
    ("Gold", [236, 184, 40]),
    ("Red", [204, 40, 44]),
    ("Violet", [130, 60, 190]),
    ("Ocean", [28, 96, 190]),
    ("Mint", [96, 210, 160]),
    ("Slate", [84, 92, 104]),
];

/// Files with their pictures.
pub const FILES: [(&str, Icon); 6] = [
    ("map", Icon::Map),
    ("notes", Icon::Document),
    ("photo", Icon::Picture),
    ("song", Icon::Music),
    ("budget", Icon::Sheet),
    ("zip", Icon::Archive),
];

/// Buttons of dialogs.
pub const BUTTONS: [&str; 6] = ["OK", "Save", "Later", "Cancel", "Discard", "Retry"];

/// Messages of dialogs.
pub const MESSAGES: [&str; 4] = [
    "Save your changes?",
    "Update is ready.",
    "Disk is almost full.",
    "Connection lost.",
];

/// Fields of forms.
pub const FIELDS: [&str; 6] = ["Name", "City", "Email", "Phone", "Team", "Job"];

/// Formulas with one digit that belongs low.
pub const FORMULAS: [&str; 6] = ["H2O", "CO2", "NH3", "SO4", "N2O", "Li2O"];

/// Units with one digit that belongs high.
pub const POWERS: [&str; 6] = ["km2", "x3", "cm3", "y2", "ab4", "mc2"];

/// Texts to work on, each within one line of the editor.
pub const TEXTS: [&str; 6] = ["note", "Title", "Hello", "menu", "sun", "report"];

/// What is to be typed.
pub const TYPED: [&str; 8] = [
    "plan", "memo", "trip", "Anna", "Oslo", "blue", "2026", "tree",
];

/// Labels that may or may not be on the screen of an application.
pub fn vocabulary(app: &App) -> Vec<&'static str> {
    match app {
        App::Settings(settings) if settings.rows.len() <= 4 => {
            SETTINGS.iter().map(|(label, _)| *label).collect()
        }
        App::Files(_) => FILES.iter().map(|(name, _)| *name).collect(),
        App::Dialog(_) => BUTTONS.to_vec(),
        App::Form(_) => FIELDS.to_vec(),
        App::Themes(_) => THEMES.iter().map(|(label, _)| *label).collect(),
        App::Settings(_)
        | App::Editor(_)
        | App::Calculator(_)
        | App::Mail(_)
        | App::Sheet(_)
        | App::Calendar(_)
        | App::Player(_)
        | App::Terminal(_) => Vec::new(),
    }
}
