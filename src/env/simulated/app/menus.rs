//! Menus of applications: every item stands for keys, so that whatever a menu does has a key
//! and is done in one place. Items no keyboard has are spelled `menu+...`.

use serde::{Deserialize, Serialize};

use super::App;

/// A menu of a window's menu bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Menu {
    /// What stands in the bar.
    pub title: &'static str,
    /// Its items: label and keys.
    pub items: &'static [(&'static str, &'static str)],
}

/// One item of an open menu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MenuItem {
    /// What stands there.
    pub label: String,
    /// The keys it stands for.
    pub keys: String,
}

impl Menu {
    /// Its items for a screen.
    pub fn open(&self) -> Vec<MenuItem> {
        let item = |(label, keys): &(&str, &str)| MenuItem {
            label: (*label).to_owned(),
            keys: (*keys).to_owned(),
        };
        self.items.iter().map(item).collect()
    }
}

/// Cut, copy, paste and the like.
const EDIT: Menu = Menu {
    title: "Edit",
    items: &[
        ("Undo", "ctrl+z"),
        ("Redo", "ctrl+y"),
        ("Cut", "ctrl+x"),
        ("Copy", "ctrl+c"),
        ("Paste", "ctrl+v"),
        ("Select all", "ctrl+a"),
    ],
};

/// What every window can do.
const WINDOW: Menu = Menu {
    title: "Window",
    items: &[("Minimize", "window+minimize"), ("Close", "window+close")],
};

const EDITOR: [Menu; 3] = [
    EDIT,
    Menu {
        title: "Text",
        items: &[
            ("Bold", "ctrl+b"),
            ("Italic", "ctrl+i"),
            ("Underline", "ctrl+u"),
            ("Upper case", "menu+upper"),
            ("Lower case", "menu+lower"),
            ("Save", "ctrl+s"),
        ],
    },
    WINDOW,
];

const FILES: [Menu; 3] = [
    Menu {
        title: "File",
        items: &[("Open", "enter"), ("Rename", "f2"), ("Delete", "delete")],
    },
    Menu {
        title: "View",
        items: &[("Sort by name", "menu+sort")],
    },
    WINDOW,
];

const SHEET: [Menu; 3] = [
    EDIT,
    Menu {
        title: "Data",
        items: &[("Sum above", "menu+sum"), ("Clear cell", "delete")],
    },
    WINDOW,
];

const TEXT: [Menu; 2] = [EDIT, WINDOW];
const PLAIN: [Menu; 1] = [WINDOW];

/// The menus of an application's window.
pub fn menus(app: &App) -> &'static [Menu] {
    match app {
        App::Editor(_) => &EDITOR,
        App::Files(_) => &FILES,
        App::Sheet(_) => &SHEET,
        App::Form(_) | App::Mail(_) | App::Terminal(_) => &TEXT,
        App::Settings(_)
        | App::Themes(_)
        | App::Dialog(_)
        | App::Calculator(_)
        | App::Calendar(_)
        | App::Player(_) => &PLAIN,
    }
}
