//! Keys, strings, coordinates. Whole replies: `tests/it/actions.rs`.

use crate::action::text::{Quoting, quote, scan_string, unescape};
use crate::action::{ParseErrorKind, Space, keys, parse_reply};
use crate::types::{Point, ReplyFormat, ScreenSize};

#[test]
fn keys_have_one_name_each() {
    for (written, expected) in [
        ("CTRL", Some("ctrl")),
        ("Control", Some("ctrl")),
        ("Return", Some("enter")),
        ("\n", Some("enter")),
        (" ", Some("space")),
        ("ArrowDown", Some("down")),
        ("page_down", Some("pagedown")),
        ("F12", Some("f12")),
        ("Q", Some("q")),
        ("7", Some("7")),
        ("plus", Some("+")),
        ("~", Some("~")),
        ("cmd", Some("super")),
        ("", None),
        ("f13", None),
        ("ctrl c", None),
        ("é", None),
        ("中", None),
        ("\u{1}", None),
    ] {
        assert_eq!(keys::canonical(written), expected, "{written:?}");
    }
}

#[test]
fn every_canonical_name_is_its_own() {
    for byte in b'!'..=b'~' {
        let name = keys::canonical(std::str::from_utf8(&[byte]).unwrap()).unwrap();
        assert_eq!(keys::canonical(name), Some(name));
    }
    for name in keys::all_named() {
        assert_eq!(keys::canonical(name), Some(name));
    }
    assert!(keys::is_modifier("ctrl") && !keys::is_modifier("c"));
}

#[test]
fn combinations_are_split_without_losing_a_key() {
    for (text, expected) in [
        ("ctrl c", vec!["ctrl", "c"]),
        ("ctrl+c", vec!["ctrl", "c"]),
        (" ctrl +  shift+c ", vec!["ctrl", "shift", "c"]),
        ("ctrl +", vec!["ctrl", "+"]),
        ("ctrl+", vec!["ctrl", "+"]),
        ("ctrl++", vec!["ctrl", "+"]),
        ("ctrl + +", vec!["ctrl", "+"]),
        ("ctrl++c", vec!["ctrl", "+", "c"]),
        ("+", vec!["+"]),
        ("+ctrl", vec!["+", "ctrl"]),
        ("", vec![]),
    ] {
        assert_eq!(keys::split(text), expected, "{text:?}");
    }
}

#[test]
fn escapes_are_undone_exactly_once() {
    for (body, expected) in [
        (r"a\nb", "a\nb"),
        (r"a\\nb", r"a\nb"),
        (r"a\\\nb", "a\\\nb"),
        (r"\t\r\'\x22", "\t\r'\""),
        (r"\u4e2d\U0001F600", "中😀"),
        (r"\ud800", r"\ud800"),
        (r"\x4", r"\x4"),
        (r"\u+123", r"\u+123"),
        (r"\d\ \é", r"\d\ \é"),
        ("\\", "\\"),
    ] {
        assert_eq!(unescape(body), expected, "{body:?}");
    }
}

#[test]
fn quoted_text_reads_back() {
    for text in [
        "",
        "it's",
        r"\",
        r"\'",
        "a\nb\t\r\u{7}\u{85}",
        "\"'\\n",
        "中",
    ] {
        let quoted = quote(text);
        for quoting in [Quoting::Strict, Quoting::Text] {
            let scanned = scan_string(&format!("{quoted})"), quoting)
                .unwrap()
                .unwrap();
            assert_eq!(scanned.value, text);
            assert_eq!(scanned.len, quoted.len());
        }
    }
    assert!(scan_string("5", Quoting::Strict).is_none());
}

#[test]
fn errors_carry_their_place_in_words() {
    let space = Space {
        format: ReplyFormat::Absolute,
        model_size: ScreenSize {
            width: 224,
            height: 168,
        },
        screen: ScreenSize {
            width: 448,
            height: 336,
        },
        snap: 4,
        box_tokens: false,
    };
    let error = parse_reply("Thought: 好\nAction: jump()", &space).unwrap_err();
    assert_eq!(error.to_string(), "unknown action `jump` at byte 21");
    let name = "jump".to_owned();
    assert_eq!(error.kind, ParseErrorKind::UnknownAction { name });
}

#[test]
fn written_coordinates_are_snapped_and_stay_inside() {
    let space = |snap, width, screen_width| Space {
        format: ReplyFormat::Absolute,
        model_size: ScreenSize { width, height: 168 },
        screen: ScreenSize {
            width: screen_width,
            height: 336,
        },
        snap,
        box_tokens: false,
    };
    for (space, x, expected) in [
        (space(4, 224, 448), 0.0, 0),
        (space(4, 224, 448), 3.9, 0),
        (space(4, 224, 448), 4.0, 4),
        (space(4, 224, 448), 312.0, 156),
        (space(4, 224, 448), 447.0, 220),
        (space(4, 224, 448), 9000.0, 220),
        (space(4, 224, 448), -9.0, 0),
        (space(1, 224, 448), 447.0, 223),
        (space(0, 224, 448), 5.0, 3),
        (space(500, 224, 448), 447.0, 0),
        (space(4, 224, 448), f32::NAN, 0),
    ] {
        let (found, _) = space.to_model(Point { x, y: 0.0 });
        assert_eq!(found, expected, "{x} {space:?}");
    }
}
