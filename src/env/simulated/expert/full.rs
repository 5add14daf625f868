//! The expert's hands on the applications and the shell that only the full desktop has.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Expert, Hand, hotkey, reach, step, type_text};
use crate::env::simulated::app::{
    Calculator, Calendar, KEYS, Kind, MONTHS, Mail, Place, Player, Sheet, Terminal, cell_name,
};
use crate::env::simulated::desktop::{Desktop, Placement};
use crate::env::simulated::goal::Goal;
use crate::env::simulated::shell::Chrome;
use crate::env::simulated::widget::Part;
use crate::types::{Action, Point};

/// Brings a window to the front by its button in the task bar.
pub(super) fn show(desktop: &Desktop, i: usize) -> Expert {
    let window = &desktop.windows()[i];
    let task = Chrome::Task(window.key.clone());
    let at = chrome_center(desktop, &task).unwrap_or(Point { x: 0.0, y: 0.0 });
    step(format!("show {}", window.app.name()), Action::Click { at })
}

/// The next step towards a goal about windows: which are closed, minimized, in front, on
/// which side.
pub(super) fn arrange(desktop: &Desktop, goal: &Goal) -> Option<Expert> {
    let windows = desktop.windows();
    let listed = |list: &str, key: &str| {
        let all = goal.wanted(&format!("/desk/{list}"))?.as_array()?;
        Some(all.iter().any(|other| other == key))
    };
    for (i, window) in windows.iter().enumerate() {
        for (list, placement) in [
            ("closed", Placement::Closed),
            ("minimized", Placement::Minimized),
        ] {
            match listed(list, &window.key) {
                Some(false) if window.placement == placement => return Some(show(desktop, i)),
                Some(true) if window.placement != placement => {
                    let chrome = match placement {
                        Placement::Closed => Chrome::Close(i),
                        Placement::Minimized | Placement::Shown => Chrome::Minimize(i),
                    };
                    return Some(press_chrome(desktop, i, &chrome));
                }
                Some(_) | None => {}
            }
        }
        let side = goal.goal.get(&format!("/desk/side/{}", window.key));
        let state = desktop.state();
        let now = state.pointer(&format!("/desk/side/{}", window.key));
        if side.is_some() && side != now {
            return Some(move_across(desktop, i, side == Some(&Value::from("left"))));
        }
    }
    let front = goal.goal.get("/desk/front")?.as_str()?;
    let i = windows.iter().position(|window| window.key == front)?;
    (desktop.front() != Some(i)).then(|| show(desktop, i))
}

/// Clicks a title button, once its window is in front.
fn press_chrome(desktop: &Desktop, i: usize, chrome: &Chrome) -> Expert {
    let name = desktop.windows()[i].app.name();
    let verb = match chrome {
        Chrome::Close(_) => "close",
        _ => "minimize",
    };
    let at = chrome_center(desktop, chrome).unwrap_or(Point { x: 0.0, y: 0.0 });
    let click = step(format!("{verb} {name}"), Action::Click { at });
    reach(desktop, i, &click)
}

/// Drags a window's title to the other half of the screen.
fn move_across(desktop: &Desktop, i: usize, to_left: bool) -> Expert {
    let from = chrome_center(desktop, &Chrome::Title(i)).unwrap_or(Point { x: 0.0, y: 0.0 });
    let width = desktop.screen_size().width as f32;
    // As far as it goes: the shell keeps windows on the screen.
    let x = if to_left { 1.0 } else { width - 2.0 };
    let name = desktop.windows()[i].app.name();
    let side = if to_left { "left" } else { "right" };
    let to = Point { x, y: from.y };
    let drag = step(
        format!("move {name} to the {side}"),
        Action::Drag { from, to },
    );
    reach(desktop, i, &drag)
}

fn chrome_center(desktop: &Desktop, wanted: &Chrome) -> Option<Point> {
    let windows = 0..desktop.windows().len();
    let mut all = desktop
        .chrome()
        .into_iter()
        .chain(windows.flat_map(|i| desktop.window_chrome(i)));
    let target = all.find(|target| target.chrome == *wanted)?;
    let (x, y) = target.center();
    Some(desktop.screen_point(x, y))
}

