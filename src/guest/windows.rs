//! Windows, as the window manager lists them: found by title or class, brought to the front, closed.
//!
//! What `wmctrl` does for the original, without it. Names are what `wmctrl` compares with: the
//! title, or `INSTANCE.CLASS`; a part of it whatever its case, or all of it exactly.

use std::thread::sleep;
use std::time::{Duration, Instant};

use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt, EventMask, GetPropertyReply, Window as Id,
};

use super::display::{Broken, Session};
use crate::types::ScreenSize;
use crate::types::osworld::setup::WindowName;

/// How long a window manager has to do what it was asked.
const OBEDIENCE: Duration = Duration::from_secs(2);

/// How long a window may still be coming: tasks start a program, wait for half a second and bring
/// its window to the front, which on a slow desktop is not there yet. What they type then would be
/// lost.
const APPEARANCE: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(20);

/// Of a title, in units of four bytes.
const MAX_TEXT: u32 = 4096;

/// Who asks the window manager: a pager, which may take the focus from others.
const FROM_PAGER: u32 = 2;

/// A window that the window manager manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) id: Id,
    pub(super) title: String,
    /// The two parts of its class.
    pub(super) class: [String; 2],
}

impl Window {
    pub(super) fn is_called(&self, name: &WindowName) -> bool {
        let own = if name.by_class {
            self.class.join(".")
        } else {
            self.title.clone()
        };
        if name.strict {
            own == name.window_name
        } else {
            holds(&own, &name.window_name)
        }
    }
}

