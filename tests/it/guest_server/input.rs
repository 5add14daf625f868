//! Actions on a real window.

use arpo::action::keys;
use arpo::types::{Action, Point, ScrollDirection};

use super::{Witness, wait};
use crate::desk::{Desk, eventually, has_desktops};

fn at(x: f32, y: f32) -> Point {
    Point { x, y }
}

fn typed(content: &str) -> Action {
    Action::Type {
        content: content.to_owned(),
    }
}

fn hotkey(keys: &[&str]) -> Action {
    Action::Hotkey {
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
    }
}

/// Lines without the pointer's moves in between.
fn keys_of(lines: &[String]) -> String {
    lines.join(", ")
}

#[test]
fn every_kind_of_action_reaches_a_window() {
    if !has_desktops("every_kind_of_action_reaches_a_window", &[]) {
        return;
    }
    let mut desk = Desk::start(&[]);
    let guest = desk.guest();
    let mut witness = Witness::open(&mut desk);
    let scroll = |at, direction| Action::Scroll { at, direction };
    let click = "button 1 down at 20,30, button 1 up at 20,30";
    let moved = |clicks: &str| format!("to 20,30, {clicks}");
    let turns = |button: u8| {
        let turn = format!("button {button} down at 70,80, button {button} up at 70,80");
        [turn.as_str(); 5].join(", ")
    };
    let [ctrl, shift, alt] = ["ffe3", "ffe1", "ffe9"];
    let table: Vec<(Action, String)> = vec![
        (Action::Hover { at: at(20.9, 30.0) }, "to 20,30".to_owned()),
        (Action::Click { at: at(20.0, 30.0) }, moved(click)),
        (
            Action::LeftDouble { at: at(20.0, 30.0) },
            moved(&format!("{click}, {click}")),
        ),
        (
            Action::RightSingle { at: at(1e9, -5.0) },
            "to 1279,0, button 3 down at 1279,0, button 3 up at 1279,0".to_owned(),
        ),
        (
            scroll(Some(at(70.0, 80.0)), ScrollDirection::Up),
            format!("to 70,80, {}", turns(4)),
        ),
        (scroll(None, ScrollDirection::Down), turns(5)),
        (scroll(None, ScrollDirection::Left), turns(6)),
        (scroll(None, ScrollDirection::Right), turns(7)),
        (
            hotkey(&["ctrl", "alt", "t"]),
            format!("{ctrl} down, {alt} down, t down, t up, {alt} up, {ctrl} up"),
        ),
        (
            hotkey(&["ctrl", "shift", "="]),
            format!("{ctrl} down, {shift} down, + down, + up, {shift} up, {ctrl} up"),
        ),
        (hotkey(&["enter"]), "ff0d down, ff0d up".to_owned()),
        (
            Action::Press {
                key: "<".to_owned(),
            },
            "< down, < up".to_owned(),
        ),
        (Action::Wait, String::new()),
        (Action::CallUser, String::new()),
        (
            typed("aB<\r\n\té"),
            format!(
                "a down, a up, {shift} down, B down, {shift} up, b up, < down, < up, \
                 ff0d down, ff0d up, ff09 down, ff09 up, é down, é up"
            ),
        ),
    ];
    for (action, expected) in table {
        let lines;
        (witness, lines) = witness.during(|| wait(guest.act(&action)).unwrap());
        assert_eq!(keys_of(&lines), expected, "{action:?}");
    }
    let drag = Action::Drag {
        from: at(100.0, 100.0),
        to: at(300.0, 200.0),
    };
    let (_witness, lines) = witness.during(|| wait(guest.act(&drag)).unwrap());
    assert_eq!(lines[..2], ["to 100,100", "button 1 down at 100,100"]);
    assert_eq!(
        lines[lines.len() - 2..],
        ["to 300,200", "button 1 up at 300,200"]
    );
    assert!(lines.len() > 20, "a drag is many moves: {lines:?}");
}

