//! The shell of the full desktop: a task bar, title buttons, menu bars, pop-up menus, windows
//! that overlap and move. The compact desktop has none of it: one window, always in front.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::app::{Menu, MenuItem, menus};
use super::canvas::{Canvas, GLYPH_WIDTH_PX, Ink, Rect};
use super::desktop::{Desktop, Placement, Window};
use super::theme::Palette;
use super::widget::{CELL_PX, CENTER_PX};

/// Width of a button of the task bar.
const TASK_PX: i32 = 3 * CELL_PX;
/// Width of a title of a menu bar.
const MENU_PX: i32 = 2 * CELL_PX;
/// Width of a pop-up menu.
const POPUP_PX: i32 = 5 * CELL_PX;

/// What a desktop with a shell remembers beside its windows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    /// The menu that is open.
    #[serde(default)]
    pub popup: Option<Popup>,
    /// Where the pointer is, logical pixels.
    #[serde(default)]
    pub pointer: Option<(i32, i32)>,
}

/// An open menu.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Popup {
    /// Left edge in logical pixels.
    pub x: i32,
    /// Top edge in logical pixels.
    pub y: i32,
    /// What can be chosen.
    pub items: Vec<MenuItem>,
}

/// What lies at a place of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chrome {
    /// An item of the open menu, by index.
    PopupItem(usize),
    /// A button of the task bar, by the window's key.
    Task(String),
    /// The task bar between its buttons.
    Bar,
    /// The button that closes the window of this index.
    Close(usize),
    /// The button that minimizes it.
    Minimize(usize),
    /// Its title bar.
    Title(usize),
    /// A menu of it.
    Menu(usize, usize),
}

/// Something of the shell that can be clicked: where, what it is, what it does in words.
pub struct ChromeTarget {
    /// Where it is.
    pub rect: Rect,
    /// What it is.
    pub chrome: Chrome,
    /// What a click does.
    pub phrase: String,
}

impl Popup {
    fn item_rect(&self, i: usize) -> Rect {
        Rect::new(self.x, self.y + i as i32 * CELL_PX, POPUP_PX, CELL_PX)
    }

    fn rect(&self) -> Rect {
        let height = self.items.len() as i32 * CELL_PX;
        Rect::new(self.x, self.y, POPUP_PX, height)
    }
}

impl Window {
    /// Rectangle of the title bar, its buttons included.
    fn title_bar(&self) -> Rect {
        let frame = self.frame(true);
        Rect::new(frame.x, frame.y, frame.w, CELL_PX - 5)
    }

    fn close_button(&self) -> Rect {
        let bar = self.title_bar();
        Rect::new(bar.x + bar.w - 22, bar.y + 3, 16, 16)
    }

    fn minimize_button(&self) -> Rect {
        let close = self.close_button();
        Rect::new(close.x - 20, close.y, 16, 16)
    }

    fn menu_rect(&self, i: usize) -> Rect {
        let left = self.x + i as i32 * MENU_PX;
        Rect::new(left, self.y + CELL_PX, MENU_PX, CELL_PX - 2)
    }

    /// The menus that fit into its bar, the last one always among them.
    fn shown_menus(&self) -> &'static [Menu] {
        let all = menus(&self.app);
        let room = (self.app.size().0 / 2).max(1) as usize;
        &all[all.len().saturating_sub(room)..]
    }
}

impl Desktop {
    /// Everything of the shell in front of all windows: the first one that holds a place is
    /// hit.
    pub(super) fn chrome(&self) -> Vec<ChromeTarget> {
        let Some(shell) = self.shell() else {
            return Vec::new();
        };
        let mut all = Vec::new();
        if let Some(popup) = &shell.popup {
            for (i, item) in popup.items.iter().enumerate() {
                all.push(ChromeTarget {
                    rect: popup.item_rect(i),
                    chrome: Chrome::PopupItem(i),
                    phrase: format!("choose {}", item.label),
                });
            }
        }
        let bar = self.task_bar();
        for (i, (key, name)) in self.tasks().into_iter().enumerate() {
            all.push(ChromeTarget {
                rect: task_rect(bar, i),
                chrome: Chrome::Task(key),
                phrase: format!("show {name}"),
            });
        }
        all.push(ChromeTarget {
            rect: bar,
            chrome: Chrome::Bar,
            phrase: String::new(),
        });
        all
    }

    /// The chrome of one window: its buttons, title bar, menus.
    pub(super) fn window_chrome(&self, i: usize) -> Vec<ChromeTarget> {
        if self.shell().is_none() {
            return Vec::new();
        }
        let window = &self.windows()[i];
        let name = window.app.name();
        let mut all = vec![
            ChromeTarget {
                rect: window.close_button(),
                chrome: Chrome::Close(i),
                phrase: format!("close {name}"),
            },
            ChromeTarget {
                rect: window.minimize_button(),
                chrome: Chrome::Minimize(i),
                phrase: format!("minimize {name}"),
            },
            ChromeTarget {
                rect: window.title_bar(),
                chrome: Chrome::Title(i),
                phrase: String::new(),
            },
        ];
        for (m, menu) in window.shown_menus().iter().enumerate() {
            all.push(ChromeTarget {
                rect: window.menu_rect(m),
                chrome: Chrome::Menu(i, m),
                phrase: format!("open menu {}", menu.title),
            });
        }
        all
    }

    /// Opens a menu of a window.
    pub(super) fn open_menu(&mut self, i: usize, m: usize) {
        let window = &self.windows()[i];
        let rect = window.menu_rect(m);
        let items = window.shown_menus()[m].open();
        self.open_popup(rect.x, rect.y + rect.h, items);
    }