impl Hand<'_> {
    /// Chooses an item of a menu of this window: opens the menu first.
    fn choose_in_menu(&self, menu: &str, label: &str) -> Option<Expert> {
        let popup = self.desktop.shell()?.popup.as_ref();
        let item = popup.and_then(|popup| popup.items.iter().position(|i| i.label == label));
        let (thought, chrome) = if let Some(item) = item {
            (format!("choose {label}"), Chrome::PopupItem(item))
        } else {
            let windows = self.desktop.windows();
            let i = windows
                .iter()
                .position(|window| window.key == self.window.key)?;
            let phrase = format!("open menu {menu}");
            let chrome = self.desktop.window_chrome(i);
            let title = chrome.into_iter().find(|target| target.phrase == phrase)?;
            (phrase, title.chrome)
        };
        let at = chrome_center(self.desktop, &chrome)?;
        Some(step(thought, Action::Click { at }))
    }

    /// Upper case, if that is what the text lacks.
    pub(super) fn change_case(&self, now: &str, wanted: &str) -> Option<Expert> {
        self.desktop.shell()?;
        if now == wanted {
            None
        } else if now.to_ascii_uppercase() == wanted {
            self.choose_in_menu("Text", "Upper case")
        } else if now.to_ascii_lowercase() == wanted {
            self.choose_in_menu("Text", "Lower case")
        } else {
            None
        }
    }

    pub(super) fn calculate(&self, app: &Calculator, goal: &Goal) -> Option<Expert> {
        let wanted = self.wanted(goal, "worked_out")?.as_str()?;
        if app.worked_out() == wanted {
            return None;
        }
        let sequence = format!("{wanted}=");
        let next = sequence.strip_prefix(app.tape.as_str());
        let key = next.and_then(|rest| rest.chars().next()).unwrap_or('C');
        let i = KEYS.iter().position(|other| *other == key)?;
        self.click(format!("press {key}"), Part::Button(i))
    }

    pub(super) fn sort_mail(&self, app: &Mail, goal: &Goal) -> Option<Expert> {
        for (i, message) in app.messages.iter().enumerate() {
            let subject = &message.subject;
            let place = self.wanted(goal, &format!("messages/{subject}/place"));
            let starred = self.wanted(goal, &format!("messages/{subject}/starred"));
            let is_place =
                |place: &Value| serde_json::to_value(message.place).ok().as_ref() == Some(place);
            if place.is_some_and(|place| !is_place(place)) {
                if message.place != Place::Inbox {
                    // Nothing brings a message back but undoing; an answer being written
                    // would take the keys.
                    let keys: &[&str] = if app.draft.is_some() {
                        &["esc"]
                    } else {
                        &["ctrl", "z"]
                    };
                    let thought = if app.draft.is_some() {
                        "press esc"
                    } else {
                        "undo"
                    };
                    return (!app.undo.is_empty()).then(|| step(thought, hotkey(keys)));
                }
                if app.selected != Some(i) {
                    return self.click(format!("select {subject}"), Part::Item(i));
                }
                let archive = place.is_some_and(|place| place == "archive");
                let (thought, button) = if archive {
                    ("press Archive", 1)
                } else {
                    ("press Delete", 2)
                };
                return self.click(thought, Part::Button(button));
            }
            if starred.is_some_and(|starred| *starred != Value::Bool(message.starred)) {
                let star = Part::Item(app.messages.len() + i);
                return self.click(format!("star {subject}"), star);
            }
            let read = goal
                .goal
                .get(&format!("/{}/read/{subject}", self.window.key));
            if read.is_some() && !message.read {
                return self.click(format!("select {subject}"), Part::Item(i));
            }
        }
        self.reply(app, goal)
    }

    fn reply(&self, app: &Mail, goal: &Goal) -> Option<Expert> {
        let wanted = self.wanted(goal, "sent")?.as_array()?;
        let done = app.sent.len();
        if app.sent.iter().zip(wanted).any(|(a, b)| a != b) {
            return None;
        }
        let (from, text) = wanted.get(done)?.as_str()?.split_once(": ")?;
        let i = app
            .messages
            .iter()
            .position(|message| message.from == from)?;
        if app.selected != Some(i) {
            let subject = &app.messages[i].subject;
            return self.click(format!("select {subject}"), Part::Item(i));
        }
        match app.draft.as_deref() {
            None => self.click("press Reply", Part::Button(0)),
            Some("") => Some(type_text(text)),
            Some(draft) if draft == text => self.click("press Send", Part::Button(3)),
            Some(_) => Some(step("press esc", hotkey(&["esc"]))),
        }
    }

    pub(super) fn tabulate(&self, app: &Sheet, goal: &Goal) -> Option<Expert> {
        let (i, wanted) = app.cells.iter().enumerate().find_map(|(i, text)| {
            let wanted = self.wanted(goal, &cell_name(i))?.as_str()?;
            (wanted != text).then_some((i, wanted))
        })?;
        if app.selected != Some(i) {
            return self.click(format!("select {}", cell_name(i)), Part::Item(i));
        }
        if wanted.is_empty() {
            return Some(step("press delete", hotkey(&["delete"])));
        }
        if app.sum_above(i).to_string() == wanted && i >= 6 {
            return self.choose_in_menu("Data", "Sum above");
        }
        Some(type_text(wanted))
    }

    pub(super) fn plan(&self, app: &Calendar, goal: &Goal) -> Option<Expert> {
        let wanted = |day: &str| {
            let event = self.wanted(goal, &format!("events/{day}"))?;
            event.as_str()
        };
        // Wrong and unwanted events first, then those that are lacking.
        let known = app.events.iter();
        let mut extra = known.filter(|(day, _)| wanted(day).is_none());
        if let Some((day, _)) = extra.next() {
            return self.on_day(app, day, |_| step("press delete", hotkey(&["delete"])));
        }
        let prefix = format!("/{}/events/", self.window.key);
        let all = goal.goal.iter().chain(&goal.keep);
        let events =
            all.filter_map(|(key, event)| Some((key.strip_prefix(&prefix)?, event.as_str()?)));
        for (day, event) in events {
            if app.events.get(day).map(String::as_str) != Some(event) {
                return self.on_day(app, day, |draft| match draft {
                    "" => type_text(event),
                    draft if draft == event => step("press enter", hotkey(&["enter"])),
                    _ => step("press esc", hotkey(&["esc"])),
                });
            }
        }
        let month = self.wanted(goal, "month")?.as_str()?;
        if goal
            .goal
            .contains_key(&format!("/{}/month", self.window.key))
        {
            return self.turn_to(app, month);
        }
        None
    }

    /// Turns the pages to a month, if it is not on the screen.
    fn turn_to(&self, app: &Calendar, month: &str) -> Option<Expert> {
        let wanted = MONTHS.iter().position(|name| *name == month)?;
        let ahead = (wanted + MONTHS.len() - app.month % MONTHS.len()) % MONTHS.len();
        match ahead {
            0 => None,
            1..=6 => self.click("press next", Part::Button(1)),
            _ => self.click("press previous", Part::Button(0)),
        }
    }

    /// Selects a day such as `May 14`, then goes on by what has been typed there.
    fn on_day(
        &self,
        app: &Calendar,
        name: &str,
        then: impl FnOnce(&str) -> Expert,
    ) -> Option<Expert> {
        let (month, day) = name.split_once(' ')?;
        let day: usize = day.parse().ok()?;
        self.turn_to(app, month).or_else(|| {
            if app.selected == Some(day) {
                Some(then(&app.draft))
            } else {
                self.click(format!("select day {day}"), Part::Item(day))
            }
        })
    }

    pub(super) fn play(&self, app: &Player, goal: &Goal) -> Option<Expert> {
        if let Some(wanted) = self.wanted(goal, "playing")
            && wanted.as_str() != app.track()
        {
            let Some(track) = wanted.as_str() else {
                return self.click("press Pause", Part::Button(1));
            };
            let i = app.tracks.iter().position(|other| other == track)?;
            let at = self.place(Part::Item(i))?;
            return Some(step(format!("play {track}"), Action::LeftDouble { at }));
        }
        let volume = self.wanted(goal, "volume")?.as_u64()?;
        match u64::from(app.volume).cmp(&volume) {
            Ordering::Equal => None,
            Ordering::Less => self.click("press Vol+", Part::Button(4)),
            Ordering::Greater => self.click("press Vol-", Part::Button(3)),
        }
    }

    pub(super) fn command(&self, app: &Terminal, goal: &Goal) -> Option<Expert> {
        let command = self.next_command(app, goal)?;
        Some(if app.prompt == command {
            step("press enter", hotkey(&["enter"]))
        } else if app.prompt.is_empty() {
            type_text(&command)
        } else {
            step("clear the line", hotkey(&["ctrl", "u"]))
        })
    }

    /// The command that brings the folder nearer to the goal.
    fn next_command(&self, app: &Terminal, goal: &Goal) -> Option<String> {
        let prefix = format!("/{}/names/", self.window.key);
        let all = goal.goal.iter().chain(&goal.keep);
        let names: Vec<(&str, &Value)> = all
            .filter_map(|(key, kind)| Some((key.strip_prefix(&prefix)?, kind)))
            .collect();
        let is = |name: &str, kind: &Value| match app.names.get(name) {
            Some(Kind::File) => kind == "file",
            Some(Kind::Folder) => kind == "folder",
            None => kind.is_null(),
        };
        let unwanted = |name: &&String| {
            let known = names.iter().find(|(other, _)| other == name);
            known.is_none_or(|(other, kind)| !is(other, kind))
        };
        let extra = app.names.keys().find(unwanted);
        let lacking = names
            .iter()
            .find(|(name, kind)| !kind.is_null() && !app.names.contains_key(*name));
        match (extra, lacking) {
            (Some(old), Some((new, kind))) if is(old, kind) => Some(format!("mv {old} {new}")),
            (Some(old), _) => Some(format!("rm {old}")),
            (None, Some((new, kind))) if **kind == "folder" => Some(format!("mkdir {new}")),
            (None, Some((new, _))) => Some(format!("touch {new}")),
            (None, None) => None,
        }
    }
}
