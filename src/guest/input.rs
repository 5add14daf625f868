//! Pointer and keys, by the X server's test extension: gestures one after another.
//!
//! What a gesture stands for is decided by `act` and `pyautogui`; this is how it is done.

use std::thread::sleep;
use std::time::Duration;

use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt, KEY_PRESS_EVENT, KEY_RELEASE_EVENT,
    MOTION_NOTIFY_EVENT,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use super::display::{Broken, DisplayError, PATIENCE, Session};
use super::keyboard::{Key, Keyboard, SHIFT, symbol_of_char, symbol_of_key};

/// Between the parts of a click: with the same time on both, some programs see none.
const CLICK_PAUSE: Duration = Duration::from_millis(10);

/// Between two places of a slow move; a screen shows no more.
const MOVE_INTERVAL: Duration = Duration::from_millis(16);

/// Between typed characters; less where a text is so long that it would take half a minute.
const TYPE_INTERVAL: Duration = Duration::from_millis(10);

/// How long typing a text may take, beside the X server's own work.
const TYPE_LONGEST: Duration = Duration::from_secs(30);

/// Buttons as X numbers them; turning the wheel is pressing one.
pub(super) const LEFT: u8 = 1;
pub(super) const MIDDLE: u8 = 2;
pub(super) const RIGHT: u8 = 3;
pub(super) const WHEEL_UP: u8 = 4;
pub(super) const WHEEL_DOWN: u8 = 5;
pub(super) const WHEEL_LEFT: u8 = 6;
pub(super) const WHEEL_RIGHT: u8 = 7;

/// A part of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Gesture {
    /// Moves the pointer to a pixel, in a straight line where it takes time.
    MoveTo { x: i32, y: i32, over: Duration },
    /// Moves the pointer by so many pixels.
    MoveBy { x: i32, y: i32, over: Duration },
    /// Presses a button.
    ButtonDown(u8),
    /// Releases it.
    ButtonUp(u8),
    /// Presses a key, by name.
    KeyDown(String),
    /// Releases it.
    KeyUp(String),
    /// Types a text; ends of lines and tabulators are keys.
    Type { text: String, interval: Duration },
    /// Nothing.
    Rest(Duration),
}

impl Gesture {
    pub(super) fn move_to(x: i32, y: i32) -> Self {
        let over = Duration::ZERO;
        Self::MoveTo { x, y, over }
    }

    /// Presses a button so often.
    pub(super) fn clicks(button: u8, count: usize, pause: Duration) -> Vec<Self> {
        let click = [
            Self::ButtonDown(button),
            Self::Rest(CLICK_PAUSE),
            Self::ButtonUp(button),
            Self::Rest(pause.max(CLICK_PAUSE)),
        ];
        click.iter().cloned().cycle().take(4 * count).collect()
    }

    /// Keys together: held in their order, released in the opposite one.
    pub(super) fn chord<T: AsRef<str>>(keys: &[T]) -> Vec<Self> {
        let name = |key: &T| key.as_ref().to_owned();
        let downs = keys.iter().map(|key| Self::KeyDown(name(key)));
        let ups = keys.iter().rev().map(|key| Self::KeyUp(name(key)));
        downs.chain([Self::Rest(CLICK_PAUSE)]).chain(ups).collect()
    }

    /// Types a text at the usual pace.
    pub(super) fn text(content: &str) -> Self {
        let text = content.replace("\r\n", "\n").replace('\r', "\n");
        let longest = TYPE_LONGEST / text.chars().count().max(1) as u32;
        Self::Type {
            text,
            interval: TYPE_INTERVAL.min(longest),
        }
    }

    fn duration(&self) -> Duration {
        match self {
            Self::MoveTo { over, .. } | Self::MoveBy { over, .. } => *over,
            Self::Type { text, interval } => *interval * text.chars().count() as u32,
            Self::Rest(pause) => *pause,
            Self::ButtonDown(_) | Self::ButtonUp(_) | Self::KeyDown(_) | Self::KeyUp(_) => {
                Duration::ZERO
            }
        }
    }

