//! The expert's hands on the applications of the compact suite.

use serde_json::Value;

use super::{Expert, Hand, hotkey, step, type_text};
use crate::env::simulated::app::{Dialog, Editor, Files, Form, Format, Glyph, Settings, Themes};
use crate::env::simulated::goal::Goal;
use crate::env::simulated::widget::Part;
use crate::types::{Action, ScrollDirection};

impl Hand<'_> {
    pub(super) fn edit(&self, app: &Editor, goal: &Goal) -> Option<Expert> {
        let undo = || Some(step("undo", hotkey(&["ctrl", "z"])));
        let text = self.wanted(goal, "text").and_then(Value::as_str);
        let text = text.map_or_else(|| app.text(), str::to_owned);
        let styles = self.wanted(goal, "styles").and_then(Value::as_array);
        let styles: Vec<&str> = styles.map_or_else(Vec::new, |styles| {
            styles.iter().filter_map(Value::as_str).collect()
        });
        let now = distance(&app.glyphs, &text, &styles);
        let before = app.undo.last();
        if before.is_some_and(|glyphs| distance(glyphs, &text, &styles) < now) {
            return undo();
        }
        if app.text() != text {
            return self
                .change_case(&app.text(), &text)
                .or_else(|| Some(self.write(app, &text)));
        }
        let wrong = (0..app.glyphs.len()).find_map(|i| {
            let wants = |format: &Format| styles[i].split(' ').any(|name| name == format.name());
            let mut formats = Format::ALL.iter().filter(|format| **format != Format::Save);
            formats
                .find(|format| wants(format) != app.glyphs[i].has(**format))
                .map(|format| (i, *format))
        });
        if let Some((i, format)) = wrong {
            return self.format(app, i, format, &styles);
        }
        let saved = self.wanted(goal, "saved").and_then(Value::as_bool);
        if saved == Some(true) && !app.saved {
            return self.press(app, Format::Save);
        }
        None
    }

    fn press(&self, app: &Editor, format: Format) -> Option<Expert> {
        let button = app.buttons.iter().position(|other| *other == format)?;
        self.click(format!("press {}", format.name()), Part::Button(button))
    }

    /// Toggles a format that character `i` has wrong: on the whole text if all of it wants
    /// the toggle, else on that character alone.
    fn format(&self, app: &Editor, i: usize, format: Format, styles: &[&str]) -> Option<Expert> {
        let has = app.glyphs[i].has(format);
        let all = app.glyphs.iter().zip(styles).all(|(glyph, style)| {
            glyph.has(format) == has && style.split(' ').any(|name| name == format.name()) != has
        });
        let range = if all && 1 < app.glyphs.len() {
            0..app.glyphs.len()
        } else {
            i..i + 1
        };
        if app.selected() == range {
            self.press(app, format)
        } else if range.len() == 1 {
            self.click(format!("select {}", app.glyphs[i].ch), Part::Item(i))
        } else {
            Some(step("select all", hotkey(&["ctrl", "a"])))
        }
    }

    fn write(&self, app: &Editor, text: &str) -> Expert {
        let now = app.text();
        let end = app.glyphs.len();
        // Text that is wanted twice is copied rather than typed.
        if !now.is_empty() && text == format!("{now}{now}") {
            return if self.desktop.clipboard() == now {
                if app.selected() == (end..end) {
                    step("paste", hotkey(&["ctrl", "v"]))
                } else {
                    step("go to the end", hotkey(&["end"]))
                }
            } else if app.selected() == (0..end) {
                step("copy", hotkey(&["ctrl", "c"]))
            } else {
                step("select all", hotkey(&["ctrl", "a"]))
            };
        }
        if app.selected() != (0..end) {
            step("select all", hotkey(&["ctrl", "a"]))
        } else if text.is_empty() {
            step("press delete", hotkey(&["delete"]))
        } else {
            type_text(text)
        }
    }

    pub(super) fn switch(&self, app: &Settings, goal: &Goal) -> Option<Expert> {
        let wrong = (0..app.rows.len()).filter(|i| {
            let row = &app.rows[*i];
            let wanted = self.wanted(goal, &row.label).and_then(Value::as_bool);
            wanted.is_some_and(|on| on != row.on)
        });
        let visible = app.visible();
        // What is on the screen first, in the order of the goal.
        let order = |i: &usize| {
            let pointer = format!("/{}/{}", self.window.key, app.rows[*i].label);
            let place = goal.goal.keys().position(|other| *other == pointer);
            (!visible.contains(i), place.unwrap_or(0))
        };
        let i = wrong.min_by_key(order)?;
        if visible.contains(&i) {
            return self.click(format!("press {}", app.rows[i].label), Part::Item(i));
        }
        let (name, direction) = if i < visible.start {
            ("up", ScrollDirection::Up)
        } else {
            ("down", ScrollDirection::Down)
        };
        let at = self.place(Part::Item(visible.start));
        Some(step(
            format!("scroll {name}"),
            Action::Scroll { at, direction },
        ))
    }

    pub(super) fn choose(&self, app: &Themes, goal: &Goal) -> Option<Expert> {
        let wanted = self.wanted(goal, "applied")?.as_str()?;
        if app.applied_label() == wanted {
            return None;
        }
        if app.chosen_label() == wanted {
            return self.click("press Apply", Part::Ok);
        }
        let i = app.choices.iter().position(|c| c.label == wanted)?;
        self.click(format!("pick {wanted}"), Part::Item(i))
    }

    pub(super) fn file(&self, app: &Files, goal: &Goal) -> Option<Expert> {
        let wanted = |name: &str| self.wanted(goal, &format!("entries/{name}"));
        if let Some(question) = &app.question {
            let name = app.entries.get(question.entry).map(|e| e.name.as_str())?;
            let go = wanted(name) == Some(&Value::Null) && self.new_name(app, goal, name).is_none();
            return if go {
                self.click("press OK", Part::Ok)
            } else {
                self.click("press Cancel", Part::Cancel)
            };
        }
        if let Some((typed, all)) = &app.editing {
            let name = app.selected.and_then(|i| app.entries.get(i));
            let new_name = name.and_then(|entry| self.new_name(app, goal, &entry.name));
            return Some(match new_name {
                Some(new_name) if typed == new_name => step("press enter", hotkey(&["enter"])),
                Some(new_name) if *all => type_text(new_name),
                Some(_) => step("select all", hotkey(&["ctrl", "a"])),
                None => step("press esc", hotkey(&["esc"])),
            });
        }
        self.mend_files(app, goal).or_else(|| {
            let opened = self.wanted(goal, "opened").and_then(Value::as_str)?;
            if app.opened.as_deref() == Some(opened) {
                return None;
            }
            let at = self.place(Part::Item(app.find(opened)?))?;
            Some(step(format!("open {opened}"), Action::LeftDouble { at }))
        })
    }

    /// The next step for a file that is not what the goal wants it to be.
    fn mend_files(&self, app: &Files, goal: &Goal) -> Option<Expert> {
        let wanted = |name: &str| self.wanted(goal, &format!("entries/{name}"));
        // Something that should be there is not, and no file is left to be renamed to it.
        let strange = app
            .entries
            .iter()
            .any(|entry| wanted(&entry.name).is_none());
        let binned = app
            .entries
            .iter()
            .any(|entry| entry.binned && wanted(&entry.name).is_some_and(|place| place != "bin"));
        let names = goal.keep.keys().filter_map(|key| self.entry_name(key));
        let lost = names.clone().any(|name| {
            let known = app.entries.iter().any(|entry| entry.name == name);
            !known && wanted(name).is_some_and(|place| !place.is_null())
        });
        let taken = self.renamed_wrongly(app, goal);
        if strange || binned || lost || taken {
            return (!app.undo.is_empty()).then(|| step("undo", hotkey(&["ctrl", "z"])));
        }
        let order = |name: &str| {
            let pointer = format!("/{}/entries/{name}", self.window.key);
            goal.goal.keys().position(|other| *other == pointer)
        };
        let wrong = app.entries.iter().enumerate().filter(|(_, entry)| {
            let place = if entry.binned { "bin" } else { "here" };
            wanted(&entry.name).is_some_and(|wanted| wanted != place)
        });
        let (i, entry) = wrong.min_by_key(|(_, entry)| order(&entry.name))?;
        let name = &entry.name;
        if wanted(name)? == "bin" {
            let (from, to) = (self.place(Part::Item(i))?, self.place(Part::Bin)?);
            let thought = format!("move {name} to Bin");
            return Some(step(thought, Action::Drag { from, to }));
        }
        if app.selected != Some(i) {
            return self.click(format!("select {name}"), Part::Item(i));
        }
        Some(if self.new_name(app, goal, name).is_some() {
            step("press f2", hotkey(&["f2"]))
        } else {
            step("press delete", hotkey(&["delete"]))
        })
    }

    /// The name a file is to get, if it is to be renamed: the goal removes the old name and
    /// wants a new one; with several old names it is the last that is renamed.
    fn new_name<'g>(&self, app: &Files, goal: &'g Goal, name: &str) -> Option<&'g str> {
        let last = goal
            .goal
            .iter()
            .rfind(|(_, place)| place.is_null())
            .and_then(|(key, _)| self.entry_name(key))?;
        let new_name = goal
            .goal
            .iter()
            .find(|(_, place)| *place == "here")
            .and_then(|(key, _)| self.entry_name(key))?;
        let done = app.entries.iter().any(|entry| entry.name == new_name);
        (last == name && !done).then_some(new_name)
    }

    /// Whether the wrong file got the new name, or the file to be renamed was deleted.
    fn renamed_wrongly(&self, app: &Files, goal: &Goal) -> bool {
        let new = goal.goal.iter().find(|(_, place)| *place == "here");
        let Some(new) = new.and_then(|(key, _)| self.entry_name(key)) else {
            return false;
        };
        let old = goal.goal.iter().rfind(|(_, place)| place.is_null());
        let old = old.and_then(|(key, _)| self.entry_name(key));
        let has = |name: &str| app.entries.iter().any(|entry| entry.name == name);
        old.is_some_and(|old| has(old) == has(new))
    }

    fn entry_name<'k>(&self, pointer: &'k str) -> Option<&'k str> {
        pointer
            .strip_prefix('/')?
            .strip_prefix(self.window.key.as_str())?
            .strip_prefix("/entries/")
    }

    pub(super) fn answer(&self, app: &Dialog, goal: &Goal) -> Option<Expert> {
        let wanted = self.wanted(goal, "pressed")?.as_array()?;
        let done = app.pressed.len();
        if app.pressed.iter().zip(wanted).any(|(a, b)| a != b) {
            return None;
        }
        let wanted = wanted.get(done)?.as_str()?;
        let buttons = &app.page()?.buttons;
        let i = buttons.iter().position(|button| button == wanted)?;
        self.click(format!("press {wanted}"), Part::Button(i))
    }

    pub(super) fn fill(&self, app: &Form, goal: &Goal) -> Option<Expert> {
        let wanted = |label: &str| {
            let text = self.wanted(goal, &format!("fields/{label}"))?;
            text.as_str()
        };
        let order = |label: &str| {
            let pointer = format!("/{}/fields/{label}", self.window.key);
            goal.goal.keys().position(|other| *other == pointer)
        };
        let wrong = app
            .fields
            .iter()
            .enumerate()
            .filter(|(_, field)| wanted(&field.label).is_some_and(|text| text != field.text));
        if let Some((i, field)) = wrong.min_by_key(|(_, field)| order(&field.label)) {
            let text = wanted(&field.label)?;
            let ready = app.focus == Some((i, !field.text.is_empty()));
            return if !ready {
                self.click(format!("press {}", field.label), Part::Item(i))
            } else if text.is_empty() {
                Some(step("press delete", hotkey(&["delete"])))
            } else {
                Some(type_text(text))
            };
        }
        let agree = self.wanted(goal, "agree").and_then(Value::as_bool);
        let sent = self.wanted(goal, "sent").and_then(Value::as_bool);
        // Ticking takes a form back that should not have been sent.
        if agree.is_some_and(|agree| agree != app.agree) || (sent == Some(false) && app.sent) {
            return self.click("tick Agree", Part::Ok);
        }
        if sent == Some(true) && !app.sent {
            return self.click("press Send", Part::Button(0));
        }
        None
    }
}

/// How far a text is from the wanted one: a large number where the characters differ, else
/// the number of formats that differ.
fn distance(glyphs: &[Glyph], text: &str, styles: &[&str]) -> usize {
    let same = glyphs.len() == styles.len() && glyphs.iter().map(|glyph| glyph.ch).eq(text.chars());
    if !same {
        return usize::MAX;
    }
    glyphs
        .iter()
        .zip(styles)
        .map(|(glyph, style)| {
            let wanted: Vec<&str> = style.split(' ').filter(|name| !name.is_empty()).collect();
            let has = |name: &&&str| glyph.formats.iter().any(|format| format.name() == **name);
            let common = wanted.iter().filter(has).count();
            wanted.len() + glyph.formats.len() - 2 * common
        })
        .sum()
}
