//! Our own server of a desktop, on a real X server: asked by our client, by hand, and by OSWorld's
//! own controllers.

mod input;
mod interop;
mod routes;
mod screen;

use std::thread;

use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::ConfigureWindowAux;
use x11rb::protocol::xproto::{
    ConnectionExt, CreateWindowAux, EventMask, InputFocus, KeyButMask, StackMode, WindowClass,
};
use x11rb::rust_connection::RustConnection;

use crate::desk::{Desk, eventually};

/// A window over the whole screen that writes down what happens to it.
struct Witness {
    x: RustConnection,
    first_code: u8,
}

impl Witness {
    /// With the focus, and without a window manager, which has keys of its own.
    fn open(desk: &mut Desk) -> Self {
        desk.screen.unmanage();
        let (x, screen) = x11rb::connect(Some(&desk.screen.display)).unwrap();
        let screen = &x.setup().roots[screen];
        let (root, first_code) = (screen.root, x.setup().min_keycode);
        let (width, height) = (screen.width_in_pixels, screen.height_in_pixels);
        let window = x.generate_id().unwrap();
        let mask = EventMask::KEY_PRESS
            | EventMask::KEY_RELEASE
            | EventMask::BUTTON_PRESS
            | EventMask::BUTTON_RELEASE
            | EventMask::POINTER_MOTION
            | EventMask::STRUCTURE_NOTIFY;
        let look = CreateWindowAux::new()
            .override_redirect(1)
            .background_pixel(0x0033_6699)
            .event_mask(mask);
        let class = WindowClass::INPUT_OUTPUT;
        let (depth, visual) = (screen.root_depth, screen.root_visual);
        x.create_window(
            depth, window, root, 0, 0, width, height, 0, class, visual, &look,
        )
        .unwrap();
        x.map_window(window).unwrap();
        let above = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
        x.configure_window(window, &above).unwrap();
        x.flush().unwrap();
        while !matches!(x.wait_for_event().unwrap(), Event::MapNotify(_)) {}
        eventually("focus", || {
            x.set_input_focus(InputFocus::PARENT, window, 0_u32)
                .unwrap();
            let focus = x.get_input_focus().unwrap().reply().unwrap().focus;
            (focus == window).then_some(())
        });
        let witness = Self { x, first_code };
        witness.events();
        witness
    }

    /// What happened since, a line each. Keys by the symbol that they give, as programs see it.
    fn events(&self) -> Vec<String> {
        let mut lines = Vec::new();
        // All that was sent before this is answered has come.
        self.x.get_input_focus().unwrap().reply().unwrap();
        while let Some(event) = self.x.poll_for_event().unwrap() {
            lines.extend(match event {
                Event::KeyPress(it) => Some(format!("{} down", self.symbol(it.detail, it.state))),
                Event::KeyRelease(it) => Some(format!("{} up", self.symbol(it.detail, it.state))),
                Event::ButtonPress(it) => Some(format!(
                    "button {} down at {},{}",
                    it.detail, it.root_x, it.root_y
                )),
                Event::ButtonRelease(it) => Some(format!(
                    "button {} up at {},{}",
                    it.detail, it.root_x, it.root_y
                )),
                Event::MotionNotify(it) => Some(format!("to {},{}", it.root_x, it.root_y)),
                _ => None,
            });
        }
        lines
    }

    fn symbol(&self, code: u8, state: KeyButMask) -> String {
        let map = self
            .x
            .get_keyboard_mapping(code, 1)
            .unwrap()
            .reply()
            .unwrap();
        assert!(code >= self.first_code);
        let level = usize::from(state.contains(KeyButMask::SHIFT));
        let plain = map.keysyms[0];
        let symbol = match map.keysyms.get(level).copied().unwrap_or(0) {
            0 => plain,
            symbol => symbol,
        };
        match symbol {
            0x20..=0xff => char::from_u32(symbol).unwrap().to_string(),
            0x0100_0000.. => char::from_u32(symbol & 0xff_ffff).unwrap().to_string(),
            symbol => format!("{symbol:x}"),
        }
    }

    /// Writes down what happens while something is done, as it happens: programs look keys up
    /// when they hear of them, not afterwards.
    fn during(self, doing: impl FnOnce()) -> (Self, Vec<String>) {
        let (stop, is_over) = std::sync::mpsc::channel::<()>();
        let watching = thread::spawn(move || {
            let mut lines = Vec::new();
            loop {
                let ended = is_over.recv_timeout(std::time::Duration::from_millis(2));
                lines.extend(self.events());
                if ended != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    return (self, lines);
                }
            }
        });
        doing();
        drop(stop);
        watching.join().unwrap()
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}