#[test]
fn every_key_reaches_a_window() {
    if !has_desktops("every_key_reaches_a_window", &[]) {
        return;
    }
    let mut desk = Desk::start(&[]);
    let guest = desk.guest();
    let mut witness = Witness::open(&mut desk);
    let printed = ('!'..='~').filter(|c| !c.is_ascii_uppercase());
    let printed = printed.map(|c| keys::canonical(&c.to_string()).unwrap());
    for key in keys::all_named().chain(printed) {
        let action = Action::Press {
            key: key.to_owned(),
        };
        let lines;
        (witness, lines) = witness.during(|| wait(guest.act(&action)).unwrap());
        // Shift goes with what is shifted.
        let is_own = |line: &&String| key == "shift" || !line.starts_with("ffe1 ");
        let own: Vec<_> = lines.iter().filter(is_own).collect();
        assert_eq!(own.len(), 2, "{key}: {lines:?}");
        if key.len() == 1 {
            assert_eq!(own[0], &format!("{key} down"));
        }
        // Locks are undone.
        if key.ends_with("lock") {
            wait(guest.act(&action)).unwrap();
            witness.events();
        }
    }
    let unknown = Action::Press {
        key: "no such key".to_owned(),
    };
    let error = wait(guest.act(&unknown)).unwrap_err().to_string();
    assert!(
        error.contains("no key is called \"no such key\""),
        "{error}"
    );
}

/// Texts that no keyboard has keys for: more different characters than there are spare keys among
/// them.
const TEXT: &str =
    "it's <\"done\"> ~^`´ {x} \\n\n\té ñ Ω € 你好世界 🙂 ÀÈ ẞ ¿¡\nthe quick brown fox 12345\n";

#[test]
fn any_text_is_typed_into_an_editor() {
    if !has_desktops("any_text_is_typed_into_an_editor", &["mousepad"]) {
        return;
    }
    let desk = Desk::start(&[]);
    let guest = desk.guest();
    let every: String = ('\u{400}'..'\u{4c0}').collect();
    let text = format!("{TEXT}{every}\nend\n");
    let file = desk.path("typed.txt");
    std::fs::write(&file, "").unwrap();
    let path = file.display().to_string();
    let open = arpo::env::guest::Command::program(["mousepad", &path]);
    wait(guest.launch(&open)).unwrap();
    let window = arpo::types::osworld::setup::WindowName {
        window_name: "typed.txt".to_owned(),
        strict: false,
        by_class: false,
    };
    eventually("editor", || {
        let told = wait(guest.execute_until(
            &arpo::env::guest::Command::program(["true"]),
            &arpo::env::guest::Verification {
                window_exists: Some("typed.txt".to_owned()),
                command_success: None,
            },
            arpo::env::guest::Patience {
                longest: std::time::Duration::from_secs(30),
                interval: std::time::Duration::from_millis(100),
            },
        ));
        told.ok()
    });
    wait(guest.activate_window(&window)).unwrap();
    wait(guest.act(&Action::Click {
        at: at(400.0, 300.0),
    }))
    .unwrap();
    let before = mapping(&desk);
    wait(guest.act(&typed(&text))).unwrap();
    assert_eq!(mapping(&desk), before, "the keyboard is as it was");
    wait(guest.act(&hotkey(&["ctrl", "s"]))).unwrap();
    let saved = eventually("saved text", || {
        let saved = std::fs::read_to_string(&file).unwrap();
        saved.ends_with("end\n").then_some(saved)
    });
    assert_eq!(saved, text);
}

fn mapping(desk: &Desk) -> Vec<u32> {
    use x11rb::connection::Connection;
    use x11rb::protocol::xproto::ConnectionExt;
    let (x, _) = x11rb::connect(Some(&desk.screen.display)).unwrap();
    let (first, last) = (x.setup().min_keycode, x.setup().max_keycode);
    let map = x
        .get_keyboard_mapping(first, last - first + 1)
        .unwrap()
        .reply()
        .unwrap();
    let columns = usize::from(map.keysyms_per_keycode);
    map.keysyms
        .chunks(columns)
        .flat_map(|key| key.iter().take(2).copied())
        .collect()
}
