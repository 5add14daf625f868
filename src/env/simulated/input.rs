//! What actions do to a desktop: mouse, keyboard, wheel, to whatever they hit.

use super::app::Input;
use super::desktop::{Desktop, Placement, Spot};
use super::shell::Chrome;
use super::widget::{CELL_PX, Part};
use crate::types::{Action, Point, ScrollDirection};

impl Desktop {
    /// Carries out one action. Terminal actions and waiting change nothing.
    pub fn apply(&mut self, action: &Action) {
        match action {
            Action::Click { at } => self.press(*at, Input::Click),
            Action::LeftDouble { at } => self.press(*at, Input::Double),
            Action::RightSingle { at } => self.press_right(*at),
            Action::Hover { at } => self.move_pointer(*at),
            Action::Drag { from, to } => self.drag(*from, *to),
            Action::Hotkey { keys } => self.keys(&keys.join("+")),
            Action::Press { key } => self.keys(key),
            Action::Type { content } => self.tell(&Input::Text(content.clone())),
            Action::Scroll { at, direction } => match direction {
                ScrollDirection::Down => self.scroll(*at, 1),
                ScrollDirection::Up => self.scroll(*at, -1),
                ScrollDirection::Left | ScrollDirection::Right => {}
            },
            Action::Wait | Action::Finished { .. } | Action::Fail | Action::CallUser => {}
        }
    }

    fn move_pointer(&mut self, at: Point) {
        let place = self.logical(at);
        if let Some(shell) = &mut self.shell {
            shell.pointer = Some(place);
        }
    }

    fn press(&mut self, at: Point, input: impl FnOnce(Part) -> Input) {
        self.move_pointer(at);
        let spot = self.spot(at);
        // A click anywhere but on an open menu closes it and does nothing else.
        let popup = self.shell.as_mut().and_then(|shell| shell.popup.take());
        match (spot, popup) {
            (Some(Spot::Chrome(Chrome::PopupItem(i))), Some(popup)) => {
                if let Some(item) = popup.items.get(i) {
                    self.keys(&item.keys);
                }
            }
            (_, Some(_)) | (None, None) => {}
            (Some(Spot::Chrome(chrome)), None) => self.press_chrome(&chrome),
            (Some(Spot::Content(i, part)), None) => {
                self.raise(i);
                self.tell(&input(part));
            }
        }
    }

    fn press_right(&mut self, at: Point) {
        let place = self.logical(at);
        self.press(at, Input::Right);
        let hit = match self.spot(at) {
            Some(Spot::Content(i, _)) => Some(i),
            Some(Spot::Chrome(_)) | None => None,
        };
        if let Some(i) = hit.filter(|_| self.shell.is_some()) {
            self.open_context_menu(i, place.0, place.1);
        }
    }

    fn press_chrome(&mut self, chrome: &Chrome) {
        match chrome {
            Chrome::Task(key) => {
                if let Some(i) = self.windows.iter().position(|w| w.key == *key) {
                    self.raise(i);
                }
            }
            Chrome::Close(i) => self.windows[*i].placement = Placement::Closed,
            Chrome::Minimize(i) => self.windows[*i].placement = Placement::Minimized,
            Chrome::Title(i) => self.raise(*i),
            Chrome::Menu(i, m) => {
                let m = *m;
                self.raise(*i);
                self.open_menu(self.windows.len() - 1, m);
            }
            Chrome::PopupItem(_) | Chrome::Bar => {}
        }
    }

    fn drag(&mut self, from: Point, to: Point) {
        self.move_pointer(to);
        match self.spot(from) {
            Some(Spot::Content(i, start)) => {
                let end = match self.spot(to) {
                    Some(Spot::Content(j, end)) if i == j => Some(end),
                    Some(_) | None => None,
                };
                self.raise(i);
                if let Some(end) = end {
                    self.tell(&Input::Drag(start, end));
                }
            }
            Some(Spot::Chrome(Chrome::Title(i))) => {
                let (start, end) = (self.logical(from), self.logical(to));
                self.raise(i);
                let last = self.windows.len() - 1;
                let by = (end.0.saturating_sub(start.0), end.1.saturating_sub(start.1));
                self.move_window(last, by);
            }
            Some(Spot::Chrome(_)) | None => {}
        }
    }

    /// Moves a window as far as the screen above the task bar allows.
    fn move_window(&mut self, i: usize, by: (i32, i32)) {
        let (width, height) = self.size_px();
        let window = &mut self.windows[i];
        let frame = window.frame(true);
        let dx =
            by.0.clamp(-frame.x, (width - frame.w - frame.x).max(-frame.x));
        let room = height - CELL_PX - frame.h - frame.y;
        window.x += dx;
        window.y += by.1.clamp(-frame.y, room.max(-frame.y));
    }

    fn scroll(&mut self, at: Option<Point>, notches: i32) {
        let input = Input::Scroll(notches);
        if self.shell.is_none() {
            self.tell(&input);
            return;
        }
        let spot = at.map_or_else(
            || self.front().map(|i| Spot::Content(i, Part::Blank)),
            |at| self.spot(at),
        );
        if let Some(Spot::Content(i, _)) = spot {
            self.windows[i].app.handle(&input, &mut self.clipboard);
        }
    }

    fn keys(&mut self, keys: &str) {
        let keys = keys.to_lowercase();
        if let Some(shell) = &mut self.shell
            && shell.popup.is_some()
        {
            // An open menu has the keyboard.
            if keys == "esc" {
                shell.popup = None;
            }
            return;
        }
        let front = self.front().filter(|_| self.shell.is_some());
        match (keys.as_str(), front) {
            ("window+close" | "alt+f4", Some(i)) => self.windows[i].placement = Placement::Closed,
            ("window+minimize", Some(i)) => self.windows[i].placement = Placement::Minimized,
            ("alt+tab", Some(_)) => {
                if let [.., second, _] = self.shown()[..] {
                    self.raise(second);
                }
            }
            _ => self.tell(&Input::Keys(keys)),
        }
    }

    /// Brings a window to the front, back onto the screen if it was not there.
    fn raise(&mut self, i: usize) {
        let mut window = self.windows.remove(i);
        window.placement = Placement::Shown;
        self.windows.push(window);
    }

    fn tell(&mut self, input: &Input) {
        let popup = self
            .shell
            .as_ref()
            .is_some_and(|shell| shell.popup.is_some());
        if let Some(i) = self.front().filter(|_| !popup) {
            self.windows[i].app.handle(input, &mut self.clipboard);
        }
    }
}