/// Whether a text holds another, whatever their case.
pub(super) fn holds(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

impl Session {
    /// The windows that programs have opened, the oldest first.
    pub(super) fn windows(&self) -> Result<Vec<Window>, Broken> {
        let ids = self.numbers(self.root, "_NET_CLIENT_LIST")?;
        let windows = ids.into_iter().map(|id| self.window(id));
        // Those that closed meanwhile are none.
        windows.filter_map(Result::transpose).collect()
    }

    fn window(&self, id: Id) -> Result<Option<Window>, Broken> {
        let Some(class) = self.property(id, AtomEnum::WM_CLASS.into())? else {
            return Ok(None);
        };
        let title = match self.property(id, self.atom("_NET_WM_NAME")?)? {
            Some(title) if !title.value.is_empty() => Some(title),
            _ => self.property(id, AtomEnum::WM_NAME.into())?,
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut parts = class.value.split(|byte| *byte == 0).map(text);
        Ok(Some(Window {
            id,
            title: title.map_or_else(String::new, |title| text(&title.value)),
            class: [(); 2].map(|()| parts.next().unwrap_or_default()),
        }))
    }

    /// Brings the first window of a name to the front and waits until it is there; none if there is
    /// no such window, and none comes.
    pub(super) fn activate(&self, name: &WindowName) -> Result<Option<Window>, Broken> {
        wait_until(APPEARANCE, || Ok(self.find(name)?.is_some()))?;
        let Some(window) = self.find(name)? else {
            return Ok(None);
        };
        if let [desktop] = self.numbers(window.id, "_NET_WM_DESKTOP")?[..]
            && desktop != u32::MAX
        {
            self.tell_manager(self.root, "_NET_CURRENT_DESKTOP", [desktop, 0, 0, 0, 0])?;
        }
        self.tell_manager(window.id, "_NET_ACTIVE_WINDOW", [FROM_PAGER, 0, 0, 0, 0])?;
        wait_until(OBEDIENCE, || Ok(self.active_window()? == Some(window.id)))?;
        Ok(Some(window))
    }

    /// Asks the first window of a name to close and waits until it has, or asks a question first;
    /// none if there is no such window.
    pub(super) fn close(&self, name: &WindowName) -> Result<Option<Window>, Broken> {
        let Some(window) = self.find(name)? else {
            return Ok(None);
        };
        let before = self.windows()?;
        self.tell_manager(window.id, "_NET_CLOSE_WINDOW", [0, FROM_PAGER, 0, 0, 0])?;
        wait_until(OBEDIENCE, || {
            let now = self.windows()?;
            Ok(now.len() != before.len() || now.iter().all(|it| it.id != window.id))
        })?;
        Ok(Some(window))
    }

    /// The size of the first window with this as a part of its class.
    pub(super) fn size_of_class(&self, class: &str) -> Result<Option<ScreenSize>, Broken> {
        for window in self.windows()? {
            let is_it = window
                .class
                .iter()
                .any(|own| own.eq_ignore_ascii_case(class));
            if is_it && let Some(geometry) = there(self.x.get_geometry(window.id)?.reply())? {
                return Ok(Some(ScreenSize {
                    width: geometry.width.into(),
                    height: geometry.height.into(),
                }));
            }
        }
        Ok(None)
    }

    pub(super) fn active_window(&self) -> Result<Option<Id>, Broken> {
        Ok(self
            .numbers(self.root, "_NET_ACTIVE_WINDOW")?
            .first()
            .copied())
    }

    /// A text that a program left with the screen.
    pub(super) fn root_text(&self, name: &str) -> Result<Option<String>, Broken> {
        let property = self.property(self.root, self.atom(name)?)?;
        let text = property.map(|it| String::from_utf8_lossy(&it.value).into_owned());
        Ok(text.filter(|text| !text.is_empty()))
    }

    fn find(&self, name: &WindowName) -> Result<Option<Window>, Broken> {
        Ok(self.windows()?.into_iter().find(|it| it.is_called(name)))
    }

    fn tell_manager(&self, window: Id, what: &str, data: [u32; 5]) -> Result<(), Broken> {
        let event = ClientMessageEvent::new(32, window, self.atom(what)?, data);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.x.send_event(false, self.root, mask, event)?;
        self.sync()
    }

    fn numbers(&self, window: Id, property: &str) -> Result<Vec<u32>, Broken> {
        let property = self.property(window, self.atom(property)?)?;
        let numbers = property.as_ref().and_then(GetPropertyReply::value32);
        Ok(numbers.map(Iterator::collect).unwrap_or_default())
    }

    /// A property of a window; none where the window is gone.
    fn property(&self, window: Id, property: u32) -> Result<Option<GetPropertyReply>, Broken> {
        let kind = AtomEnum::ANY;
        let asked = self
            .x
            .get_property(false, window, property, kind, 0, MAX_TEXT)?;
        there(asked.reply())
    }

    fn atom(&self, name: &str) -> Result<u32, Broken> {
        Ok(self.x.intern_atom(false, name.as_bytes())?.reply()?.atom)
    }
}

/// Looks again and again for so long, and goes on where it never holds.
fn wait_until(limit: Duration, holds: impl Fn() -> Result<bool, Broken>) -> Result<(), Broken> {
    let end = Instant::now() + limit;
    while !holds()? && Instant::now() < end {
        sleep(POLL);
    }
    Ok(())
}

/// What a window was asked for; none where there is no such window any more.
fn there<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, Broken> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(ReplyError::ConnectionError(error)) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::Window;
    use crate::types::osworld::setup::WindowName;

    #[test]
    fn names_are_compared_as_wmctrl_does() {
        let window = Window {
            id: 1,
            title: "Notes.txt - Editor".to_owned(),
            class: ["editor".to_owned(), "Editor".to_owned()],
        };
        let table = [
            ("notes", false, false, true),
            ("notes", true, false, false),
            ("Notes.txt - Editor", true, false, true),
            ("editor.editor", false, true, true),
            ("editor.editor", true, true, false),
            ("editor.Editor", true, true, true),
            ("Notes", false, true, false),
        ];
        for (window_name, strict, by_class, expected) in table {
            let name = WindowName {
                window_name: window_name.to_owned(),
                strict,
                by_class,
            };
            assert_eq!(window.is_called(&name), expected, "{name:?}");
        }
    }
}