    /// Opens the first menu of a window at the pointer, as its context menu.
    pub(super) fn open_context_menu(&mut self, i: usize, x: i32, y: i32) {
        let items = menus(&self.windows()[i].app)[0].open();
        self.open_popup(x, y, items);
    }

    fn open_popup(&mut self, x: i32, y: i32, items: Vec<MenuItem>) {
        let (width, height) = self.size_px();
        let tall = items.len() as i32 * CELL_PX;
        if let Some(shell) = self.shell_mut() {
            shell.popup = Some(Popup {
                x: x.min(width - POPUP_PX).max(0),
                y: y.min(height - CELL_PX - tall).max(0),
                items,
            });
        }
    }

    /// What of the shell evaluators read.
    pub(super) fn desk_state(&self) -> Value {
        let keys = |placement: Placement| {
            let windows = self.windows().iter();
            let mut keys: Vec<&str> = windows
                .filter(|window| window.placement == placement)
                .map(|window| window.key.as_str())
                .collect();
            keys.sort_unstable();
            keys
        };
        let middle = self.size_px().0 / 2;
        let sides: Map<String, Value> = self
            .windows()
            .iter()
            .map(|window| {
                let left = window.frame(true).center().0 < middle;
                let side = if left { "left" } else { "right" };
                (window.key.clone(), Value::from(side))
            })
            .collect();
        json!({
            "front": self.front().map(|i| self.windows()[i].key.clone()),
            "closed": keys(Placement::Closed),
            "minimized": keys(Placement::Minimized),
            "side": sides,
        })
    }

    /// Draws what is in front of all windows.
    pub(super) fn draw_shell(&self, canvas: &mut Canvas, palette: &Palette) {
        let Some(shell) = self.shell() else {
            return;
        };
        let bar = self.task_bar();
        canvas.fill(bar, palette.bar);
        let front = self.front().map(|i| &self.windows()[i].key);
        for (i, (key, name)) in self.tasks().into_iter().enumerate() {
            let rect = task_rect(bar, i);
            let fill = if front == Some(&key) {
                palette.accent
            } else {
                palette.title
            };
            let rect = Rect::new(rect.x + 1, rect.y + 2, rect.w - 3, rect.h - 4);
            canvas.fill_round(rect, fill);
            let ink = Ink::plain(palette.title_text);
            canvas.text_within(rect.x + 6, rect.y + 5, rect.w - 8, name, ink);
        }
        if let Some(popup) = &shell.popup {
            let rect = popup.rect();
            canvas.fill(
                Rect::new(rect.x - 1, rect.y - 1, rect.w + 2, rect.h + 2),
                palette.dim,
            );
            canvas.fill(rect, palette.surface);
            for (i, item) in popup.items.iter().enumerate() {
                let row = popup.item_rect(i);
                let ink = Ink::plain(palette.text);
                canvas.text(row.x + GLYPH_WIDTH_PX, row.y + 7, &item.label, ink);
            }
        }
        if let Some((x, y)) = shell.pointer {
            draw_pointer(canvas, x, y);
        }
    }

    /// Draws the title buttons and the menu bar of a window.
    pub(super) fn draw_window_chrome(&self, canvas: &mut Canvas, i: usize, palette: &Palette) {
        if self.shell().is_none() {
            return;
        }
        let window = &self.windows()[i];
        for (rect, mark) in [
            (window.close_button(), 'x'),
            (window.minimize_button(), '-'),
        ] {
            canvas.fill_round(rect, palette.surface);
            canvas.glyph(rect.x + 5, rect.y + 1, mark, Ink::bold(palette.text));
        }
        let frame = window.frame(true);
        let row = window.menu_rect(0);
        canvas.fill(
            Rect::new(frame.x + 1, row.y, frame.w - 2, row.h),
            palette.control,
        );
        for (m, menu) in window.shown_menus().iter().enumerate() {
            let rect = window.menu_rect(m);
            let ink = Ink::plain(palette.text);
            canvas.text(rect.x + GLYPH_WIDTH_PX, rect.y + 6, menu.title, ink);
        }
    }

    fn task_bar(&self) -> Rect {
        let (width, height) = self.size_px();
        Rect::new(0, height - CELL_PX, width, CELL_PX)
    }

    /// Keys and names of all windows in the order of the task bar, which never changes.
    fn tasks(&self) -> Vec<(String, &'static str)> {
        let mut tasks: Vec<(String, &'static str)> = self
            .windows()
            .iter()
            .map(|window| (window.key.clone(), window.app.name()))
            .collect();
        tasks.sort_unstable();
        tasks
    }
}

impl ChromeTarget {
    /// Where to click on it, logical pixels.
    pub fn center(&self) -> (i32, i32) {
        match self.chrome {
            Chrome::PopupItem(_) | Chrome::Task(_) | Chrome::Menu(..) => {
                (self.rect.x + CELL_PX, self.rect.y + CENTER_PX)
            }
            Chrome::Title(_) => (self.rect.x + CELL_PX, self.rect.center().1),
            Chrome::Bar | Chrome::Close(_) | Chrome::Minimize(_) => self.rect.center(),
        }
    }
}

fn task_rect(bar: Rect, i: usize) -> Rect {
    Rect::new(bar.x + i as i32 * TASK_PX, bar.y, TASK_PX, bar.h)
}

fn draw_pointer(canvas: &mut Canvas, x: i32, y: i32) {
    let colors = [('#', [0, 0, 0]), ('w', [255, 255, 255])];
    canvas.bitmap(x, y, &POINTER, &colors);
}

const POINTER: [&str; 12] = [
    "#.......", "##......", "#w#.....", "#ww#....", "#www#...", "#wwww#..", "#wwwww#.", "#wwww###",
    "#ww#w#..", "#w#.#w#.", "##..#w#.", "#....##.",
];