    /// The symbols it needs keys for.
    fn symbols(&self) -> Result<Vec<u32>, DisplayError> {
        let no_key = |name: &str| DisplayError::NoKey {
            name: name.to_owned(),
        };
        match self {
            Self::KeyDown(name) | Self::KeyUp(name) => {
                Ok(vec![symbol_of_key(name).ok_or_else(|| no_key(name))?])
            }
            Self::Type { text, .. } => {
                let symbol = |c| symbol_of_char(c).ok_or_else(|| no_key(&c.to_string()));
                text.chars().map(symbol).collect()
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// How long gestures take that have to be done, at most.
pub(super) fn limit(gestures: &[Gesture]) -> Duration {
    let own: Duration = gestures.iter().map(Gesture::duration).sum();
    // Busy machines sleep longer than they were told to.
    3 * own + 3 * PATIENCE
}

impl Session {
    /// Does them in turn, and comes back when the X server has done them. Nothing is done if one of
    /// them cannot be.
    pub(super) fn perform(&self, gestures: &[Gesture]) -> Result<(), Broken> {
        let symbols: Result<Vec<_>, _> = gestures.iter().map(Gesture::symbols).collect();
        let symbols = symbols?;
        let mut keyboard = Keyboard::read(self)?;
        keyboard.lend(symbols.iter().flatten().copied())?;
        let mut hand = Hand {
            session: self,
            keyboard,
            is_shift_held: false,
        };
        let done = gestures
            .iter()
            .try_for_each(|gesture| hand.perform(gesture));
        let restored = hand.keyboard.restore();
        done.and(restored)?;
        self.sync()
    }

    /// Where the pointer is.
    pub(super) fn pointer(&self) -> Result<(i32, i32), Broken> {
        let pointer = self.x.query_pointer(self.root)?.reply()?;
        Ok((pointer.root_x.into(), pointer.root_y.into()))
    }

    fn fake(&self, kind: u8, detail: u8, x: i32, y: i32) -> Result<(), Broken> {
        let (x, y) = (x.clamp(0, MAX_PIXEL) as i16, y.clamp(0, MAX_PIXEL) as i16);
        self.x
            .xtest_fake_input(kind, detail, 0, self.root, x, y, 0)?;
        // Requests are kept back until somebody waits.
        self.sync()
    }

    fn slide(&self, x: i32, y: i32, over: Duration) -> Result<(), Broken> {
        let from = self.pointer()?;
        let steps = (over.as_millis() / MOVE_INTERVAL.as_millis()) as i32;
        for step in 1..steps {
            let between = |from: i32, to: i32| from + (to - from) * step / steps;
            self.fake(
                MOTION_NOTIFY_EVENT,
                0,
                between(from.0, x),
                between(from.1, y),
            )?;
            sleep(over / steps as u32);
        }
        self.fake(MOTION_NOTIFY_EVENT, 0, x, y)
    }
}

/// The largest coordinate that X has.
const MAX_PIXEL: i32 = i16::MAX as i32;

/// What does gestures.
struct Hand<'a> {
    session: &'a Session,
    keyboard: Keyboard<'a>,
    is_shift_held: bool,
}

impl Hand<'_> {
    fn perform(&mut self, gesture: &Gesture) -> Result<(), Broken> {
        let session = self.session;
        match gesture {
            Gesture::MoveTo { x, y, over } => session.slide(*x, *y, *over),
            Gesture::MoveBy { x, y, over } => {
                let at = session.pointer()?;
                session.slide(at.0 + x, at.1 + y, *over)
            }
            Gesture::ButtonDown(button) => session.fake(BUTTON_PRESS_EVENT, *button, 0, 0),
            Gesture::ButtonUp(button) => session.fake(BUTTON_RELEASE_EVENT, *button, 0, 0),
            Gesture::KeyDown(_) => self.each_key(gesture, Self::press),
            Gesture::KeyUp(_) => self.each_key(gesture, Self::release),
            Gesture::Type { interval, .. } => self.each_key(gesture, |hand, symbol| {
                hand.press(symbol)?;
                hand.release(symbol)?;
                sleep(*interval);
                Ok(())
            }),
            Gesture::Rest(pause) => {
                sleep(*pause);
                Ok(())
            }
        }
    }

    fn each_key(
        &mut self,
        gesture: &Gesture,
        mut tap: impl FnMut(&mut Self, u32) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let symbols = gesture.symbols()?;
        symbols.into_iter().try_for_each(|symbol| tap(self, symbol))
    }

    /// With shift just for as long as the key goes down, unless it is held anyway.
    fn press(&mut self, symbol: u32) -> Result<(), Broken> {
        let Key { code, is_shifted } = self.keyboard.key(symbol)?;
        let mut shift = None;
        if is_shifted && !self.is_shift_held {
            shift = Some(self.keyboard.key(SHIFT)?.code);
        }
        if let Some(shift) = shift {
            self.session.fake(KEY_PRESS_EVENT, shift, 0, 0)?;
        }
        self.session.fake(KEY_PRESS_EVENT, code, 0, 0)?;
        if let Some(shift) = shift {
            self.session.fake(KEY_RELEASE_EVENT, shift, 0, 0)?;
        }
        self.is_shift_held |= symbol == SHIFT;
        Ok(())
    }

    fn release(&mut self, symbol: u32) -> Result<(), Broken> {
        let Key { code, .. } = self.keyboard.key(symbol)?;
        self.is_shift_held &= symbol != SHIFT;
        self.session.fake(KEY_RELEASE_EVENT, code, 0, 0)
    }
}
